"""The base of operators that are objects: compiled code calls them, and their environment gives them its services."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from pystreams.dsl.operators.partners import Misses, Partner
from pystreams.functions import UserFunction
from pystreams.record import ContextCell
from pystreams.stream_time import Observed
from pystreams.topology.nodes import Operation

T = TypeVar("T")

#: The compiled code after an operator. After a stream step its arguments are (key, value, timestamp, headers), after a
#: table step (key, new, old, timestamp, headers, is_latest).
Forward = Callable[..., None]


class OperatorEnvironment(Protocol):
    """The services of a task for an operator, which are passed to ``open``."""

    @property
    def node_name(self) -> str: ...

    @property
    def application_id(self) -> str: ...

    @property
    def partition(self) -> int:
        """The number of the partitions that the task reads, and of its changelog partitions."""
        ...

    @property
    def cell(self) -> ContextCell:
        """The context of the current record. An operator that forwards another timestamp or other headers sets the
        context before, and restores it after."""
        ...

    @property
    def forward(self) -> Forward:
        """The compiled function of the steps after this operator."""
        ...

    def store(self, name: str) -> Any:
        """The store with this name, opened."""
        ...

    def global_store(self, name: str) -> Any:
        """The global store with this name, read-only: another thread writes it, and others read it."""
        ...

    def transformer(self, supplier: Callable[[], Any], stores: Sequence[str]) -> Callable[[Any, Any], Any]:
        """The method ``transform`` of a new, initialized ``ValueTransformer``, which is closed together with the
        task."""
        ...

    def drop(self, reason: str) -> None:
        """Count the current record as dropped (``dropped-records-total``), and log this, but only from time to time."""
        ...

    def drop_late(self, key: Any, value: Any, stream_time: int, grace_ms: int) -> None:
        """As ``drop``, for a record that is too late for one of its windows at this stream time. ``grace_ms`` is the
        least grace with which the window would still be open."""
        ...

    def late(self, stream_time: int, grace_ms: int) -> None:
        """Count the current record as late: at this stream time, records with which this step would have combined it
        are gone. The record itself is not dropped. ``grace_ms`` is the least grace with which they would all still be
        there."""
        ...

    def count_misses(self, misses: Misses, partner: Partner) -> None:
        """Warn the user if no record of this step, a join, finds its ``partner``. A metric has the ``misses``, if the
        step counts all of them."""
        ...

    def failed(self, error: Exception, key: Any, value: Any) -> None:
        """Call the processing handler for an ``error`` with the record of the current context, which is not the
        record that the step was called with. Returns if the record is to be left out, else raises."""
        ...

    def failed_waiting(
        self, error: Exception, key: Any, value: Any, raw: tuple[bytes | None, bytes | None]
    ) -> None:
        """As ``failed``, for a record that waited in this step. ``raw`` are the bytes of its key and value."""
        ...

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """The object that ``make`` returns, shared by all operators of the task that ask for ``name``."""
        ...

    def load_metadata(self, name: str) -> int | None:
        """An int64 that Kafka Streams also stores with the task's offsets (ProcessorMetadata), or None."""
        ...

    def save_metadata(self, name: str, read: Callable[[], int | None]) -> None:
        """Call ``read()`` at each commit, and store its result as Kafka Streams does; None: there is nothing to
        store."""
        ...

    def drop_as_usual(self) -> None:
        """Count the current record as dropped, without a log message, because this is normal."""
        ...

    def observed(self, on_move: Callable[[], None] | None = None) -> Observed:
        """This step's stream time, which survives restarts (Java forgets it). ``on_move`` is called when it has moved
        without a record, to emit what has become final; no record is current then."""
        ...

    def load_state(self, name: str, default: int) -> int:
        """An int64 that this operator saved under ``name`` with the last commit (a counter)."""
        ...

    def save_state(self, name: str, read: Callable[[], int | None]) -> None:
        """Call ``read()`` at each commit, and store its result with the task's offsets under this operator's name;
        None: there is nothing to store."""
        ...


def misses_of_joiner(environment: OperatorEnvironment, joiner: UserFunction) -> Misses:
    """The misses of a join, which are counted until one of its records finds a partner. The two sides of a join have
    the same joiner, and so they get the same misses."""
    return environment.shared(f"misses of joiner {id(joiner)}", lambda: Misses(every=False))


class Operator:
    """An operator in one task. ``process`` takes the arguments of the edge to this step. It is a closure, because its
    variables are then local, which is fast. Its exceptions go to the processing handler.
    """

    __slots__ = ("process",)

    def __init__(self, process: Callable[..., None]) -> None:
        self.process = process

    def close(self) -> None:
        """Called when the task ends."""


class Folded(Operator):
    """An operator that holds results. ``flush`` writes them to its store."""

    __slots__ = ("flush",)

    def __init__(self, process: Callable[..., None], flush: Callable[[], None]) -> None:
        super().__init__(process)
        self.flush = flush


class ObjectOperation(Operation):
    """An operation that runs as an object, not as inlined code."""

    #: Whether the edge to this step carries (new, old), because the parent is a table.
    takes_changes: ClassVar[bool] = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        """Make the operator for one task."""
        raise NotImplementedError


class HoldingOperation(ObjectOperation):
    """An operation that can keep its results until they are final, if no other step needs them earlier."""

    def fold(self, environment: OperatorEnvironment, bytes_max: int) -> Folded:
        """Make the operator that holds results, up to about ``bytes_max``, until they are final or it is flushed."""
        raise NotImplementedError


class FoldingOperation(HoldingOperation):
    """An aggregation that can do without its store until results are final."""

    #: The store that has its results.
    store: str

    def folds(self) -> str:
        """Why it cannot be folded; empty if it can."""
        raise NotImplementedError
