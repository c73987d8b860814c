"""Whether a thread lags: whether its inputs hold records that it should have processed by now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pystreams.broker.port import Consumer
from pystreams.clock import Clock
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.task import TaskStatus

#: Records that were there so long ago should have been processed. The steady flow of an application that keeps up is
#: younger than that.
LOOK_INTERVAL_MS = 1_000.0


class Backlog:
    """The backlog of one thread, as far as it concerns the tasks that ``counts`` is true for. A new thread lags, until
    a look at its inputs shows something else."""

    def __init__(
        self, consumer: Consumer, clock: Clock, spread_ms: int, counts: Callable[[ActiveTask], bool]
    ) -> None:
        """``spread_ms``: records that are polled together and are further apart than this come from a backlog."""
        self._consumer = consumer
        self._clock = clock
        self._spread_ms = spread_ms
        self._counts = counts
        self._lags = True
        self._next_look_ms = clock.monotonic_ms() + LOOK_INTERVAL_MS
        #: The end offsets at the last look.
        self._ends: dict[TopicPartition, int] = {}
        #: Whether there was ever no backlog.
        self.was_worked_off = False

    def arrived(self, batches: Sequence[RecordBatch]) -> None:
        """Records were polled."""
        if self._lags or not batches:
            return
        first = min(batch.timestamps[0] for batch in batches)
        last = max(batch.timestamps[-1] for batch in batches)
        if last - first > self._spread_ms:
            self._lags = True
            self._ends = {}
            self._next_look_ms = self._clock.monotonic_ms() + LOOK_INTERVAL_MS

    def lags(self, tasks: Iterable[ActiveTask]) -> bool:
        """Whether the thread, whose tasks these are, lags. Looks at their inputs about once a second."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + LOOK_INTERVAL_MS
            self._lags = self._look(tasks)
            self.was_worked_off |= not self._lags
        return self._lags

    def _look(self, tasks: Iterable[ActiveTask]) -> bool:
        before, self._ends = self._ends, {}
        lags = False
        for task in tasks:
            if task.status is not TaskStatus.RUNNING:
                lags |= not self.was_worked_off
            elif self._counts(task):
                for partition, position in task.stream.positions().items():
                    end = self._consumer.known_end_offset(partition)
                    if end is None:
                        lags = True
                        continue
                    self._ends[partition] = end
                    if not task.stream.buffered(partition):
                        lags |= self._consumer.position(partition) < before.get(partition, end)
                    else:
                        lags |= position.offset < before.get(partition, end)
        return lags
