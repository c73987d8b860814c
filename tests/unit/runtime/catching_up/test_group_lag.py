"""What tasks may reach follows from who lags: at the start, along several hops, in live operation, and in trouble."""

from __future__ import annotations

import pytest

from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.catching_up.group_lag import LAG_MS
from pystreams.stream_time import TIME_MAX
from tests.unit.runtime.catching_up.group_kit import COMMIT_INTERVAL_MS, WAIT_MAX_MS, Group

HOUR = 3_600_000


def lagging(view) -> set[str]:
    return {str(task.task_id) for task in view.lagging}


def in_a_row(hops: int) -> dict[int, set[int]]:
    return {sub: {sub - 1} if sub else set() for sub in range(hops + 1)}


# At the start


def test_the_slowest_task_before_it_says_how_far_a_task_may_go():
    group = Group(in_a_row(1), partitions=2)
    for partition in range(2):
        group.write(0, partition, 100)
    assert group.read().bounds == {1: -1}  # nothing is committed
    group.commit(0, 0, 90, time=9 * HOUR)
    group.commit(0, 1, 10, time=HOUR)
    assert group.read().bounds == {1: HOUR}
    group.commit(0, 1, 100, time=8 * HOUR)
    assert group.read().bounds == {1: 9 * HOUR}
    group.commit(0, 0, 100, time=10 * HOUR)
    view = group.read()
    assert view.bounds == {1: TIME_MAX}
    assert not view.lagging


def test_an_empty_or_purged_partition_does_not_lag_and_a_new_one_with_records_does():
    group = Group(in_a_row(1), partitions=3)
    group.write(0, 0, 5)
    group.commit(0, 0, 5, time=HOUR)
    group.write(0, 1, 7)
    group.beginnings[TopicPartition("t0", 1)] = 7
    assert group.read().bounds == {1: TIME_MAX}
    group = Group(in_a_row(1), partitions=3)
    group.write(0, 2, 7)
    group.beginnings[TopicPartition("t0", 2)] = 3
    view = group.read()
    assert view.bounds == {1: -1}
    assert view.lagging[0].behind == {TopicPartition("t0", 2): 3}


def test_results_that_are_held_back_are_waited_for():
    group = Group(in_a_row(2), hold_back={0: 7, 1: 100})
    group.write(0, 0, 10)
    group.commit(0, 0, 5, time=10_000)
    assert group.read().bounds == {1: 10_000 - 7, 2: 10_000 - 107}


def test_a_gap_in_event_time_of_many_years_is_a_gap_like_any_other():
    group = Group(in_a_row(1), partitions=2)
    for partition in range(2):
        group.write(0, partition, 10)
    group.commit(0, 0, 9, time=50 * 365 * 24 * HOUR)
    group.commit(0, 1, 9, time=0)
    assert group.read().bounds == {1: 0}


def test_without_waiting_for_fetched_records_each_input_counts_by_its_own_time():
    times = {"t0": 9 * HOUR, "other": HOUR}
    for by_time, expected in ((True, 9 * HOUR), (False, HOUR)):
        group = Group(in_a_row(1), more_inputs={0: "other"}, by_time=by_time)
        group.write(0, 0, 10)
        group.write(0, 0, 10, "other")
        group.commit(0, 0, 9, 1, time=9 * HOUR, times=times)
        assert group.read().bounds == {1: expected}


# Several hops


def test_two_hops_with_only_the_first_lagging():
    group = Group(in_a_row(2))
    group.write(0, 0, 100)
    group.commit(0, 0, 50, time=5 * HOUR)
    group.write(1, 0, 40)
    group.commit(1, 0, 40, time=4 * HOUR)
    view = group.read()
    # The second hop has done what came, and has nothing older in it: the first alone holds the third back.
    assert view.bounds == {1: 5 * HOUR, 2: 5 * HOUR}
    assert lagging(view) == {"0_0"}


