"""How far ahead a task may be: what the one that is furthest behind has processed lately. Only who lags pauses or is
waited for, and who pauses is not given up."""

from __future__ import annotations

from pystreams import EmitStrategy, StreamsBuilder, TimeWindows
from pystreams.ids import TaskId
from pystreams.runtime.catching_up.group_lag import GroupView
from pystreams.runtime.catching_up.spread import PACE_KNOWN_AFTER_MS, Pace, Spread, least_distance_ms
from pystreams.runtime.catching_up.stages import stages_of
from pystreams.stream_time import TIME_MAX
from tests.unit.runtime.catching_up.group_kit import DISTANCE_MS_MIN, WAIT_MAX_MS, Group, inputs_of

MINUTE, HOUR = 60_000, 3_600_000
FIRST, SECOND, BETWEEN = TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)

IN_A_ROW: dict[int, set[int]] = {0: set(), 1: {0}, 2: {1}}


# The distance


def test_the_distance_is_what_the_last_one_has_done_in_its_last_steps():
    pace = Pace(MINUTE)
    heads = [0, 1, 1, 2, 3, 3, 7]
    found = [pace.distance_ms(200 * look, head * HOUR) for look, head in enumerate(heads)]
    assert found == [None] * 4 + [MINUTE + hours * HOUR for hours in (3, 3, 6)]


def test_if_the_last_one_stands_still_the_distance_stays():
    pace = Pace(MINUTE)
    for look in range(10):
        pace.distance_ms(200 * look, look * HOUR)
    assert pace.distance_ms(1_000_000, 9 * HOUR) == MINUTE + 3 * HOUR


def test_if_the_last_one_never_moves_the_distance_is_the_least_one_after_a_while():
    pace = Pace(MINUTE)
    assert pace.distance_ms(0, 5 * HOUR) is None
    assert pace.distance_ms(PACE_KNOWN_AFTER_MS - 1, 5 * HOUR) is None
    assert pace.distance_ms(PACE_KNOWN_AFTER_MS, 5 * HOUR) == MINUTE
    assert pace.distance_ms(PACE_KNOWN_AFTER_MS, 6 * HOUR) == MINUTE + HOUR


def test_a_task_that_is_further_behind_and_comes_later_does_not_change_the_distance():
    pace = Pace(MINUTE)
    for look in range(10):
        pace.distance_ms(200 * look, look * HOUR)
    assert pace.distance_ms(2_000, 0) == MINUTE + 3 * HOUR
    assert pace.distance_ms(2_200, 4 * HOUR) == MINUTE + (1 + 1 + 4) * HOUR


def test_after_a_time_in_which_nobody_lagged_the_pace_is_found_anew():
    pace = Pace(MINUTE)
    for look in range(10):
        pace.distance_ms(200 * look, look * HOUR)
    assert pace.distance_ms(2_000, None) is None
    assert pace.distance_ms(2_200, 9 * HOUR) is None


def test_the_least_distance_covers_the_grace_and_what_steps_hold_back():
    def made(size_ms: int, grace_ms: int) -> int:
        builder = StreamsBuilder()
        windows = TimeWindows.tumbling(size_ms, grace=grace_ms)
        stream = builder.stream("in", key=str, value=str).group_by(lambda _, value: value, key=str)
        for name in ("one", "two"):
            counts = stream.windowed_by(windows).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count(name=name)
            stream = counts.to_stream().group_by(lambda at, _: at.key, key=str)
        stream.count().to_stream().to("out")
        built = builder.build().build("app")
        return least_distance_ms(built, stages_of(built, inputs_of(built, partitions=2)))

    assert made(5, 3) == MINUTE
    # The second one waits for the first; nothing waits for the second.
    assert made(2 * HOUR, HOUR) == (2 * HOUR + HOUR) + HOUR


# Who pauses


def test_a_thread_does_not_wait_for_its_own_tasks():
    spread = Spread({FIRST: 5, SECOND: 7}, frozenset({FIRST, SECOND}), 100)
    assert spread.limit_ms() == spread.limit_ms({SECOND}) == 105
    assert spread.limit_ms({FIRST}) == 107
    assert spread.limit_ms({FIRST, SECOND}) == TIME_MAX
    assert Spread({FIRST: 5}, frozenset({FIRST})).limit_ms() == TIME_MAX


def two_that_lag(records: int = 100) -> Group:
    """The first is ten hours ahead of the second."""
    group = Group(IN_A_ROW, partitions=2)
    for partition in range(2):
        group.write(0, partition, records)
    group.commit(0, 0, 50, time=10 * HOUR, head=10 * HOUR)
    group.commit(0, 1, 10, time=0, head=0)
    return group


def paced(group: Group) -> GroupView:
    """The view when the pace is known: nobody has moved."""
    for _ in range(int(PACE_KNOWN_AFTER_MS / 200) + 1):
        view = group.read(200)
    return view


def test_who_is_too_far_ahead_pauses():
    view = paced(two_that_lag())
    assert view.spread.limit_ms() == DISTANCE_MS_MIN
    assert view.spread.pausing() == {FIRST}


def test_who_has_no_known_head_holds_nobody():
    group = two_that_lag()
    group.commit(0, 1, 11, time=0)
    assert paced(group).spread.limit_ms({FIRST}) == TIME_MAX


def test_who_has_caught_up_holds_nobody_and_does_not_pause():
    group = two_that_lag()
    group.commit(0, 0, 100, time=10 * HOUR, head=10 * HOUR)
    view = paced(group)
    assert view.spread.may_pause == {SECOND}
    group.commit(0, 1, 100, time=HOUR, head=HOUR)
    assert paced(group).spread.limit_ms() == TIME_MAX


def test_a_task_between_holds_those_before_it_and_never_pauses():
    group = two_that_lag()
    group.write(1, 0, 10)
    group.commit(1, 0, 1, time=0, head=0)
    group.commit(0, 1, 20, time=HOUR, head=HOUR)
    view = paced(group)
    assert view.spread.limit_ms() == DISTANCE_MS_MIN
    assert view.spread.pausing() == {FIRST, SECOND}
    assert view.spread.may_pause == {FIRST, SECOND}


def test_a_task_between_that_has_done_what_came_holds_nobody():
    group = two_that_lag()
    group.write(1, 0, 10)
    group.commit(1, 0, 10, time=0, seen=HOUR, head=0)
    group.commit(0, 1, 20, time=HOUR, head=HOUR)
    assert paced(group).spread.limit_ms() == HOUR + DISTANCE_MS_MIN


def test_who_pauses_is_not_given_up_and_who_holds_it_is():
    group = two_that_lag()
    paced(group)
    view = group.read(WAIT_MAX_MS)
    assert [task.task_id for task in view.given_up] == [SECOND]
    assert [task.task_id for task in view.lagging] == [FIRST]
    assert not view.spread.pausing()


def test_who_does_not_move_although_nobody_holds_it_is_given_up():
    group = two_that_lag()
    paced(group)
    for offset in range(11, 20):
        group.commit(0, 1, offset, time=10 * HOUR, head=10 * HOUR)
        view = group.read(WAIT_MAX_MS / 4)
    assert [task.task_id for task in view.given_up] == [FIRST]
