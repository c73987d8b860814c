"""Operators that are objects: what compiled code calls, and what they may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from pystreams.record import ContextCell
from pystreams.topology.nodes import Operation

T = TypeVar("T")

#: Compiled code behind an operator. A stream edge is called with (key, value, timestamp, headers), a table edge with
#: (key, new, old, is_latest, timestamp, headers).
Forward = Callable[..., None]


class OperatorEnvironment(Protocol):
    """What a task hands to an operator when it opens it."""

    @property
    def node_name(self) -> str: ...

    @property
    def application_id(self) -> str: ...

    @property
    def partition(self) -> int:
        """The number of the partitions that the task reads, and of those of its changelogs."""
        ...

    @property
    def cell(self) -> ContextCell:
        """The context of the record in force. Whoever forwards another timestamp or other headers than the context's
        sets it before and restores it after."""
        ...

    @property
    def forward(self) -> Forward:
        """The compiled function of what follows this operator."""
        ...

    def store(self, name: str) -> Any:
        """The store of that name, opened."""
        ...

    def global_store(self, name: str) -> Any:
        """The global store of that name, to read: other threads read it, too, and another one writes it."""
        ...

    def transformer(self, supplier: Callable[[], Any], stores: Sequence[str]) -> Callable[[Any, Any], Any]:
        """``transform`` of a new ``ValueTransformer``, initialized; it is closed with the task."""
        ...

    def drop(self, reason: str) -> None:
        """Count (``dropped-records-total``) and log at most now and then that the record in force was dropped."""
        ...

    def failed(self, error: Exception, key: Any, value: Any) -> None:
        """Something raised ``error`` for the record whose context is in force, which is not the one that the step was
        called with: the processing handler is asked. Returns if the record is to be left out, else raises."""
        ...

    def failed_waiting(
        self, error: Exception, key: Any, value: Any, raw: tuple[bytes | None, bytes | None]
    ) -> None:
        """As ``failed``, for a record that waited here. ``raw`` are the bytes of its key and value."""
        ...

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` gives, the same for all operators of the task that ask for ``name``."""
        ...

    def load_metadata(self, name: str) -> int | None:
        """An int64 that Kafka Streams, too, keeps with the task's offsets (ProcessorMetadata), or None."""
        ...

    def save_metadata(self, name: str, read: Callable[[], int | None]) -> None:
        """Have ``read()`` called at each commit and kept as Kafka Streams does; None: there is nothing to keep."""
        ...

    def drop_as_usual(self) -> None:
        """Count the record in force as dropped, where that is part of how things work: nobody need hear of it."""
        ...

    def load_state(self, name: str, default: int) -> int:
        """An int64 that this operator saved under ``name`` with the last commit (observed stream time, a counter)."""
        ...

    def save_state(self, name: str, read: Callable[[], int]) -> None:
        """Have ``read()`` called at each commit and kept with the task's offsets, under this operator's name."""
        ...


class Operator:
    """An operator at work in one task. ``process`` takes the arguments of the edge that leads here; it is a closure,
    because what it needs for each record is then a local variable. What it lets raise goes to the processing handler.
    """

    __slots__ = ("process",)

    def __init__(self, process: Callable[..., None]) -> None:
        self.process = process

    def close(self) -> None:
        """Called when the task ends."""


class ObjectOperation(Operation):
    """An operation that a task runs as an object."""

    #: True if the edge that leads here carries (new, old): the parent is a table.
    takes_changes: ClassVar[bool] = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        """A new operator for one task."""
        raise NotImplementedError