def test_the_last_task_waits_until_the_one_between_has_done_what_the_first_wrote_last():
    group = Group(in_a_row(2))
    group.write(0, 0, 100)
    group.write(1, 0, 10)
    group.commit(0, 0, 99, time=HOUR)
    group.commit(1, 0, 10, time=HOUR)
    group.read()
    group.commit(0, 0, 100, time=2 * HOUR)
    group.write(1, 0, 5)
    view = group.read()
    assert view.bounds == {1: TIME_MAX, 2: HOUR}
    # More comes live, which is not waited for.
    group.write(1, 0, 5)
    group.commit(1, 0, 15, time=2 * HOUR)
    assert group.read().bounds == {1: TIME_MAX, 2: TIME_MAX}


def test_a_task_that_has_seen_more_than_it_may_reach_holds_back_those_behind_it():
    """It still has to emit what its bound sets free."""
    group = Group(in_a_row(2), hold_back={1: 100})
    group.write(0, 0, 10)
    group.commit(0, 0, 10, time=9_000)
    group.write(1, 0, 10)
    group.commit(1, 0, 10, time=4_000, seen=8_000)
    assert group.read().bounds == {1: TIME_MAX, 2: 3_900}
    group.commit(1, 0, 10, time=8_000)
    assert group.read().bounds == {1: TIME_MAX, 2: TIME_MAX}


def test_an_idle_task_between_does_not_hold_anybody_back():
    group = Group(in_a_row(2), partitions=2)
    group.write(0, 0, 100)
    group.commit(0, 0, 50, time=5 * HOUR)
    group.write(1, 0, 40)
    group.commit(1, 0, 40, time=4 * HOUR)
    group.write(1, 1, 1)
    group.commit(1, 1, 1, time=HOUR)
    assert group.read().bounds == {1: 5 * HOUR, 2: 5 * HOUR}


def test_sub_topologies_that_feed_each_other_come_to_an_end_together():
    """As in a foreign-key join: 0 writes to 1, 1 to 0, and 0 to 2."""
    group = Group({0: {1}, 1: {0}, 2: {0}}, more_inputs={0: "left", 1: "right"})
    group.write(0, 0, 10, "left")
    group.commit(0, 0, 0, 5, time=5 * HOUR, seen=6 * HOUR)
    # Among each other the times that they have seen count: their own bounds would never rise.
    assert group.read().bounds == {0: 6 * HOUR, 1: 6 * HOUR, 2: 5 * HOUR}
    group.commit(0, 0, 0, 10, time=7 * HOUR)
    group.write(1, 0, 3)
    view = group.read()
    assert lagging(view) == {"1_0"}
    group.commit(1, 0, 3, time=7 * HOUR)
    group.write(0, 0, 3)
    view = group.read()
    assert lagging(view) == {"0_0"}
    group.commit(0, 0, 3, 10, time=7 * HOUR)
    group.read()
    assert not group.read().lagging


# Live


def settled(partitions: int = 2) -> Group:
    """Everything is processed, and all are at the end of their inputs."""
    group = Group(in_a_row(1), partitions)
    for partition in range(partitions):
        group.write(0, partition, 100)
        group.commit(0, partition, 100, time=HOUR)
    assert not group.read().lagging
    group.read(60_000)
    return group


def test_a_steady_flow_does_not_lag_however_long_the_commit_interval_is():
    """A record comes every 100 ms; a task processes it at once, and commits every 30 s."""
    group = settled()
    for second in range(90):
        for partition in range(2):
            group.write(0, partition, 10)
            if second % 30 == 29:
                end = group.ends[TopicPartition("t0", partition)]
                group.commit(0, partition, end, time=HOUR + 1_000 * second)
        view = group.read(1_000)
        assert view.bounds == {1: TIME_MAX}, f"second {second}"
        assert second < 10 or not view.commit_often


def test_a_task_that_falls_behind_is_found_with_its_next_commit():
    group = settled()
    group.write(0, 1, 1_000)
    for _ in range(4):
        assert not group.read(1_000).lagging
    group.commit(0, 1, 500, time=2 * HOUR)
    assert group.read(1_000).bounds == {1: 2 * HOUR}
    group.commit(0, 1, 1_100, time=3 * HOUR)
    assert group.read().bounds == {1: TIME_MAX}


