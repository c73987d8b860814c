"""Tasks of a thread that catches up process in the order of time, wait for what is on its way, and never for ever."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.clock import ManualClock
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.catching_up.order_plan import OrderPlan
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.time_order import HOLD_MS_MAX, LOOK_INTERVAL_MS, TimeOrder

SLACK_MS = 10
PLAN = OrderPlan(frozenset({0}), frozenset({"between"}), SLACK_MS)


class FakeTask:
    """A task of one partition, whose records are timestamps: some in the log, some of them here."""

    def __init__(self, number: int, times: list[int], topic: str = "in") -> None:
        self.task_id = TaskId(0, number)
        self.partition = TopicPartition(topic, number)
        self.inputs = frozenset({self.partition})
        self.status = TaskStatus.RUNNING
        self.times = times
        self.arrived = self.done = 0
        self.commit_requested = False

    @property
    def stream(self) -> FakeTask:
        return self

    @property
    def here(self) -> list[int]:
        return self.times[self.done : self.arrived]

    def head_time(self, now_ms: int) -> int | None:
        return self.here[0] if self.here else None

    def buffered(self, partition: TopicPartition) -> int:
        return len(self.here)

    def positions(self) -> dict[TopicPartition, Any]:
        return {self.partition: SimpleNamespace(offset=self.done)}

    def partition_time(self, partition: TopicPartition) -> int:
        return max(self.times[: self.done], default=-1)


class Thread:
    """Tasks in an order, and the log that they read. Implements ``port.Consumer`` as far as it is asked."""

    def __init__(self, *tasks: FakeTask) -> None:
        self.tasks = list(tasks)
        self.clock = ManualClock()
        self.blamed: Any = None
        consumer: Any = self
        self.order = TimeOrder(PLAN, consumer, self.clock, self.blame)
        #: (task, timestamp) of what was processed.
        self.processed: list[tuple[int, int]] = []
        self.ends_known = True

    def blame(self, task: Any) -> None:
        self.blamed = task

    def _task(self, partition: TopicPartition) -> FakeTask:
        return next(task for task in self.tasks if task.partition == partition)

    def known_end_offset(self, partition: TopicPartition) -> int | None:
        return len(self._task(partition).times) if self.ends_known else None

    def position(self, partition: TopicPartition) -> int:
        return self._task(partition).arrived

    def process(self, max_records: int = 100) -> int:
        def go(task: Any, until_ms: int) -> int:
            done = 0
            while task.here and task.here[0] <= until_ms and done < max_records:
                self.processed.append((task.task_id.partition, task.here[0]))
                task.done += 1
                done += 1
            return done

        tasks: Any = self.tasks
        return self.order.process(tasks, max_records, 0, go)

    def poll(self, task: FakeTask, records: int) -> None:
        task.arrived = min(len(task.times), task.arrived + records)

    def lags(self, after_ms: float = LOOK_INTERVAL_MS) -> bool:
        self.clock.advance_ms(int(after_ms))
        tasks: Any = self.tasks
        return self.order.lags(tasks)


def all_here(*times: list[int]) -> Thread:
    thread = Thread(*(FakeTask(number, each) for number, each in enumerate(times)))
    for task in thread.tasks:
        thread.poll(task, 1_000)
    return thread


Partitions = st.lists(st.lists(st.integers(0, 300), max_size=25), min_size=1, max_size=5)


@given(Partitions, st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), max_size=40), st.integers(1, 20))
def test_no_task_is_further_ahead_than_the_slack_and_all_is_processed(partitions, polls, max_records):
    """Whatever arrives when: each partition is in order, so the furthest record is never more than the slack ahead of
    any that is still to come."""
    thread = Thread(*(FakeTask(number, sorted(times)) for number, times in enumerate(partitions)))
    arrivals = deque(polls)
    while any(task.done < len(task.times) for task in thread.tasks):
        if arrivals:
            number, records = arrivals.popleft()
            thread.poll(thread.tasks[number % len(thread.tasks)], records)
        elif not thread.process(max_records):
            # Nothing can go: only because something is on its way, and when that has come, something goes.
            missing = [task for task in thread.tasks if not task.here and task.arrived < len(task.times)]
            assert missing
            for task in missing:
                thread.poll(task, 1)
            assert thread.process(max_records) > 0
        thread.process(max_records)
        assert thread.blamed is None
    seen = -1
    remaining = [sorted(times) for times in partitions]
    for number, time in thread.processed:
        assert remaining[number].pop(0) == time
        seen = max(seen, time)
        to_come = min((times[0] for times in remaining if times), default=seen)
        assert seen <= to_come + SLACK_MS


@given(Partitions)
def test_the_earliest_goes_first_and_always_when_all_is_here(partitions):
    thread = all_here(*(times or [0] for times in partitions))
    while any(task.here for task in thread.tasks):
        earliest = min(task.here[0] for task in thread.tasks if task.here)
        before = len(thread.processed)
        assert thread.process(1) > 0
        assert earliest in [time for _, time in thread.processed[before:]]


def test_a_task_far_ahead_waits_for_the_others():
    thread = all_here([0, 5, 100], [50, 60])
    thread.process()
    assert thread.processed == [(0, 0), (0, 5), (1, 50), (1, 60), (0, 100)]


def test_a_gap_in_time_larger_than_every_slack_stops_nobody():
    thread = all_here([0, 1_000_000], [1, 2_000_000])
    thread.process()
    assert [time for _, time in thread.processed] == [0, 1, 1_000_000, 2_000_000]


def test_the_others_wait_for_a_partition_whose_records_are_on_their_way():
    slow, quick = FakeTask(0, [3, 500]), FakeTask(1, [20, 30])
    thread = Thread(slow, quick)
    thread.poll(quick, 2)
    assert thread.process() == 0
    thread.poll(slow, 1)
    # Up to where the slow one is, and the slack: its next record may be as old.
    assert thread.process() == 1
    thread.poll(slow, 1)
    thread.process()
    assert thread.processed == [(0, 3), (1, 20), (1, 30), (0, 500)]


def test_nobody_waits_for_a_partition_that_has_ended_or_that_the_application_writes():
    ended, between, quick = FakeTask(0, []), FakeTask(1, [3], "between"), FakeTask(2, [20])
    thread = Thread(ended, between, quick)
    thread.poll(quick, 1)
    assert thread.process() == 1


def test_a_partition_whose_end_is_not_known_yet_is_waited_for():
    thread = all_here([20])
    thread.tasks.append(FakeTask(1, []))
    thread.ends_known = False
    assert thread.process() == 0
    thread.ends_known = True
    assert thread.process() == 1


def test_a_partition_from_which_nothing_comes_is_given_up_with_one_warning_until_something_comes(caplog):
    slow, quick = FakeTask(0, [3, 500, 501]), FakeTask(1, [20, 400, 600, 700])
    thread = Thread(slow, quick)
    thread.poll(quick, 2)
    assert thread.process() == 0
    thread.clock.advance_ms(int(HOLD_MS_MAX) - 1)
    assert thread.process() == 0
    assert not caplog.records
    thread.clock.advance_ms(1)
    assert thread.process() == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "nothing has come from in-0 for 30 s" in caplog.text
    thread.poll(slow, 2)
    thread.poll(quick, 2)
    assert thread.process() == 2
    # It has come back, so it is waited for again. That is told once.
    assert thread.process() == 0
    thread.clock.advance_ms(int(HOLD_MS_MAX))
    assert thread.process() == 2
    assert len(caplog.records) == 1


def test_a_wait_that_ends_in_time_does_not_count_for_the_next_one():
    slow, quick = FakeTask(0, [3, 500, 600]), FakeTask(1, [20, 550, 700])
    thread = Thread(slow, quick)
    thread.poll(quick, 3)
    for _ in range(3):
        assert thread.process() == 0
        thread.clock.advance_ms(int(HOLD_MS_MAX) - 1)
        assert thread.process() == 0
        thread.poll(slow, 1)
        assert thread.process() > 0


def test_nothing_is_processed_before_all_tasks_of_a_new_thread_have_started():
    thread = all_here([20], [3])
    thread.tasks[1].status = TaskStatus.RESTORING
    assert thread.process() == 0
    assert thread.lags()
    thread.tasks[1].status = TaskStatus.RUNNING
    thread.process()
    assert thread.processed == [(1, 3), (0, 20)]


def test_a_thread_that_has_caught_up_does_not_wait_for_a_task_that_is_restored():
    thread = all_here([20])
    thread.process()
    assert not thread.lags()
    thread.tasks.append(FakeTask(1, [3]))
    thread.tasks[1].status = TaskStatus.RESTORING
    assert not thread.lags()
    thread.tasks[0].times += [21]
    thread.poll(thread.tasks[0], 1)
    assert thread.process() == 1


def test_what_was_there_a_second_ago_and_is_not_processed_lags():
    thread = all_here([1])
    task = thread.tasks[0]
    thread.process()
    assert not thread.lags()
    task.times += [2, 3]
    assert not thread.lags()
    assert thread.lags()
    thread.poll(task, 1)
    thread.process()
    assert thread.lags()
    thread.poll(task, 1)
    thread.process()
    task.times += [4]
    assert not thread.lags()


def test_between_two_looks_the_answer_stays():
    thread = all_here([1])
    thread.process()
    assert thread.lags(after_ms=LOOK_INTERVAL_MS - 1)
    assert not thread.lags(after_ms=1)


@pytest.mark.parametrize(("times", "lags"), [([1, 11], False), ([1, 12], True)])
def test_records_that_arrive_together_and_are_far_apart_in_time_are_a_lag(times, lags):
    thread = all_here([1])
    thread.process()
    assert not thread.lags()
    thread.order.arrived([])
    thread.order.arrived([batch(time) for time in times])
    assert thread.lags(after_ms=1) is lags


def batch(time: int) -> RecordBatch:
    return RecordBatch("in", 0, [None], [None], [time], range(1), None, 1)


def test_a_commit_that_a_processor_asks_for_is_not_delayed():
    thread = all_here([1, 100])
    thread.tasks[0].commit_requested = True
    assert thread.process() == 1
