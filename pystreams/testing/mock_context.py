"""A context to test one processor alone: it records the processor's calls and does nothing else.

Source: org.apache.kafka.streams.processor.api.MockProcessorContext.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from pystreams.clock import ManualClock
from pystreams.config import StreamsConfig
from pystreams.engine.failures.drop_counts import DropCounts
from pystreams.engine.failures.handling import Failures, Handlers
from pystreams.engine.failures.left_out import LeftOut
from pystreams.engine.failures.origins import Origins
from pystreams.engine.operator_memory import OperatorMemory
from pystreams.engine.processors.processor_context import TaskContext, Timing, wrong_record
from pystreams.engine.processors.punctuation import PunctuationQueue, Schedule
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TaskId
from pystreams.metrics import Metrics
from pystreams.processor import ProcessorContext, PunctuationType, Punctuator
from pystreams.record import NO_HEADERS, ContextCell, Record
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores
from pystreams.testing.producer import MemoryProducer
from pystreams.topology.arguments import checked_store

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from pystreams.processor import StoreOf

    #: Without type arguments, the types of key and value are ``Any``.
    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

S = TypeVar("S")

_STEP = "processor"


@dataclass(frozen=True, slots=True)
class CapturedForward(Generic[K, V]):
    """A record that the processor forwarded: to ``child``, or to all (None)."""

    record: Record[K, V]
    child: str | None = None


@dataclass(slots=True)
class CapturedPunctuator:
    """A scheduled punctuator. ``start_time`` is as it was given. Call ``punctuator(time_ms)`` to fire it."""

    interval_ms: int
    type: PunctuationType
    punctuator: Punctuator
    start_time: datetime | int | None = None
    cancelled: bool = False

    def cancel(self) -> None:
        """Cancel the punctuator, as the processor does."""
        self.cancelled = True


class MockProcessorContext(TaskContext, ProcessorContext[K, V]):
    """Records the calls of a processor: initialize the processor with this context, pass it records, check the results.

    For example::

        context = MockProcessorContext[str, int]()
        counts = context.add_store(Stores.key_value_store("counts", str, int))
        processor = Counter()
        processor.init(context)
        processor.process(Record("a", "x", 10))
        assert context.forwarded() == [CapturedForward(Record("a", 1, 10))]

    Nothing happens by itself: punctuators are captured and do not fire, and the test sets the times and the metadata of
    a record. Stores are in memory, without changelog and cache. ``config`` are settings; ``state_dir`` is the
    processor's state directory, if it needs one. To test topologies use ``TopologyTestDriver``.
    """

    def __init__(
        self,
        config: StreamsConfig | Mapping[str, Any] | None = None,
        *,
        task_id: TaskId = TaskId(0, 0),  # noqa: B008 - it cannot be changed
        state_dir: Path | None = None,
    ) -> None:
        if not isinstance(config, StreamsConfig):
            config = StreamsConfig.from_mapping(
                {"application_id": "mock-processor-context"} | dict(config or {})
            )
        self._mock = _MockTask(config, task_id, state_dir)
        super().__init__(_STEP, self._mock.stores, self._mock)
        self._forwarded: list[CapturedForward[K, V]] = []
        self._scheduled: list[CapturedPunctuator] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Methods that the processor calls

    def forward(self, record: Record[K, V], child: str | None = None) -> None:
        """Record the forwarded record. Any child name is accepted."""
        time: object = getattr(record, "timestamp", None)
        if type(time) is not int or time < 0:
            raise wrong_record(record, _STEP, self.task_id)
        self._forwarded.append(CapturedForward(record, child))

    def schedule(
        self,
        interval: timedelta | int,
        type: PunctuationType,
        punctuator: Punctuator,
        *,
        start_time: datetime | int | None = None,
    ) -> CapturedPunctuator:
        """Record the punctuator. Raises ``ConfigError`` and ``TopologyError`` as a task's context does."""
        super().schedule(interval, type, punctuator, start_time=start_time)
        interval_ms = interval // timedelta(milliseconds=1) if isinstance(interval, timedelta) else interval
        captured = CapturedPunctuator(interval_ms, type, punctuator, start_time)
        self._scheduled.append(captured)
        return captured

    # Methods that the test calls

    def add_store(self, store: StoreSpec[S] | StoreOf[S]) -> S:
        """Open a store in memory for the processor. Returns it, so that the test can fill it or check its content."""
        return self._mock.add_store(checked_store(store))  # type: ignore[no-any-return]

    def forwarded(self, child: str | None = None) -> list[CapturedForward[K, V]]:
        """The forwarded records; with ``child`` those that were forwarded to it by name."""
        return [one for one in self._forwarded if child is None or one.child == child]

    def reset_forwarded(self) -> None:
        """Forget the forwarded records."""
        self._forwarded.clear()

    @property
    def scheduled(self) -> list[CapturedPunctuator]:
        """The scheduled punctuators, including cancelled ones."""
        return list(self._scheduled)

    @property
    def committed(self) -> bool:
        """Whether the processor has asked for a commit."""
        return self._mock.timing.commit_requested

    def reset_committed(self) -> None:
        """Forget the request for a commit."""
        self._mock.timing.commit_requested = False

    def set_record_metadata(self, topic: str | None, partition: int = 0, offset: int = 0) -> None:
        """Set topic, partition and offset of the current record; topic None: there is no record, as in punctuation."""
        _, _, _, timestamp, headers = self._cell.record
        known = topic is not None
        self._cell.record = (topic, partition if known else -1, offset if known else -1, timestamp, headers)

    def set_current_stream_time_ms(self, time_ms: int) -> None:
        """Set the stream time; without a call it is -1."""
        self._mock.cell.time.task.reset(time_ms, time_ms)

    def set_current_system_time_ms(self, time_ms: int) -> None:
        """Set the wall-clock time; without a call it is 0."""
        self._mock.clock = ManualClock(time_ms)

    def close(self) -> None:
        """Close the stores."""
        self._mock.close()


