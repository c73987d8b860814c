"""Tasks without records but their timestamps, and the log from which these arrive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pystreams.clock import ManualClock
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.catching_up.order_plan import OrderPlan
from pystreams.runtime.tasks.backlog import LOOK_INTERVAL_MS
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.time_order import TimeOrder

SLACK_MS = 10
PLAN = OrderPlan(frozenset({0}), frozenset({"between"}), SLACK_MS)


class FakeTask:
    """A task of one partition, whose records are timestamps: some in the log, some of them here."""

    def __init__(self, number: int, times: list[int], topic: str = "in") -> None:
        self.number = number
        self.subtopology = 0
        self.partition = TopicPartition(topic, number)
        self.inputs = frozenset({self.partition})
        self.status = TaskStatus.RUNNING
        self.times = times
        self.arrived = self.done = 0
        self.commit_requested = False

    @property
    def task_id(self) -> TaskId:
        return TaskId(self.subtopology, self.number)

    @property
    def stream(self) -> FakeTask:
        return self

    @property
    def here(self) -> list[int]:
        return self.times[self.done : self.arrived]

    @property
    def head_time(self) -> int | None:
        return self.times[self.done] if self.done < self.arrived else None

    def buffered(self, partition: TopicPartition) -> int:
        return self.arrived - self.done

    def positions(self) -> dict[TopicPartition, Any]:
        return {self.partition: SimpleNamespace(offset=self.done)}

    def partition_time(self, partition: TopicPartition) -> int:
        return max(self.times[: self.done], default=-1)


class Thread:
    """Tasks in an order, and the log that they read. Implements ``port.Consumer`` as far as it is asked."""

    def __init__(self, *tasks: FakeTask) -> None:
        self.tasks = list(tasks)
        self.clock = ManualClock()
        consumer: Any = self
        self.order = TimeOrder(PLAN, consumer, self.clock)
        #: (task, timestamp) of what was processed, and the slack at that time.
        self.processed: list[tuple[int, int]] = []
        self.slacks: list[int] = []
        self.ends_known = True

    def _task(self, partition: TopicPartition) -> FakeTask:
        return next(task for task in self.tasks if task.partition == partition)

    def known_end_offset(self, partition: TopicPartition) -> int | None:
        return len(self._task(partition).times) if self.ends_known else None

    def position(self, partition: TopicPartition) -> int:
        return self._task(partition).arrived

    def process(self, max_records: int = 100) -> int:
        def go(task: Any, until_ms: int) -> int:
            done = 0
            while (head := task.head_time) is not None and head <= until_ms and done < max_records:
                self.processed.append((task.task_id.partition, head))
                self.slacks.append(self.order.slack.ms)
                task.done += 1
                done += 1
            return done

        tasks: Any = self.tasks
        return self.order.process(tasks, max_records, go)

    def poll(self, task: FakeTask, records: int) -> None:
        task.arrived = min(len(task.times), task.arrived + records)

    def lags(self, after_ms: float = LOOK_INTERVAL_MS) -> bool:
        self.clock.advance_ms(int(after_ms))
        tasks: Any = self.tasks
        self.order.backlog.look(tasks)
        return self.order.backlog.lags


def all_here(*times: list[int], limit: int = 1_000) -> Thread:
    thread = Thread(*(FakeTask(number, each) for number, each in enumerate(times)))
    for task in thread.tasks:
        thread.poll(task, limit)
    return thread
