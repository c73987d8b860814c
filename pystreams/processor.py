"""The Processor API: a step written as a class, with stores, timers and full control over what is forwarded.

Source: org.apache.kafka.streams.processor.api (KIP-478, KIP-820).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, overload

from pystreams.config import StreamsConfig
from pystreams.errors import TopologyError
from pystreams.ids import TaskId
from pystreams.metrics import Metrics
from pystreams.record import Headers, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

V = TypeVar("V")
KIn = TypeVar("KIn")
VIn = TypeVar("VIn")
S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")
KIn_contra = TypeVar("KIn_contra", contravariant=True)
VIn_contra = TypeVar("VIn_contra", contravariant=True)
KOut_co = TypeVar("KOut_co", covariant=True)
VOut_co = TypeVar("VOut_co", covariant=True)


class PunctuationType(Enum):
    """What drives a punctuator: the timestamps of the records, or the clock on the wall."""

    STREAM_TIME = "stream_time"
    WALL_CLOCK_TIME = "wall_clock_time"


class RecordMetadata(NamedTuple):
    """Where the record being processed came from."""

    topic: str
    partition: int
    offset: int


class RecordContext(NamedTuple):
    """Where a record that is about to be written came from, with its own timestamp and headers. In punctuation
    ``topic`` is None, ``partition`` and ``offset`` are -1.

    Source: org.apache.kafka.streams.processor.RecordContext.
    """

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers


#: ``partitioner(topic, key, value, partitions)`` gives a partition, several (the record goes to each), none (an empty
#: collection: dropped and counted), or None (the default: the key's hash).
Partitioner: TypeAlias = Callable[[str, KIn, VIn, int], "int | Collection[int] | None"]


class StoreOf(Protocol[S_co]):
    """What ``Stores`` makes, as far as a processor's context looks at it."""

    @property
    def name(self) -> str: ...

    @property
    def opened(self) -> S_co: ...


class Cancellable(Protocol):
    """A schedule that can be ended."""

    def cancel(self) -> None:
        """Never call the punctuator again."""
        ...


class Change(NamedTuple, Generic[V]):
    """The change of a table's row: what a step that works on tables is given as a record's value.

    ``is_latest`` is false for a late update of a versioned table. Source: kstream.internals.Change.
    """

    new: V | None
    old: V | None
    is_latest: bool = True


#: Called with the current stream or wall-clock time in milliseconds.
Punctuator = Callable[[int], None]


class ProcessorContext(Protocol[KIn_contra, VIn_contra]):
    """What a processor can do besides returning. Valid within the processor's own task only."""

    @property
    def application_id(self) -> str: ...

    @property
    def task_id(self) -> TaskId: ...

    @property
    def config(self) -> StreamsConfig:
        """The application's settings."""
        ...

    @property
    def metrics(self) -> Metrics:
        """The metrics of the process: ``counter(name, **tags)`` makes one of the processor's own."""
        ...

    @property
    def state_dir(self) -> Path:
        """A folder on this machine for the task, which exists. It goes with the task's stores: keep there only what can
        be had again."""
        ...

    def forward(self, record: Record[KIn_contra, VIn_contra], child: str | None = None) -> None:
        """Hand a record to all children, or to the one named; it is processed before this returns.

        Raises ``TopologyError`` for a child that does not exist, ``ProcessingError`` for a negative timestamp and for
        a call outside of ``process`` and punctuation.
        """
        ...

    @overload
    def store(self, name: StoreOf[S]) -> S: ...
    @overload
    def store(self, name: str) -> Any: ...
    def store(self, name: Any) -> Any:
        """The store of that name, or the one that was added as what ``Stores`` made: then checkers know its types.

        Raises ``TopologyError`` if it is not connected to this processor.
        """
        ...

    def schedule(
        self,
        interval: timedelta | int,
        type: PunctuationType,
        punctuator: Punctuator,
        *,
        start_time: datetime | int | None = None,
    ) -> Cancellable:
        """Call ``punctuator`` every ``interval`` (a timedelta or milliseconds, at least 1 ms).

        Stream time: on a grid that starts at 0, right after the record that reaches or passes the next point; several
        points passed at once give one call. Wall-clock time: first after one interval.

        ``start_time`` (a datetime with a time zone, or milliseconds since 1970) anchors the grid: the first call is at
        ``start_time``, or at the first point of ``start_time + n * interval`` that lies ahead (KIP-1146). Raises
        ``ConfigError`` for a time before 1970, and for a wrong interval.
        """
        ...

    def commit(self) -> None:
        """Ask for a commit soon after this record."""
        ...

    def record_metadata(self) -> RecordMetadata | None:
        """Where the record came from; None in punctuation."""
        ...

    def current_stream_time_ms(self) -> int:
        """The greatest timestamp that the task has processed, -1 before the first."""
        ...

    def current_system_time_ms(self) -> int:
        """The wall clock."""
        ...


