"""Whether a thread lags: whether its inputs hold records that it should have processed by now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pystreams.broker.port import Consumer
from pystreams.clock import Clock
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.task import TaskStatus

#: Records that arrived longer ago than this should have been processed. The steady flow of an application that keeps up
#: is younger.
LOOK_INTERVAL_MS = 1_000.0


#: Fewer records of a partition at once are the steady flow, too.
_STEADY_RECORDS_MAX = 32


class Backlog:
    """The backlog of one thread, as far as it concerns the tasks that ``counts`` is true for. A new thread lags, until
    a look at its inputs shows something else."""

    def __init__(
        self, consumer: Consumer, clock: Clock, spread_ms: int, counts: Callable[[ActiveTask], bool]
    ) -> None:
        """``spread_ms``: many records that are polled at once and are further apart than this come from a backlog."""
        self._consumer = consumer
        self._clock = clock
        self._spread_ms = spread_ms
        self._counts = counts
        #: Whether there was a backlog at the last look or arrival.
        self.lags = True
        self._next_look_ms = clock.monotonic_ms() + LOOK_INTERVAL_MS
        #: The end offsets at the last look.
        self._ends: dict[TopicPartition, int] = {}
        #: Whether there was ever no backlog.
        self.was_worked_off = False

    def arrived(self, batches: Sequence[RecordBatch], tasks: Iterable[ActiveTask]) -> None:
        """Records were polled, and ``tasks``, all of the thread, have them."""
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
            # All of them, because each notes its ends.
            behind = [self._is_behind(task, before) for task in tasks]
            self.lags = any(behind)
            self.was_worked_off |= not self.lags

    def _is_behind(self, task: ActiveTask, before: Mapping[TopicPartition, int]) -> bool:
        """Whether a task has not processed all up to the end offsets ``before``. Notes the present ones."""
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