def test_who_is_near_to_lagging_commits_often_before_others_wait():
    group = settled()
    for _ in range(10):
        group.read(200)
    group.write(0, 1, 10)
    for _ in range(7):
        assert not group.read(200).commit_often
    group.commit(0, 1, 105, time=HOUR)
    view = group.read(200)
    assert not view.lagging
    assert view.commit_often
    group.commit(0, 1, 110, time=HOUR)
    assert group.read(200).commit_often
    assert not group.read(60_000).commit_often


def test_a_task_that_commits_nothing_although_it_should_lags():
    group = settled()
    group.write(0, 1, 10)
    group.read(1_000)
    assert not group.read(COMMIT_INTERVAL_MS).lagging
    assert group.read(COMMIT_INTERVAL_MS).bounds == {1: HOUR}


def test_a_long_rest_is_no_lag_when_records_come_again():
    group = settled()
    group.read(10 * WAIT_MAX_MS)
    group.write(0, 0, 1)
    assert not group.read(1_000).lagging
    group.commit(0, 0, 101, time=2 * HOUR)
    assert not group.read(1_000).lagging


# Work that changes hands


def test_in_a_new_generation_work_that_changed_hands_counts_until_it_is_up_to_date():
    """Its former owner was up to date when it died. The new one is an hour behind by now, and says nothing yet."""
    group = settled()
    group.write(0, 1, 3_600)
    group.lag.begin_generation()
    assert group.read().bounds == {1: HOUR}
    group.commit(0, 1, 1_000, time=HOUR + 1_000)
    assert group.read().bounds == {1: HOUR + 1_000}
    group.commit(0, 1, 3_700, time=2 * HOUR)
    assert group.read().bounds == {1: TIME_MAX}


def test_in_a_new_generation_those_that_have_nothing_to_do_are_not_waited_for():
    group = settled()
    group.lag.begin_generation()
    assert group.read().bounds == {1: TIME_MAX}


# Trouble


def test_a_task_that_does_not_move_is_given_up_after_the_limit_and_counts_again_when_it_moves():
    group = Group(in_a_row(1), partitions=2)
    for partition in range(2):
        group.write(0, partition, 10)
        group.commit(0, partition, 1, time=HOUR)
    group.read()
    group.commit(0, 0, 10, time=HOUR)
    assert group.read(WAIT_MAX_MS - 1_000).bounds == {1: HOUR}
    view = group.read(1_000)
    assert view.bounds == {1: TIME_MAX}
    (task,) = view.given_up
    assert task.task_id == TaskId(0, 1)
    assert task.behind == {TopicPartition("t0", 1): 1}
    assert view.lagging == ()
    group.commit(0, 1, 2, time=2 * HOUR)
    assert group.read().bounds == {1: 2 * HOUR}


def test_a_task_that_lags_again_after_a_rest_has_the_whole_limit():
    group = settled()
    group.read(WAIT_MAX_MS)
    group.write(0, 0, 10)
    group.lag.begin_generation()
    assert lagging(group.read()) == {"0_0"}


def test_a_topic_that_was_made_anew_does_not_lag_forever():
    group = settled()
    group.write(0, 0, 50)
    group.lag.begin_generation()
    assert lagging(group.read()) == {"0_0"}
    group.ends[TopicPartition("t0", 0)] = 3
    group.commit(0, 0, 3, time=HOUR)
    assert not group.read().lagging


@pytest.mark.parametrize("pause_ms", [200.0, LAG_MS, 60_000.0])
def test_rare_readings_change_nothing(pause_ms):
    group = Group(in_a_row(1))
    group.write(0, 0, 100)
    for offset in range(10, 100, 10):
        group.commit(0, 0, offset, time=HOUR * offset)
        assert group.read(pause_ms).bounds == {1: HOUR * offset}
    group.commit(0, 0, 100, time=HOUR * 100)
    assert group.read(pause_ms).bounds == {1: TIME_MAX}
