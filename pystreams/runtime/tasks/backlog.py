"""Whether a thread lags: whether its inputs hold records that it should have processed by now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pystreams.broker.port import Consumer
from pystreams.clock import Clock
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.task import TaskStatus

#: A record that arrived longer ago than this should have been processed: in an application that keeps up, unprocessed
#: records are younger.
LOOK_INTERVAL_MS = 1_000.0


#: At most this many records of a partition in one poll are no sign of a backlog.
_STEADY_RECORDS_MAX = 32


def has_more(consumer: Consumer, partition: TopicPartition) -> bool:
    """Whether the log may have records of a partition that were not polled yet: its end may be unknown."""
    end = consumer.known_end_offset(partition)
    return end is None or end > consumer.position(partition)


class Backlog:
    """The backlog of one thread, of those of its tasks for which ``counts`` is true. A new thread lags until a look at
    its inputs shows the contrary."""

    def __init__(
        self, consumer: Consumer, clock: Clock, spread_ms: int, counts: Callable[[ActiveTask], bool]
    ) -> None:
        """``spread_ms``: if many records come in one poll, and their timestamps are further apart than this, they come
        from a backlog."""
        self._consumer = consumer
        self._clock = clock
        self._spread_ms = spread_ms
        self._counts = counts
        #: Whether there was a backlog at the last look or arrival.
        self.lags = True
        self._next_look_ms = clock.monotonic_ms() + LOOK_INTERVAL_MS
        #: The end offsets at the last look.
        self._ends: dict[TopicPartition, int] = {}
        #: Whether a look has ever found no backlog.
        self.was_worked_off = False

    def arrived(self, batches: Sequence[RecordBatch], tasks: Iterable[ActiveTask]) -> None:
        """Records were polled and given to ``tasks``, which are all tasks of the thread."""
        if self.lags:
            return
        self.look(tasks)
        many = [batch.timestamps for batch in batches if len(batch.timestamps) > _STEADY_RECORDS_MAX]
        if many and max(times[-1] for times in many) - min(times[0] for times in many) > self._spread_ms:
            self.lags = True
            self._ends = {}
            self._next_look_ms = self._clock.monotonic_ms() + LOOK_INTERVAL_MS

    def look(self, tasks: Iterable[ActiveTask]) -> None:
        """Look at the inputs of the thread's tasks, but only about once a second."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + LOOK_INTERVAL_MS
            before, self._ends = self._ends, {}
            # A list, so that ``_is_behind`` notes the end offsets of every task.
            behind = [self._is_behind(task, before) for task in tasks]
            self.lags = any(behind)
            self.was_worked_off |= not self.lags

    def _is_behind(self, task: ActiveTask, before: Mapping[TopicPartition, int]) -> bool:
        """Whether a task has records before the end offsets ``before`` still to process. Notes the present end offsets
        for the next look."""
        if task.status is not TaskStatus.RUNNING:
            return not self.was_worked_off
        if not self._counts(task):
            return False
        behind = False
        for partition in task.inputs:
            end = self._consumer.known_end_offset(partition)
            if end is None:
                behind = True
                continue
            self._ends[partition] = end
            position = self._consumer.position(partition)
            if task.stream.buffered(partition):
                position = task.stream.positions()[partition].offset
            behind |= position < before.get(partition, end)
        return behind