class ValueTransformer(Generic[KIn, VIn, VOut]):
    """Makes the values of a table (``KTable.transform_values``), with a life cycle and stores. One instance per task,
    and one for each step that reads a table without a store.

    Subclass it and override ``transform``. Source: org.apache.kafka.streams.kstream.ValueTransformerWithKey.
    """

    context: ProcessorContext[Any, Any]

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        """Called before the first value. The default keeps ``context`` as ``self.context``. Nothing can be forwarded
        with it."""
        self.context = context

    def transform(self, key: KIn, value: VIn | None) -> VOut | None:
        """The new value; None deletes the row. ``value`` is None where the row is deleted, or where it is read and
        there is none."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when the task ends."""


class Processor(Generic[KIn_contra, VIn_contra, KOut_co, VOut_co]):
    """A step of a topology with a life cycle. One instance per task: keep no state elsewhere.

    Subclass it and override ``process``; ``init`` is called once before, ``close`` once after.
    """

    context: ProcessorContext[KOut_co, VOut_co]

    def init(self, context: ProcessorContext[KOut_co, VOut_co]) -> None:
        """Called before the first record. The default keeps ``context`` as ``self.context``."""
        self.context = context

    if not TYPE_CHECKING:  # Checkers know the attributes, and find misspelt ones.

        def __getattr__(self, name: str) -> Any:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name == "context":
                message += (
                    ": it is set by Processor.init; one of your own keeps it with super().init(context)"
                )
            raise AttributeError(message)

    def process(self, record: Record[KIn_contra, VIn_contra]) -> None:
        """Called for each record."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when the task ends."""


class FixedKeyProcessor(Processor[KIn, VIn, KIn, VOut], Generic[KIn, VIn, VOut]):
    """A processor for ``process_values``: it forwards what it makes of a record under the record's key.

    Source: org.apache.kafka.streams.processor.api.FixedKeyProcessor (KIP-820).
    """


#: Opens a step of the language around a context; gives what processes a record, and what closes the step.
OpenStep: TypeAlias = Callable[
    [ProcessorContext[Any, Any]], tuple[Callable[[Record[Any, Any]], None], Callable[[], None]]
]

#: Opens the step at hand, while its task makes and initializes the processors around it.
_AT_HAND: Final[ContextVar[OpenStep | None]] = ContextVar("step at hand", default=None)


class BuiltInProcessor(Processor[Any, Any, Any, Any]):
    """A step of the language, as the processors that a ``ProcessorWrapper`` puts around it see it.

    It forwards with the context that it is initialized with. At most one of a step is initialized in each task.
    """

    def __init__(self) -> None:
        self._open = _AT_HAND.get()
        self._run: Callable[[Record[Any, Any]], None] = _not_initialized
        self._close: Callable[[], None] = lambda: None

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        """Open the step. Raises ``TopologyError`` for a processor that was made outside of its task."""
        super().init(context)
        opener = self._open or _AT_HAND.get()
        if opener is None:
            raise TopologyError(
                "a processor of the language was initialized outside of its task",
                hint="ask the wrapped supplier for a processor where that of your own is made or initialized",
            )
        self._run, self._close = opener(context)

    def process(self, record: Record[Any, Any]) -> None:
        self._run(record)

    def close(self) -> None:
        self._close()


def _not_initialized(_record: Record[Any, Any]) -> None:
    raise TopologyError(
        "a processor of the language was given a record before it was initialized",
        hint="the processor around it hands init on: self.inner.init(context)",
    )


@contextmanager
def step_at_hand(opener: OpenStep) -> Iterator[None]:
    """``BuiltInProcessor`` that are made or initialized within are the step that ``opener`` opens."""
    token = _AT_HAND.set(opener)
    try:
        yield
    finally:
        _AT_HAND.reset(token)
