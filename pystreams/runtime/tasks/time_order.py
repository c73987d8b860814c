"""The order of time in which the tasks of a thread process while it catches up.

Each partition could be read as fast as it comes. But what tasks write meets in the topics between sub-topologies, and
the records of a partition that is hours behind another would have to wait there, in windows that stay open. So no task
processes records that are more than a slack later than the earliest record of another one, and all wait for a partition
that has records in the log of which none has arrived yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pystreams.broker.port import Consumer
from pystreams.clock import Clock
from pystreams.ids import TopicPartition
from pystreams.runtime.catching_up.order_plan import OrderPlan
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.backlog import Backlog
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.task_set import TaskSet

log = logging.getLogger(__name__)

#: How long all tasks wait for a partition of which nothing arrives. A log that is well answers within this time, and
#: the leader of a partition is replaced within it; a partition that is gone for longer must not stop the others.
HOLD_MS_MAX = 30_000.0

#: A task should find as many records to process before it is another one's turn, which costs as much as ten records or
#: more. With shorter turns hardly fewer windows would be open: they close only after commits, and between two commits
#: there is time for many turns.
TURN_RECORDS = 1024

#: Lets a task process some records, up to the first that is later than a time (ms). Returns their number.
Go = Callable[[ActiveTask, int], int]


class _Candidate:
    """A task that has records. ``head`` is the timestamp of the first, ``sources`` are those of its partitions that the
    others wait for when they are empty."""

    __slots__ = ("head", "sources", "stream", "task")

    def __init__(self, task: ActiveTask, head: int, sources: list[TopicPartition]) -> None:
        self.task = task
        self.stream = task.stream
        self.head = head
        self.sources = sources

    def emptied(self) -> list[TopicPartition]:
        """The sources that have become empty since the last call."""
        buffered = self.stream.buffered
        empty = [partition for partition in self.sources if not buffered(partition)]
        if empty:
            self.sources = [partition for partition in self.sources if partition not in empty]
        return empty


class Slack:
    """How far ahead of another task one may process, in ms. Where records are sparse, it grows until a task finds about
    a thousand of them within it, and it shrinks where they are dense; it is never less than ``least_ms``."""

    def __init__(self, least_ms: int) -> None:
        self.ms = self._least_ms = least_ms

    def learn(self, records: int, wanted: float, *, stopped: bool) -> None:
        """Tasks that have processed ``records`` should process about ``wanted`` at a time. ``stopped``: only the
        slack has kept them from going on."""
        if stopped and records < wanted:
            self.ms *= 2
        elif records >= 2 * wanted:
            self.ms = max(self._least_ms, self.ms // 2)


class TimeOrder:
    """The order of the tasks of one thread, which reads with ``consumer``."""

    def __init__(self, plan: OrderPlan, consumer: Consumer, clock: Clock) -> None:
        self._plan = plan
        self._consumer = consumer
        self._clock = clock
        #: However large it is, no record is late for it: the bounds of stream time see to that.
        self.slack = Slack(plan.slack_ms)
        #: The order matters only while there is one.
        self.backlog = Backlog(consumer, clock, plan.slack_ms, self.has)
        self._held_since_ms: float | None = None
        #: Partitions that are not waited for any more, until something arrives; and those that were ever among them.
        self._given_up: set[TopicPartition] = set()
        self._logged: set[TopicPartition] = set()

    def has(self, task: ActiveTask) -> bool:
        """Whether the task is one of those that are in an order."""
        return task.task_id.subtopology in self._plan.subtopologies

    def process(self, tasks: TaskSet[ActiveTask], max_records: int, go: Go) -> int:
        """Let the running tasks among ``tasks`` process with ``go``, in the order of time, for about ``max_records``
        each. Returns the number of records; 0 if there are none, or if all wait."""
        candidates, waited_for = self._gather(tasks)
        processed, records_max = 0, max_records * len(candidates)
        while candidates and processed < records_max:
            until_ms = self._until(min(each.head for each in candidates), waited_for)
            going = [each for each in candidates if each.head <= until_ms]
            if not going:
                break
            before = processed
            for each in going:
                done = go(each.task, until_ms)
                processed += done
                if each.stream.commit_requested:
                    return processed
                head = each.stream.head_time
                if done and head is not None:
                    each.head = head
                else:
                    # It has no more, or waits for another of its partitions.
                    candidates.remove(each)
                self._wait_for(each.emptied(), each.task, waited_for)
            wanted = min(TURN_RECORDS, max_records / 2) * len(going)
            # Where a partition is waited for, turns are short for want of its records.
            stopped = not waited_for and all(each.head > until_ms for each in going)
            self.slack.learn(processed - before, wanted, stopped=stopped)
        return processed

    def _gather(self, tasks: TaskSet[ActiveTask]) -> tuple[list[_Candidate], dict[TopicPartition, int]]:
        """The tasks that have records, and the partitions to wait for, each with the time that it has come to. Its next
        record may be little earlier, so the others can go on to that time and the slack."""
        candidates: list[_Candidate] = []
        waited_for: dict[TopicPartition, int] = {}
        for task in tasks:
            if not self.has(task):
                continue
            sources = [p for p in task.inputs if p.topic not in self._plan.topics_between]
            if task.status is TaskStatus.RUNNING:
                filled = [p for p in sources if task.stream.buffered(p)]
                self._given_up.difference_update(filled)
                self._wait_for([p for p in sources if p not in filled], task, waited_for)
                head = task.stream.head_time
                if head is not None:
                    candidates.append(_Candidate(task, head, filled))
            elif not self.backlog.was_worked_off:
                # The first records of a task may lie anywhere. Later, tasks that run do not wait for a new one, which
                # may have a large store to restore.
                waited_for.update((p, -1) for p in sources if p not in self._given_up)
        return candidates, waited_for

    def _wait_for(
        self, empty: list[TopicPartition], task: ActiveTask, waited_for: dict[TopicPartition, int]
    ) -> None:
        """Add those of a task's empty partitions to ``waited_for`` of which records are on their way."""
        for partition in empty:
            if not self._has_more(partition):
                self._given_up.discard(partition)
            elif partition not in self._given_up:
                waited_for[partition] = task.stream.partition_time(partition)

    def _has_more(self, partition: TopicPartition) -> bool:
        end = self._consumer.known_end_offset(partition)
        return end is None or end > self._consumer.position(partition)

    def _until(self, earliest: int, waited_for: dict[TopicPartition, int]) -> int:
        """The time up to which tasks may process. ``earliest`` is the time of the first record that is here. Partitions
        that have been waited for too long are removed from ``waited_for``."""
        until = min([earliest, *waited_for.values()]) + self.slack.ms
        if until >= earliest:
            self._held_since_ms = None
            return until
        now_ms = self._clock.monotonic_ms()
        if self._held_since_ms is None:
            self._held_since_ms = now_ms
        if now_ms - self._held_since_ms < HOLD_MS_MAX:
            return until
        self._held_since_ms = None
        holding = {p for p, time in waited_for.items() if time + self.slack.ms < earliest}
        self._give_up(holding)
        for partition in holding:
            del waited_for[partition]
        return min([earliest, *waited_for.values()]) + self.slack.ms

    def _give_up(self, holding: set[TopicPartition]) -> None:
        self._given_up |= holding
        new = holding - self._logged
        self._logged |= holding
        if new:
            log.warning(
                "nothing has come from %s for %.0f s, though there is more to read: the other partitions go on,"
                " and what comes from there may be late for windows",
                ", ".join(map(str, sorted(new))),
                HOLD_MS_MAX / 1000,
            )
