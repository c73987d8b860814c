"""The access of operators to their task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from pystreams.dsl.operators.base import Forward
from pystreams.dsl.operators.partners import Misses, Partner
from pystreams.engine.failures.handling import Send
from pystreams.engine.failures.unmatched import JoinCounts
from pystreams.engine.operator_memory import OperatorMemory
from pystreams.engine.processors.processor_context import TaskView
from pystreams.engine.processors.transformer import TransformerRunner
from pystreams.engine.task_flow import TaskFlow
from pystreams.errors import TopologyError
from pystreams.record import NO_HEADERS, ContextCell
from pystreams.stream_time import NO_TIME, Observed

T = TypeVar("T")


class TaskAccess(TaskView, Protocol):
    """The part of a task that compiled code and operators use. Users' processors get the smaller ``TaskView``."""

    @property
    def send(self) -> Send: ...
    @property
    def partition_count(self) -> Callable[[str], int]: ...
    @property
    def flow(self) -> TaskFlow: ...
    @property
    def memory(self) -> OperatorMemory: ...
    @property
    def joins(self) -> JoinCounts: ...


class NodeEnvironment:
    """A node's access to its task. Implements ``dsl.operators.base.OperatorEnvironment``."""

    def __init__(
        self,
        node_name: str,
        place: int,
        task: TaskAccess,
        forward: Forward,
        shared: dict[str, Any],
        at_close: Callable[[Callable[[], None]], None],
    ) -> None:
        """``place`` is greater than the places of all nodes upstream. ``shared`` holds the objects that the task's
        operators share; ``at_close`` registers a function to call when the task closes."""
        self.node_name = node_name
        self._place = place
        self.application_id = task.application_id
        self.partition = task.task_id.partition
        self.cell: ContextCell = task.cell
        self.forward = forward
        self._task = task
        self._at_close = at_close
        self._shared = shared
        self._stores = task.stores
        self._failures = task.failures
        self._memory = task.memory

    def store(self, name: str) -> Any:
        """Raises ``TopologyError`` if the task has no store of that name."""
        if name not in self._stores:
            raise TopologyError(
                f"{self.node_name} uses the store {name}, which its task does not have",
                why=f"the task's stores are {', '.join(self._stores) or 'none'}",
                hint="connect the store to the step that uses it",
            )
        return self._stores[name]

    def global_store(self, name: str) -> Any:
        """The global store of that name, for reading only."""
        return self._task.global_stores[name]

    def transformer(self, supplier: Callable[[], Any], stores: Sequence[str]) -> Callable[[Any, Any], Any]:
        runner = TransformerRunner(self.node_name, stores, supplier, self._task)
        runner.init()
        self._at_close(runner.close)
        return runner.transform

    def drop(self, reason: str) -> None:
        self._failures.drop(self.node_name, reason)

    def drop_late(self, key: Any, value: Any, stream_time: int, grace_ms: int) -> None:
        self._failures.drop_late(self.node_name, key, value, stream_time, grace_ms)

    def drop_as_usual(self) -> None:
        self._failures.drop_as_usual(self.node_name)

    def late(self, stream_time: int, grace_ms: int) -> None:
        self._failures.late(self.node_name, stream_time, grace_ms)

    def count_misses(self, misses: Misses, partner: Partner) -> None:
        self._task.joins.add(self.node_name, misses, partner)

    def failed(self, error: Exception, key: Any, value: Any) -> None:
        self._failures.failed(self.node_name, error, key, value)

    def failed_waiting(
        self, error: Exception, key: Any, value: Any, raw: tuple[bytes | None, bytes | None]
    ) -> None:
        self._failures.failed_waiting(self.node_name, error, key, value, raw)

    def shared(self, name: str, make: Callable[[], T]) -> T:
        if name not in self._shared:
            self._shared[name] = make()
        found: T = self._shared[name]
        return found

    def load_metadata(self, name: str) -> int | None:
        return self._memory.load_plain(name)

    def save_metadata(self, name: str, read: Callable[[], int | None]) -> None:
        self._memory.save_plain(name, read)

    def observed(self, on_move: Callable[[], None] | None = None) -> Observed:
        observed = self.cell.time.of_step(self._place)
        observed.go_on(self.load_state("stream_time", NO_TIME), self.load_state("seen", NO_TIME))
        self.save_state("stream_time", lambda: observed.ms)
        self.save_state("seen", lambda: observed.held_ms)
        if on_move is not None:
            observed.on_move = partial(self._move, observed, on_move)
        return observed

    def _move(self, observed: Observed, on_move: Callable[[], None]) -> None:
        context, self.cell.record = self.cell.record, (None, -1, -1, observed.ms, NO_HEADERS)
        try:
            on_move()
        except Exception as error:  # noqa: BLE001 - users' functions raise what they like
            self.failed(error, None, None)
        finally:
            self.cell.record = context

    def load_state(self, name: str, default: int) -> int:
        return self._memory.load(self.node_name, name, default)

    def save_state(self, name: str, read: Callable[[], int | None]) -> None:
        self._memory.save(self.node_name, name, read)
