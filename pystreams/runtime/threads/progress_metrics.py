"""Metrics that are computed from a client's progress. Nothing is counted for them, and a task has them only as long as
it is here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pystreams.metrics import Sample, names
from pystreams.runtime.threads.progress import TaskProgress, ThreadProgress
from pystreams.runtime.threads.thread_state import ThreadState

#: States as numbers, as in Kafka Streams.
_STATES = tuple(ThreadState)


def thread_samples(thread: ThreadProgress) -> Iterator[Sample]:
    """The metrics of a thread and its tasks, as of its last report."""
    tags = (("thread_id", thread.name),)
    yield Sample(names.THREAD_STATE, tags, _STATES.index(thread.state))
    yield Sample(names.TASKS, tags, len(thread.tasks))
    yield Sample(names.STANDBYS, tags, len(thread.standbys))
    left: Counter[str] = Counter()
    for restore in thread.restoring:
        left[str(restore.task_id)] += max(0, restore.end_offset - restore.position)
    for task_id, records in left.items():
        yield Sample(names.RESTORE_REMAINING, (("task_id", task_id), *tags), records)
    for standby in thread.standbys:
        if standby.lag is not None:
            yield Sample(names.STANDBY_LAG, (("task_id", str(standby.task_id)), *tags), standby.lag)
    for task in thread.tasks:
        yield from _task_samples(thread.name, task)


def _task_samples(thread: str, task: TaskProgress) -> Iterator[Sample]:
    tags = (("task_id", str(task.task_id)), ("thread_id", thread))
    yield Sample(names.BUFFERED_RECORDS, tags, task.buffered)
    if task.stream_time_ms >= 0:
        yield Sample(names.STREAM_TIME, tags, task.stream_time_ms)
    for (topic, partition), lag in task.lags.items():
        of_partition = (("client_id", f"{thread}-consumer"), ("partition", str(partition)), ("topic", topic))
        yield Sample(names.RECORDS_LAG, of_partition, lag)
