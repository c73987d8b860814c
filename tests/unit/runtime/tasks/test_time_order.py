"""Tasks of a thread that catches up process in the order of time, wait for what is on its way, and never for ever."""

from __future__ import annotations

from collections import deque
from itertools import accumulate, groupby

from hypothesis import given
from hypothesis import strategies as st

from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.time_order import HOLD_MS_MAX, TURN_RECORDS
from tests.unit.runtime.tasks.order_kit import SLACK_MS, FakeTask, Thread, all_here

Partitions = st.lists(st.lists(st.integers(0, 300), max_size=25), min_size=1, max_size=5)


@given(Partitions, st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), max_size=40), st.integers(1, 20))
def test_no_task_is_further_ahead_than_the_slack_and_all_is_processed(partitions, polls, max_records):
    """Whatever arrives when: each partition is in order, so the furthest record is never more than the slack ahead of
    any that is still to come, even where the slack has shrunk since."""
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
    seen = -1
    remaining = [sorted(times) for times in partitions]
    for (number, time), slack_ms in zip(thread.processed, accumulate(thread.slacks, max), strict=True):
        assert remaining[number].pop(0) == time
        seen = max(seen, time)
        to_come = min((times[0] for times in remaining if times), default=seen)
        assert seen <= to_come + slack_ms


def sparse_and_dense(sparse: int, dense: int) -> list[int]:
    """A record each second, then many in each millisecond of the slack."""
    return [*range(0, 1_000 * sparse, 1_000), *(1_000 * sparse + n // 200 for n in range(dense))]


def test_where_records_are_sparse_a_task_finds_about_a_thousand_of_them_at_a_time_and_then_no_more():
    thread = all_here(*(sparse_and_dense(24_000, 0) for _ in range(3)), limit=100_000)
    while any(task.here for task in thread.tasks):
        thread.process(4 * TURN_RECORDS)
    lengths = [len(list(turn)) for _, turn in groupby(number for number, _ in thread.processed)]
    later = lengths[len(lengths) // 2 : -3]
    assert TURN_RECORDS <= min(later) <= max(later) <= 2 * TURN_RECORDS


def test_where_records_become_dense_the_tasks_come_close_again():
    thread = all_here(*(sparse_and_dense(6_000, 90_000) for _ in range(3)), limit=100_000)
    while any(task.here for task in thread.tasks):
        thread.process(4 * TURN_RECORDS)
    assert max(thread.slacks) >= TURN_RECORDS * 1_000
    assert thread.slacks[-1] == SLACK_MS


def test_no_slack_lets_the_sparse_ones_find_as_many_records_as_the_dense_one():
    dense, sparse = [*range(0, 400_000, 10)], [*range(0, 400_000, 1_000)]
    thread = all_here(dense, *([sparse] * 5), limit=100_000)
    while any(task.here for task in thread.tasks):
        thread.process(1_024)
    assert max(thread.slacks) <= 2 * 10 * 1_024


def test_what_is_slow_or_still_on_its_way_is_no_reason_for_more_slack():
    slow = all_here([*range(0, 900_000, 1_000)], [*range(0, 900_000, 1_000)])
    while any(task.here for task in slow.tasks):
        slow.process(2)
    assert max(slow.slacks) == SLACK_MS
    # One of two partitions comes little by little, and the other one waits for it.
    arriving = all_here([*range(0, 1_000, 5)], [*range(0, 1_000, 5)], limit=1)
    arriving.poll(arriving.tasks[0], 1_000)
    while any(task.done < 200 for task in arriving.tasks):
        arriving.poll(arriving.tasks[1], 1)
        arriving.process(1_024)
    # At the beginning two were here.
    assert max(arriving.slacks) <= 2 * SLACK_MS


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


def test_a_commit_that_a_processor_asks_for_is_not_delayed():
    thread = all_here([1, 100])
    thread.tasks[0].commit_requested = True
    assert thread.process() == 1
