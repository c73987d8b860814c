"""A thread lags while its inputs hold records that it should have processed by now, and the steady flow is no lag."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.record import RecordBatch
from pystreams.runtime.tasks.backlog import LOOK_INTERVAL_MS
from pystreams.runtime.tasks.task import TaskStatus
from tests.unit.runtime.tasks.order_kit import FakeTask, all_here


def test_a_new_thread_lags_until_a_look_shows_something_else():
    thread = all_here([1])
    assert thread.lags(after_ms=0)
    assert thread.lags(after_ms=LOOK_INTERVAL_MS)
    thread.process()
    assert thread.lags(after_ms=LOOK_INTERVAL_MS - 1)
    assert not thread.lags(after_ms=1)


def test_a_new_thread_lags_while_one_of_its_tasks_is_restored_and_later_no_more():
    thread = all_here([1])
    thread.process()
    thread.tasks.append(FakeTask(1, []))
    thread.tasks[1].status = TaskStatus.RESTORING
    assert thread.lags()
    thread.tasks[1].status = TaskStatus.RUNNING
    assert not thread.lags()
    thread.tasks[1].status = TaskStatus.RESTORING
    assert not thread.lags()


def test_a_partition_whose_end_is_not_known_lags():
    thread = all_here([])
    thread.ends_known = False
    assert thread.lags()
    thread.ends_known = True
    assert not thread.lags()


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


def test_what_is_here_but_not_processed_lags_too():
    thread = all_here([1])
    task = thread.tasks[0]
    thread.process()
    assert not thread.lags()
    task.times += [2]
    thread.poll(task, 1)
    assert not thread.lags()
    assert thread.lags()


def test_tasks_of_no_order_do_not_count():
    thread = all_here([1])
    thread.tasks[0].subtopology = 1
    assert not thread.lags()


@pytest.mark.parametrize(
    ("first", "last", "records", "lags"),
    [(1, 12, 33, True), (1, 11, 33, False), (1, 12, 32, False)],
    ids=["many and far apart", "many of nearly the same time", "few"],
)
def test_many_records_that_arrive_together_and_are_far_apart_in_time_are_a_lag(first, last, records, lags):
    thread = all_here([1])
    thread.process()
    assert not thread.lags()
    backlog = thread.order.backlog
    tasks: Any = thread.tasks
    backlog.arrived([], tasks)
    backlog.arrived([batch([first] * records), batch([last] * records)], tasks)
    assert backlog.lags is lags
    assert thread.lags(after_ms=1) is lags
    # Nothing of it is left.
    assert not thread.lags()


def test_who_looks_when_something_arrives_sees_a_lag_that_has_grown_slowly():
    thread = all_here([1])
    thread.process()
    assert not thread.lags()
    tasks: Any = thread.tasks
    thread.tasks[0].times += [2, 3]
    for lags in (False, True):
        thread.clock.advance_ms(int(LOOK_INTERVAL_MS))
        thread.order.backlog.arrived([], tasks)
        assert thread.order.backlog.lags is lags


def batch(times: list[int]) -> RecordBatch:
    count = len(times)
    return RecordBatch("in", 0, [None] * count, [None] * count, times, range(count), None, count)
