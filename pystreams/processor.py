"""The Processor API: a step written as a class, with stores, timers and full control over what is forwarded.

Source: org.apache.kafka.streams.processor.api (KIP-478, KIP-820).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from pystreams.ids import TaskId
from pystreams.record import Record

KIn = TypeVar("KIn")
VIn = TypeVar("VIn")
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")


class PunctuationType(Enum):
    """What drives a punctuator: the timestamps of the records, or the clock on the wall."""

    STREAM_TIME = "stream_time"
    WALL_CLOCK_TIME = "wall_clock_time"


class RecordMetadata(NamedTuple):
    """Where the record being processed came from."""

    topic: str
    partition: int
    offset: int


class Cancellable(Protocol):
    """A schedule that can be ended."""

    def cancel(self) -> None:
        """Never call the punctuator again."""
        ...


#: Called with the current stream or wall-clock time in milliseconds.
Punctuator = Callable[[int], None]


class ProcessorContext(Protocol[KOut, VOut]):
    """What a processor can do besides returning. Valid within the processor's own task only."""

    @property
    def application_id(self) -> str: ...

    @property
    def task_id(self) -> TaskId: ...

    def forward(self, record: Record[KOut, VOut], child: str | None = None) -> None:
        """Hand a record to all children, or to the one named; it is processed before this returns.

        Raises ``TopologyError`` for a child that does not exist, ``ProcessingError`` for a negative timestamp and for
        a call outside of ``process`` and punctuation.
        """
        ...

    def store(self, name: str) -> Any:
        """The store of that name. Raises ``TopologyError`` if it is not connected to this processor."""
        ...

    def schedule(
        self, interval: timedelta | int, type: PunctuationType, punctuator: Punctuator
    ) -> Cancellable:
        """Call ``punctuator`` every ``interval`` (a timedelta or milliseconds, at least 1 ms).

        Stream time: on a grid that starts at 0, right after the record that reaches or passes the next point; several
        points passed at once give one call. Wall-clock time: first after one interval.
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


class Processor(Generic[KIn, VIn, KOut, VOut]):
    """A step of a topology with a life cycle. One instance per task: keep no state elsewhere.

    Subclass it and override ``process``; ``init`` is called once before, ``close`` once after.
    """

    context: ProcessorContext[KOut, VOut]

    def init(self, context: ProcessorContext[KOut, VOut]) -> None:
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

    def process(self, record: Record[KIn, VIn]) -> None:
        """Called for each record."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when the task ends."""
