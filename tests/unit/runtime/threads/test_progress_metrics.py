"""Metrics say what stores and inputs lack, and nothing of tasks that have gone."""

from __future__ import annotations

from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import names
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.threads.progress import (
    RestoreProgress,
    StandbyProgress,
    TaskProgress,
    ThreadProgress,
)
from pystreams.runtime.threads.progress_metrics import thread_samples
from pystreams.runtime.threads.thread_state import ThreadState

ONE, TWO = TaskId(0, 1), TaskId(0, 2)


def restore(task: TaskId, position: int, end: int, store: str = "counts") -> RestoreProgress:
    return RestoreProgress(task, store, 0, position, end, position)


def shown(thread: ThreadProgress, name: str, by: str = "task_id") -> dict[str, float]:
    samples = [sample for sample in thread_samples(thread) if sample.name == name]
    return {dict(sample.tags)[by]: sample.value for sample in samples}


def test_what_is_left_of_all_stores_of_a_task_counts_together() -> None:
    restoring = (restore(ONE, 10, 25), restore(ONE, 0, 5, "rows"), restore(TWO, 7, 7))
    thread = ThreadProgress("t", ThreadState.PARTITIONS_ASSIGNED, restoring=restoring)
    assert shown(thread, names.RESTORE_REMAINING) == {"0_1": 20, "0_2": 0}


def test_a_standby_has_its_lag_as_soon_as_it_is_known() -> None:
    standbys = (StandbyProgress(ONE), StandbyProgress(TWO, 8))
    thread = ThreadProgress("t", ThreadState.RUNNING, standbys=standbys)
    assert shown(thread, names.STANDBY_LAG) == {"0_2": 8}
    assert shown(thread, names.STANDBYS, "thread_id") == {"t": 2}


def test_the_lag_is_that_of_each_input() -> None:
    lags = {TopicPartition("in", 1): 3, TopicPartition("rows", 1): 0}
    task = TaskProgress(ONE, TaskStatus.RUNNING, tuple(lags), 3, 2, 77, lags)
    thread = ThreadProgress("t", ThreadState.RUNNING, tasks=(task,))
    assert shown(thread, names.RECORDS_LAG, "topic") == {"in": 3, "rows": 0}
    assert shown(thread, names.RECORDS_LAG, "client_id") == {"t-consumer": 0}
    assert shown(thread, names.BUFFERED_RECORDS) == {"0_1": 2}
    assert shown(thread, names.STREAM_TIME) == {"0_1": 77}


def test_a_thread_without_tasks_has_its_state_alone() -> None:
    samples = list(thread_samples(ThreadProgress("t", ThreadState.DEAD)))
    assert {sample.name: sample.value for sample in samples} == {
        names.THREAD_STATE: 6,
        names.TASKS: 0,
        names.STANDBYS: 0,
    }
