"""Lets the tasks of a thread process in the order of time while the thread catches up.

Without an order, each partition would be processed as fast as it is read. But the results of tasks meet in the topics
between sub-topologies: if one partition were hours ahead of another, its results would wait there in windows that stay
open. So no task processes records that are later than the earliest record of another task by more than a slack, and
all tasks wait for a partition that has records in the log of which none has arrived yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pystreams.broker.port import Consumer
from pystreams.clock import Clock
from pystreams.ids import TopicPartition
from pystreams.runtime.catching_up.order_plan import OrderPlan
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.backlog import Backlog, has_more
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.task_set import TaskSet

log = logging.getLogger(__name__)

#: How long all tasks wait for a partition of which nothing arrives. A healthy log answers within this time, and
#: replaces the leader of a partition within it. A partition that is unavailable for longer must not stop the others.
HOLD_MS_MAX = 30_000.0

#: A task should process about this many records in its turn, because a change to another task costs as much as ten
#: records or more. Shorter turns would hardly reduce the number of open windows: these close only after commits, and
#: there are many turns between two commits.
TURN_RECORDS = 1024

#: Lets a task process some records, up to the first that is later than a time (ms). Returns their number.
Go = Callable[[ActiveTask, int], int]


class _Candidate:
    """A task that has buffered records. ``head`` is the timestamp of the next one. ``sources`` are its partitions from
    outside of the application that have records: other tasks wait for them when they become empty."""

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
    """How far ahead of another task a task may process, in ms. If records are sparse, the slack grows until a task
    finds about a thousand of them within it; if they are dense, it shrinks. It is never less than ``least_ms``."""

    def __init__(self, least_ms: int) -> None:
        self.ms = self._least_ms = least_ms

    def learn(self, records: int, wanted: float, *, stopped: bool) -> None:
        """In one turn, the tasks have processed ``records``, and should process about ``wanted``. ``stopped``: only the
        slack has kept them from processing more."""
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
        #: A large slack makes no record late, because the bounds of stream time prevent that.
        self.slack = Slack(plan.slack_ms)
        #: The order is kept only while there is a backlog.
        self.backlog = Backlog(consumer, clock, plan.slack_ms, self.has)
        self._held_since_ms: float | None = None
        #: Partitions that the tasks do not wait for until a record arrives, because they have waited too long; and all
        #: partitions that were ever among these.
        self._given_up: set[TopicPartition] = set()
        self._logged: set[TopicPartition] = set()

    def has(self, task: ActiveTask) -> bool:
        """Whether the task takes part in the order."""
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
                    # The task has no more records, or waits for another of its partitions.
                    candidates.remove(each)
                self._wait_for(each.emptied(), each.task, waited_for)
            wanted = min(TURN_RECORDS, max_records / 2) * len(going)
            # While the tasks wait for a partition, the turns are short because its records are missing.
            stopped = not waited_for and all(each.head > until_ms for each in going)
            self.slack.learn(processed - before, wanted, stopped=stopped)
        return processed

    def _gather(self, tasks: TaskSet[ActiveTask]) -> tuple[list[_Candidate], dict[TopicPartition, int]]:
        """The tasks that have records, and the partitions to wait for, each with its partition time. The next record of
        such a partition is hardly earlier than its time, so the others may process up to that time plus the slack."""
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
                # Until the first backlog is worked off, wait for tasks that are not running yet, because their first
                # records may have any time. Later, do not wait: a new task may have a large store to restore.
                waited_for.update((p, -1) for p in sources if p not in self._given_up)
        return candidates, waited_for

    def _wait_for(
        self, empty: list[TopicPartition], task: ActiveTask, waited_for: dict[TopicPartition, int]
    ) -> None:
        """Add to ``waited_for`` those of a task's empty partitions that have unread records in the log."""
        for partition in empty:
            if not has_more(self._consumer, partition):
                self._given_up.discard(partition)
            elif partition not in self._given_up:
                waited_for[partition] = task.stream.partition_time(partition)

    def _until(self, earliest: int, waited_for: dict[TopicPartition, int]) -> int:
        """The time up to which tasks may process. ``earliest`` is the time of the earliest buffered record. Partitions
        that the tasks have waited for too long are removed from ``waited_for``."""
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