class _MockTask:
    """A task of one processor, which does not run. Implements ``engine.processors.processor_context.TaskView``."""

    def __init__(self, config: StreamsConfig, task_id: TaskId, state_dir: Path | None) -> None:
        self.config = config
        self.application_id = config.application_id
        self.task_id = task_id
        self.metrics = Metrics()
        self.cell = ContextCell()
        self.cell.record = (None, -1, -1, 0, NO_HEADERS)
        self.timing = Timing()
        self.clock = ManualClock()
        self.stores: dict[str, Any] = {}
        self.global_stores: dict[str, Any] = {}
        self.stream_punctuations: PunctuationQueue = _NoPunctuation()
        self.wall_punctuations: PunctuationQueue = _NoPunctuation()
        dropped = DropCounts(self.metrics, OperatorMemory(), task_id=task_id)
        handlers, send = Handlers.of(config), MemoryProducer().send
        self.failures = Failures(
            task_id, self.cell, handlers, send, dropped, self.clock, Origins(), LeftOut()
        )
        self._expired = lambda _: dropped.dropped.add()
        self._state_dir = state_dir
        self._states: list[TaskStores] = []

    @property
    def state_dir(self) -> Path:
        if self._state_dir is None:
            raise ConfigError(
                "the mock context has no folder for the processor",
                hint="give it one: MockProcessorContext(state_dir=tmp_path)",
            )
        return self._state_dir

    def add_store(self, spec: StoreSpec) -> Any:
        if spec.name in self.stores:
            raise StateError(f"the mock context already has a store {spec.name}")
        state = TaskStores.open(
            None,
            [spec],
            task_id=self.task_id,
            cell=self.cell,
            log_of=lambda _: None,
            expired=self._expired,
        )
        self._states.append(state)
        self.stores[spec.name] = store = state.stores[spec.name]
        return store

    def close(self) -> None:
        for state in self._states:
            state.close()


class _NoPunctuation(PunctuationQueue):
    def add(self, schedule: Schedule) -> None:
        """Does nothing, because punctuators do not fire by themselves."""
