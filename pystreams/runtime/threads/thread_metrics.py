"""The metrics of a stream thread's rounds: measured for each poll, step of processing and commit, never per record."""

from __future__ import annotations

from collections.abc import Sequence

from pystreams.metrics import Metrics, names
from pystreams.record import RecordBatch


class ThreadMetrics:
    """The metrics of one thread. Times are monotonic."""

    def __init__(self, metrics: Metrics, thread: str) -> None:
        tags = {"thread_id": thread}
        self._polls = metrics.counter(names.POLLED, **tags)
        self._poll_ms = metrics.measure(names.POLL_LATENCY, names.POLL_RATIO, **tags)
        self._poll_records = metrics.measure(names.POLL_RECORDS, **tags)
        self._processed = metrics.counter(names.PROCESSED, **tags)
        self._process_ms = metrics.measure(names.PROCESS_LATENCY, names.PROCESS_RATIO, **tags)
        self._process_records = metrics.measure(names.PROCESS_RECORDS, **tags)
        self._punctuated = metrics.counter(names.PUNCTUATED, **tags)
        self._punctuate_ms = metrics.measure(names.PUNCTUATE_LATENCY, names.PUNCTUATE_RATIO, **tags)
        self._commits = metrics.counter(names.COMMITTED, **tags)
        self._commit_ms = metrics.measure(names.COMMIT_LATENCY, names.COMMIT_RATIO, **tags)
        self._rebalances = metrics.counter(names.REBALANCES, **tags)
        self._pause_ms = metrics.measure(names.REBALANCE_PAUSE, **tags)
        #: The time of the oldest assignment of which some tasks do not run yet; None: all run.
        self._settling_since_ms: float | None = None

    @property
    def commits(self) -> int:
        """How often the thread has committed."""
        return int(self._commits.value)

    def polled(self, batches: Sequence[RecordBatch], began_ms: float, now_ms: float) -> None:
        """A poll has returned."""
        self._polls.add()
        self._poll_ms.record(now_ms - began_ms, 1, now_ms)
        if batches:
            self._poll_records.record(sum(map(len, batches)), 1, now_ms)

    def processed(self, records: int, began_ms: float, now_ms: float) -> None:
        """The tasks have processed records, at least one."""
        self._processed.add(records)
        self._process_ms.record(now_ms - began_ms, records, now_ms)
        self._process_records.record(records, 1, now_ms)

    def punctuated(self, calls: int, began_ms: float, now_ms: float) -> None:
        """Wall-clock punctuators have been called, at least one."""
        self._punctuated.add(calls)
        self._punctuate_ms.record(now_ms - began_ms, calls, now_ms)

    def after_commit(self, began_ms: float, now_ms: float) -> None:
        """The thread has committed."""
        self._commits.add()
        self._commit_ms.record(now_ms - began_ms, 1, now_ms)

    def assigned(self, now_ms: float) -> None:
        """The group has given the thread an assignment. Called again when one that failed is tried again."""
        if self._settling_since_ms is None:
            self._settling_since_ms = now_ms

    def carried_out(self) -> None:
        """The thread has the tasks of the assignment, restored or not."""
        self._rebalances.add()

    def settled(self, now_ms: float) -> None:
        """All tasks of the assignment run."""
        if self._settling_since_ms is not None:
            self._pause_ms.record(now_ms - self._settling_since_ms, 1, now_ms)
            self._settling_since_ms = None
