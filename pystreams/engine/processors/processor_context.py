"""Runs the processors that users write as classes.

Source: org.apache.kafka.streams.processor.internals.ProcessorContextImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.engine.failures.handling import Failures
from pystreams.engine.processors.punctuation import PunctuationQueue, Schedule
from pystreams.engine.processors.same_key import same_key
from pystreams.errors import (
    ConfigError,
    ProcessingError,
    StreamsError,
    TopologyError,
    advice,
    reason,
    summarize,
)
from pystreams.functions import check_callback
from pystreams.ids import TaskId
from pystreams.metrics import Metrics
from pystreams.nearest import not_among
from pystreams.processor import Cancellable, PunctuationType, Punctuator, RecordMetadata
from pystreams.record import NO_HEADERS, ContextCell, FixedKeyRecord, Headers, Record
from pystreams.topology.arguments import checked_store
from pystreams.topology.nodes import Process, ProcessorNode

#: (key, value, timestamp, headers)
Target = Callable[[Any, Any, int, Headers], None]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: Stands for the key during punctuation, when there is no current record whose key must be kept.
_NO_KEY: Final = object()


class Timing:
    """State of a task that generated code and contexts update. The code checks ``interrupted`` between two records."""

    __slots__ = ("commit_requested", "interrupted")

    def __init__(self) -> None:
        #: Whether the run must end after the current record: a punctuator may be due, or a commit was requested.
        self.interrupted = False
        self.commit_requested = False


class TaskView(Protocol):
    """The part of a task that users' processors can access through contexts. ``MockProcessorContext`` has its own task
    that implements it. ``operator_environment.TaskAccess`` adds the part for operators."""

    @property
    def application_id(self) -> str: ...
    @property
    def task_id(self) -> TaskId: ...
    @property
    def config(self) -> StreamsConfig: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def state_dir(self) -> Path: ...
    @property
    def cell(self) -> ContextCell: ...
    @property
    def timing(self) -> Timing: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def failures(self) -> Failures: ...
    @property
    def stores(self) -> Mapping[str, Any]: ...
    @property
    def global_stores(self) -> Mapping[str, Any]: ...
    @property
    def stream_punctuations(self) -> PunctuationQueue: ...
    @property
    def wall_punctuations(self) -> PunctuationQueue: ...


class TaskContext:
    """The access of a user's step to its task. Implements ``processor.ProcessorContext`` except ``forward``."""

    def __init__(self, step: str, stores: Collection[str], task: TaskView) -> None:
        self._step = step
        self._stores = stores
        self._task = task
        self._cell = task.cell

    @property
    def application_id(self) -> str:
        return self._task.application_id

    @property
    def task_id(self) -> TaskId:
        return self._task.task_id

    @property
    def config(self) -> StreamsConfig:
        return self._task.config

    @property
    def metrics(self) -> Metrics:
        return self._task.metrics

    @property
    def state_dir(self) -> Path:
        return self._task.state_dir

    def store(self, name: Any) -> Any:
        name = name if isinstance(name, str) else checked_store(name).name
        if name in self._task.global_stores:
            return self._task.global_stores[name]
        if name not in self._stores:
            raise TopologyError(
                f"processor {self._step} has no access to the store {name}",
                why=f"it is connected to {', '.join(self._stores) or 'no store'}",
                hint="name the store where the processor is added (stores=[...])",
            )
        return self._task.stores[name]

    def schedule(
        self,
        interval: timedelta | int,
        type: PunctuationType,
        punctuator: Punctuator,
        *,
        start_time: datetime | int | None = None,
    ) -> Cancellable:
        given: object = interval
        interval_ms = given // timedelta(milliseconds=1) if isinstance(given, timedelta) else given
        if not isinstance(interval_ms, int) or interval_ms < 1:
            raise ConfigError(
                f"processor {self._step} scheduled a punctuator every {interval}",
                hint="give a timedelta, or milliseconds as an int; the least interval is 1 ms",
            )
        if not isinstance(type, PunctuationType):
            raise ConfigError(
                f"processor {self._step} scheduled a punctuator in {type!r}",
                hint="the type is PunctuationType.STREAM_TIME or PunctuationType.WALL_CLOCK_TIME",
            )
        check_callback(punctuator, "punctuator", f"processor {self._step}")
        task = self._task
        in_stream_time = type is PunctuationType.STREAM_TIME
        now_ms = task.cell.time.task.ms if in_stream_time else task.clock.now_ms()
        start_ms = self._start_ms(start_time, 0 if in_stream_time else now_ms + interval_ms)
        schedule = Schedule(start_ms, interval_ms, punctuator, self.punctuate)
        if start_time is not None and start_ms < now_ms:
            schedule.advance(now_ms)
        if in_stream_time:
            task.stream_punctuations.add(schedule)
            # The punctuator may be due at once: a schedule that starts at 0 is due as soon as stream time is known.
            task.timing.interrupted = True
        else:
            task.wall_punctuations.add(schedule)
        return schedule

    def _start_ms(self, start_time: datetime | int | None, otherwise_ms: int) -> int:
        if start_time is None:
            return otherwise_ms
        start_ms = (
            (start_time - _EPOCH) // timedelta(milliseconds=1)
            if isinstance(start_time, datetime) and start_time.tzinfo is not None
            else start_time
        )
        if not isinstance(start_ms, int) or start_ms < 0:
            raise ConfigError(
                f"processor {self._step} scheduled a punctuator that starts at {start_time!r}",
                hint="give a datetime with a time zone, or milliseconds since 1970; not before 1970",
            )
        return start_ms

    def punctuate(self, punctuator: Punctuator, now_ms: int) -> None:
        context = self._cell.record
        self._cell.record = (None, -1, -1, now_ms, NO_HEADERS)
        try:
            punctuator(now_ms)
        except Exception as error:  # noqa: BLE001 - users' functions raise what they like
            self._task.failures.failed(self._step, error, None, None)
        finally:
            self._cell.record = context

    def commit(self) -> None:
        self._task.timing.commit_requested = True
        self._task.timing.interrupted = True

    def record_metadata(self) -> RecordMetadata | None:
        topic, partition, offset, _, _ = self._cell.record
        return None if topic is None else RecordMetadata(topic, partition, offset)

    def current_stream_time_ms(self) -> int:
        return self._cell.time.task.ms

    def current_system_time_ms(self) -> int:
        return self._task.clock.now_ms()


