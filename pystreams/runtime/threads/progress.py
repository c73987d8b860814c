"""The progress of a running application, in the form in which users see it: threads, tasks, positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.restoring.store_restore import StoreRestore
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.task_manager import TaskManager
from pystreams.runtime.threads.thread_state import ThreadState


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """``lag`` is the number of offsets between the processed records and the end of the inputs as last seen, None while
    that is not known; when it is known, ``lags`` has it for each input. ``buffered`` counts the records that were read
    and are not processed yet."""

    task_id: TaskId
    status: TaskStatus
    inputs: tuple[TopicPartition, ...]
    lag: int | None = None
    buffered: int = 0
    stream_time_ms: int = -1
    lags: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """A store that is being restored. Offsets are offsets of its changelog; ``end_offset`` is exclusive."""

    task_id: TaskId
    store: str
    start_offset: int
    position: int
    end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class StandbyProgress:
    """A task that runs elsewhere, and whose stores are kept up to date here. ``lag`` is the number of changelog offsets
    by which its stores are behind, None while that is not known."""

    task_id: TaskId
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class ThreadProgress:
    """A thread as it was a moment ago. ``internal_records`` counts those of its ``records`` that came from internal
    topics."""

    name: str
    state: ThreadState
    records: int = 0
    tasks: tuple[TaskProgress, ...] = ()
    restoring: tuple[RestoreProgress, ...] = ()
    paused: tuple[TopicPartition, ...] = ()
    standbys: tuple[StandbyProgress, ...] = ()
    internal_records: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """All threads together. ``records`` counts the records that were processed since the client was made.
    ``internal_records`` counts those of them that came from internal topics, so that the application itself has written
    them."""

    records: int
    threads: tuple[ThreadProgress, ...]
    internal_records: int = 0

    def going_on_with(self, threads: tuple[ThreadProgress, ...]) -> Progress:
        """The progress of these threads, with the records that are counted here added to theirs."""
        records = sum(thread.records for thread in threads)
        internal = sum(thread.internal_records for thread in threads)
        return Progress(self.records + records, threads, self.internal_records + internal)

    @property
    def source_records(self) -> int:
        """The records that came from outside of the application."""
        return self.records - self.internal_records

    @property
    def lag(self) -> int | None:
        """The lag of all tasks together, None while that of some is not known."""
        lags = [task.lag for thread in self.threads for task in thread.tasks]
        return None if None in lags else sum(lag for lag in lags if lag is not None)

    @property
    def standbys(self) -> tuple[StandbyProgress, ...]:
        return tuple(standby for thread in self.threads for standby in thread.standbys)

    @property
    def standby_lag(self) -> int | None:
        """The lag of all standbys together, None while that of some is not known."""
        lags = [standby.lag for standby in self.standbys]
        return None if None in lags else sum(lag for lag in lags if lag is not None)

    @property
    def restoring(self) -> tuple[RestoreProgress, ...]:
        return tuple(restore for thread in self.threads for restore in thread.restoring)


def task_progress(tasks: TaskManager) -> tuple[TaskProgress, ...]:
    """The tasks of a thread. Only that thread may call this."""
    progress = []
    for task in sorted(tasks.tasks(), key=lambda task: task.task_id):
        lags = tasks.lags(task)
        progress.append(
            TaskProgress(
                task.task_id,
                task.status,
                tuple(sorted(task.inputs)),
                None if lags is None else sum(lags.values()),
                tasks.buffered(task),
                task.stream.stream_time,
                lags or {},
            )
        )
    return tuple(progress)


def standby_progress(tasks: TaskManager) -> tuple[StandbyProgress, ...]:
    """The standbys of a thread. Only that thread may call this."""
    return tuple(StandbyProgress(task, lag) for task, lag in sorted(tasks.standby_lags().items()))


def restore_progress(restore: StoreRestore) -> RestoreProgress:
    """A copy that no longer changes."""
    return RestoreProgress(
        restore.task_id,
        restore.store,
        restore.start_offset,
        restore.position,
        restore.end_offset,
        restore.records,
    )
