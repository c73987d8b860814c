"""While something lags, the tasks of a thread process in the order of time.

Each partition could be read as fast as it comes. But what tasks write meets in the topics between sub-topologies, and
the records of a partition that is hours behind another would be late there for every window. So no task processes
records that are more than a slack later than the earliest record of another one, and all wait for a partition that
holds records of which none has arrived yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from pystreams.broker.port import Consumer
from pystreams.clock import Clock
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.catching_up.order_plan import OrderPlan
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.task_set import TaskSet

log = logging.getLogger(__name__)

#: How long all tasks wait for a partition of which nothing arrives. A log that is well answers within this time, and
#: the leader of a partition is replaced within it; a partition that is gone for longer must not stop the others.
HOLD_MS_MAX = 30_000.0

#: A thread lags if records have not been processed that were there at the last look, which was so long ago.
LOOK_INTERVAL_MS = 1_000.0

#: Lets a task process some records, up to the first that is later than a time (ms). Returns their number.
Go = Callable[[ActiveTask, int], int]


class TimeOrder:
    """The order of the tasks of one thread. ``set_working`` is told which task is to blame for what is raised."""

    def __init__(
        self,
        plan: OrderPlan,
        consumer: Consumer,
        clock: Clock,
        set_working: Callable[[ActiveTask | None], None],
    ) -> None:
        self._plan = plan
        self._consumer = consumer
        self._clock = clock
        self._set_working = set_working
        self._lags = True
        #: The first records may lie anywhere, so nothing is processed before all tasks have started. Later, tasks that
        #: run do not wait for new ones, which may have large stores to restore.
        self._has_caught_up = False
        self._next_look_ms = clock.monotonic_ms() + LOOK_INTERVAL_MS
        #: The end offsets at the last look.
        self._ends: dict[TopicPartition, int] = {}
        self._held_since_ms: float | None = None
        #: Partitions that are not waited for any more, until something arrives; and those that were ever among them.
        self._given_up: set[TopicPartition] = set()
        self._told: set[TopicPartition] = set()

    def has(self, task: ActiveTask) -> bool:
        """Whether the task is one of those that are in an order."""
        return task.task_id.subtopology in self._plan.subtopologies

    # Whether the order matters now

    def arrived(self, batches: Sequence[RecordBatch]) -> None:
        """Records were polled. If they are far apart, the thread has something to catch up with."""
        if self._lags or not batches:
            return
        first = min(batch.timestamps[0] for batch in batches)
        last = max(batch.timestamps[-1] for batch in batches)
        if last - first > self._plan.slack_ms:
            self._lags = True
            self._ends = {}
            self._next_look_ms = self._clock.monotonic_ms() + LOOK_INTERVAL_MS

    def lags(self, tasks: Iterable[ActiveTask]) -> bool:
        """Whether the tasks, all of the thread, must process in order. Looks at their inputs about once a second."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + LOOK_INTERVAL_MS
            self._lags = self._look(tasks)
            self._has_caught_up |= not self._lags
        return self._lags

    def _look(self, tasks: Iterable[ActiveTask]) -> bool:
        before, self._ends = self._ends, {}
        lags = False
        for task in tasks:
            if task.status is not TaskStatus.RUNNING:
                lags |= not self._has_caught_up
            elif self.has(task):
                positions = task.stream.positions()
                for partition in task.inputs:
                    end = self._consumer.known_end_offset(partition)
                    if end is None:
                        lags = True
                        continue
                    self._ends[partition] = end
                    buffered = task.stream.buffered(partition) and partition in positions
                    at = positions[partition].offset if buffered else self._consumer.position(partition)
                    lags |= at < before.get(partition, end)
        return lags

    # The order

    def process(self, tasks: TaskSet[ActiveTask], max_records: int, now_ms: int, go: Go) -> int:
        """Let the running tasks among ``tasks`` process with ``go``, in the order of time, for about ``max_records``
        each. Returns the number of records; 0 if there are none, or if all wait."""
        running = [task for task in tasks if task.status is TaskStatus.RUNNING and self.has(task)]
        processed, records_max = 0, max_records * len(running)
        while processed < records_max:
            heads = self._heads(running, now_ms)
            if not heads:
                break
            until_ms = self._until(min(heads)[0], self._waited_for(tasks))
            done = sum(go(task, until_ms) for head, _, task in heads if head <= until_ms)
            processed += done
            if not done or any(task.stream.commit_requested for task in running):
                break
        return processed

    def _heads(self, running: Sequence[ActiveTask], now_ms: int) -> list[tuple[int, int, ActiveTask]]:
        """The tasks that can process, each after the timestamp of its next record."""
        heads = []
        for place, task in enumerate(running):
            self._set_working(task)
            head = task.stream.head_time(now_ms)
            if head is not None:
                heads.append((head, place, task))
        self._set_working(None)
        return heads

    def _waited_for(self, tasks: Iterable[ActiveTask]) -> dict[TopicPartition, int]:
        """The partitions whose records are on their way, each with the time that it has come to. Its next record may be
        little earlier, so the others can go on to that time and the slack."""
        found: dict[TopicPartition, int] = {}
        for task in tasks:
            if not self.has(task) or (self._has_caught_up and task.status is not TaskStatus.RUNNING):
                continue
            for partition in task.inputs:
                if partition.topic in self._plan.topics_between:
                    continue
                if task.status is not TaskStatus.RUNNING:
                    found[partition] = -1
                elif not task.stream.buffered(partition) and self._has_more(partition):
                    found[partition] = task.stream.partition_time(partition)
        self._given_up &= found.keys()
        for partition in self._given_up:
            del found[partition]
        return found

    def _has_more(self, partition: TopicPartition) -> bool:
        end = self._consumer.known_end_offset(partition)
        return end is None or end > self._consumer.position(partition)

    def _until(self, earliest: int, waited_for: dict[TopicPartition, int]) -> int:
        """The time up to which tasks may process. ``earliest`` is the time of the first record that is here."""
        slack_ms = self._plan.slack_ms
        until = min([earliest, *waited_for.values()]) + slack_ms
        if until >= earliest:
            self._held_since_ms = None
            return until
        now_ms = self._clock.monotonic_ms()
        if self._held_since_ms is None:
            self._held_since_ms = now_ms
        if now_ms - self._held_since_ms < HOLD_MS_MAX:
            return until
        self._held_since_ms = None
        holding = {partition for partition, time in waited_for.items() if time + slack_ms < earliest}
        self._give_up(holding)
        others = [time for partition, time in waited_for.items() if partition not in holding]
        return min([earliest, *others]) + slack_ms

    def _give_up(self, holding: set[TopicPartition]) -> None:
        self._given_up |= holding
        untold = holding - self._told
        self._told |= holding
        if untold:
            log.warning(
                "nothing has come from %s for %.0f s, though there is more to read: the other partitions go on,"
                " and what comes from there may be late for windows",
                ", ".join(map(str, sorted(untold))),
                HOLD_MS_MAX / 1000,
            )