class ProcessorRunner(TaskContext):
    """A user's processor in one task, and the context of this processor. Implements ``processor.ProcessorContext``."""

    def __init__(
        self,
        node: ProcessorNode,
        operation: Process,
        task: TaskView,
        all: Target,
        children: Mapping[str, Target],
    ) -> None:
        super().__init__(node.name, node.stores, task)
        try:
            self.processor = operation.supplier()
        except Exception as error:
            raise life_cycle_error("the supplier", node.name, task.task_id, error) from error
        self._process = self.processor.process
        self._fixed_key = operation.fixed_key
        self._record = FixedKeyRecord if operation.fixed_key else Record
        self._key: Any = None
        self._all = all
        self._children = children
        self._active = False

    # Methods that the task calls

    def init(self) -> None:
        """Call the processor's ``init``. Raises ``ProcessingError`` if it raises."""
        try:
            self.processor.init(self)
        except Exception as error:
            raise life_cycle_error("init", self._step, self._task.task_id, error) from error

    def close(self) -> None:
        """Call the processor's ``close``. Raises ``ProcessingError`` if it raises."""
        try:
            self.processor.close()
        except Exception as error:
            raise life_cycle_error("close", self._step, self._task.task_id, error) from error

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        before = self._active, self._key
        self._active, self._key = True, key
        try:
            self._process(self._record(key, value, timestamp, headers))
        finally:
            self._active, self._key = before

    def punctuate(self, punctuator: Punctuator, now_ms: int) -> None:
        before = self._active, self._key
        self._active, self._key = True, _NO_KEY
        try:
            super().punctuate(punctuator, now_ms)
        finally:
            self._active, self._key = before

    # Methods that the processor calls

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        self._check(record)
        target = self._all if child is None else self._child(child)
        cell, timestamp, headers = self._cell, record.timestamp, record.headers
        if type(headers) is not tuple:
            headers = tuple(headers)
        context = cell.record
        if context[3] == timestamp and context[4] is headers:
            target(record.key, record.value, timestamp, headers)
            return
        cell.record = (context[0], context[1], context[2], timestamp, headers)
        try:
            target(record.key, record.value, timestamp, headers)
        finally:
            cell.record = context

    def _check(self, record: Record[Any, Any]) -> None:
        if not self._active:
            raise ProcessingError(
                f"processor {self._step} called forward outside of process and punctuation",
                where=f"task {self._task.task_id}",
                hint="forward only while a record or a punctuator is at work",
            )
        timestamp: object = getattr(record, "timestamp", None)
        if type(timestamp) is not int or timestamp < 0:
            raise wrong_record(record, self._step, self._task.task_id)
        if self._fixed_key and record.key is not self._key:
            self._check_key(record)

    def _check_key(self, record: Record[Any, Any]) -> None:
        if self._key is _NO_KEY:
            if not isinstance(record, FixedKeyRecord):
                raise ProcessingError(
                    f"processor {self._step} forwarded a record of its own in punctuation",
                    where=f"task {self._task.task_id}",
                    why="process_values keeps the keys, so that the stream needs no repartitioning; punctuation "
                    "processes no record, so it has no key to keep",
                    hint="forward a record that process was given, or record.with_value(...) of it; or use process",
                )
        elif not same_key(record.key, self._key):
            raise ProcessingError(
                f"processor {self._step} changed the key of a record",
                where=f"task {self._task.task_id}",
                why="process_values keeps the key, so that the stream needs no repartitioning",
                hint="forward record.with_value(...), or use process",
            )

    def _child(self, name: str) -> Target:
        target = self._children.get(name)
        if target is None:
            raise TopologyError(
                f"processor {self._step} forwarded to {name}, which is not a child of it",
                **not_among(str(name), self._children, "its children"),
            )
        return target


def wrong_record(record: object, step: str, task: TaskId) -> ProcessingError:
    """The error for a forwarded object that is not a record, or a record whose timestamp is not valid."""
    if not hasattr(record, "timestamp"):
        return ProcessingError(
            f"processor {step} forwarded a {type(record).__name__}, which is not a record",
            where=f"task {task}",
            hint="forward Record(key, value, timestamp), or record.with_value(...)",
        )
    timestamp: object = getattr(record, "timestamp")  # noqa: B009 - of whatever it is
    wrong = "negative " if isinstance(timestamp, int) else ""
    return ProcessingError(
        f"processor {step} forwarded a record with the {wrong}timestamp {timestamp!r}",
        where=f"task {task}",
        hint="a timestamp is a whole number of milliseconds since 1970",
    )


def life_cycle_error(what: str, step: str, task: TaskId, error: Exception) -> ProcessingError:
    """The error for an exception in ``init`` or ``close`` of a user's processor."""
    return ProcessingError(
        f"{what} of processor {step} {'failed:' if isinstance(error, StreamsError) else 'raised'} {summarize(error)}",
        where=f"task {task}",
        why=reason(error),
        hint=advice(error, "mend the processor: no handler is asked where no record is at work"),
    )
