"""The Processor API: a step is a class with stores, timers and control over the records that it forwards.

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
    """The clock of a punctuator: stream time (the records' timestamps) or wall-clock time."""

    STREAM_TIME = "stream_time"
    WALL_CLOCK_TIME = "wall_clock_time"


class RecordMetadata(NamedTuple):
    """Topic, partition and offset of the record being processed."""

    topic: str
    partition: int
    offset: int


class RecordContext(NamedTuple):
    """Topic, partition and offset from which a record to be written came, and its own timestamp and headers. In
    punctuation ``topic`` is None, ``partition`` and ``offset`` are -1.

    Source: org.apache.kafka.streams.processor.RecordContext.
    """

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers


#: ``partitioner(topic, key, value, partitions)`` returns a partition, several (the record goes to each), an empty
#: collection (the record is dropped and counted), or None (the default partitioner: hash of the key).
Partitioner: TypeAlias = Callable[[str, KIn, VIn, int], "int | Collection[int] | None"]


class StoreOf(Protocol[S_co]):
    """A store builder of ``Stores``, as a processor's context uses it."""

    @property
    def name(self) -> str: ...

    @property
    def opened(self) -> S_co: ...


class Cancellable(Protocol):
    """A schedule that can be cancelled."""

    def cancel(self) -> None:
        """Stop the schedule: the punctuator is not called again."""
        ...


class Change(NamedTuple, Generic[V]):
    """The old and the new value of a table's row: the record value that a step on a table receives.

    ``is_latest`` is False for an out-of-order update of a versioned table. Source: kstream.internals.Change.
    """

    new: V | None
    old: V | None
    is_latest: bool = True


#: Called with the current stream or wall-clock time in milliseconds.
Punctuator = Callable[[int], None]


class ProcessorContext(Protocol[KIn_contra, VIn_contra]):
    """The services that a processor may use. Valid within the processor's own task only."""

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
        """The metrics of the process. ``counter(name, **tags)`` makes a metric for the processor."""
        ...

    @property
    def state_dir(self) -> Path:
        """An existing folder on this machine for the task. It is deleted together with the task's stores: keep there
        only files that can be made again."""
        ...

    def forward(self, record: Record[KIn_contra, VIn_contra], child: str | None = None) -> None:
        """Pass a record to all children, or only to ``child``. Returns when the children have processed it.

        Raises ``TopologyError`` for a child that does not exist, ``ProcessingError`` for a negative timestamp and for
        a call outside of ``process`` and punctuation.
        """
        ...

    @overload
    def store(self, name: StoreOf[S]) -> S: ...
    @overload
    def store(self, name: str) -> Any: ...
    def store(self, name: Any) -> Any:
        """The store with this name, or the store of this store builder of ``Stores``; type checkers know the types of
        the latter.

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

        Stream time: the scheduled times lie on a grid that starts at 0. A call follows the record that reaches or
        passes the next scheduled time; if a record passes several of them, there is only one call. Wall-clock time: the
        first call is after one interval.

        ``start_time`` (a datetime with a time zone, or milliseconds since 1970) anchors the grid: the first call is at
        ``start_time``, or at the next ``start_time + n * interval`` in the future (KIP-1146). Raises ``ConfigError``
        for a time before 1970, and for an interval that is too short.
        """
        ...

    def commit(self) -> None:
        """Request a commit soon after this record."""
        ...

    def record_metadata(self) -> RecordMetadata | None:
        """Topic, partition and offset of the record; None in punctuation."""
        ...

    def current_stream_time_ms(self) -> int:
        """Stream time: the greatest timestamp that the task has processed, -1 before the first record."""
        ...

    def current_system_time_ms(self) -> int:
        """Wall-clock time, in milliseconds since 1970."""
        ...


class ValueTransformer(Generic[KIn, VIn, VOut]):
    """Computes the values of a table (``KTable.transform_values``), with a life cycle and stores. One instance per
    task, and, if the table has no store, one more for each step that reads the table.

    Subclass it and override ``transform``. Source: org.apache.kafka.streams.kstream.ValueTransformerWithKey.
    """

    context: ProcessorContext[Any, Any]

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        """Called before the first value. The default keeps ``context`` as ``self.context``. ``context.forward`` is not
        allowed."""
        self.context = context

    def transform(self, key: KIn, value: VIn | None) -> VOut | None:
        """The new value; None deletes the row. ``value`` is None if the row is deleted, or if the row that is read does
        not exist."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when the task ends."""


class Processor(Generic[KIn_contra, VIn_contra, KOut_co, VOut_co]):
    """A step of a topology with a life cycle. Each task has its own instance: keep state only in it or in stores.

    Subclass it and override ``process``; ``init`` is called once before, ``close`` once after.
    """

    context: ProcessorContext[KOut_co, VOut_co]

    def init(self, context: ProcessorContext[KOut_co, VOut_co]) -> None:
        """Called before the first record. The default keeps ``context`` as ``self.context``."""
        self.context = context

    if not TYPE_CHECKING:  # Type checkers know the attributes and find misspelt ones.

        def __getattr__(self, name: str) -> Any:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name == "context":
                message += ": Processor.init sets it; an init of your own must call super().init(context)"
            raise AttributeError(message)

    def process(self, record: Record[KIn_contra, VIn_contra]) -> None:
        """Called for each record."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when the task ends."""


class FixedKeyProcessor(Processor[KIn, VIn, KIn, VOut], Generic[KIn, VIn, VOut]):
    """A processor for ``process_values``: the records that it forwards keep the key of their input record.

    Source: org.apache.kafka.streams.processor.api.FixedKeyProcessor (KIP-820).
    """


#: Opens a step of the DSL around a context; returns the function that processes a record, and the one that closes.
OpenStep: TypeAlias = Callable[
    [ProcessorContext[Any, Any]], tuple[Callable[[Record[Any, Any]], None], Callable[[], None]]
]

#: Opens the current DSL step while its task makes and initializes the processors around it.
_AT_HAND: Final[ContextVar[OpenStep | None]] = ContextVar("step at hand", default=None)


class BuiltInProcessor(Processor[Any, Any, Any, Any]):
    """A step of the DSL, as a ``ProcessorWrapper`` and its processors see it.

    It forwards with the context that it was initialized with. At most one instance per step is initialized in each
    task.
    """

    def __init__(self) -> None:
        self._open = _AT_HAND.get()
        self._run: Callable[[Record[Any, Any]], None] = _not_initialized
        self._close: Callable[[], None] = lambda: None

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        """Open the step. Raises ``TopologyError`` if the processor was made outside of its task."""
        super().init(context)
        opener = self._open or _AT_HAND.get()
        if opener is None:
            raise TopologyError(
                "a processor of the DSL was initialized outside of its task",
                hint="call the wrapped supplier where your own processor is made or initialized",
            )
        self._run, self._close = opener(context)

    def process(self, record: Record[Any, Any]) -> None:
        self._run(record)

    def close(self) -> None:
        self._close()


def _not_initialized(_record: Record[Any, Any]) -> None:
    raise TopologyError(
        "a processor of the DSL was given a record before it was initialized",
        hint="the processor around it must pass init on: self.inner.init(context)",
    )


@contextmanager
def step_at_hand(opener: OpenStep) -> Iterator[None]:
    """Inside, a ``BuiltInProcessor`` that is made or initialized is the step that ``opener`` opens."""
    token = _AT_HAND.set(opener)
    try:
        yield
    finally:
        _AT_HAND.reset(token)
