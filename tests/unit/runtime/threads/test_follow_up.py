"""A thread asks for the next rebalance when its warm-ups are ready, but never again and again for the same ones."""

from __future__ import annotations

from pystreams.clock import ManualClock
from pystreams.ids import TaskId
from pystreams.runtime.group.membership_data import AssignmentInfo, pack_tasks
from pystreams.runtime.threads.follow_up import FollowUp

ONE, TWO = TaskId(0, 1), TaskId(0, 2)
ACCEPTABLE_LAG, PROBING_MS = 100, 600_000


def follow_up(
    *awaited: TaskId, clock: ManualClock | None = None, after: FollowUp | None = None, probes: bool = False
) -> FollowUp:
    info = AssignmentInfo(awaited=pack_tasks(awaited), follow_up_ms=PROBING_MS if probes else 0)
    return FollowUp(info, ACCEPTABLE_LAG, clock or ManualClock(), after)


def test_it_asks_once_when_all_that_is_awaited_is_ready():
    lags: dict[TaskId, int | None] = {ONE: None, TWO: 100}
    asks = follow_up(ONE, TWO)
    assert not asks.due(lambda: lags)
    lags[ONE] = 101
    assert not asks.due(lambda: lags)
    lags[ONE] = 100
    assert asks.due(lambda: lags)
    assert not asks.due(lambda: lags)


def test_without_anything_awaited_it_asks_when_the_time_is_over():
    clock = ManualClock()
    asks = follow_up(clock=clock, probes=True)
    assert not asks.due(dict)
    clock.advance_ms(PROBING_MS)
    assert asks.due(dict)
    assert not follow_up().due(dict)


def test_what_the_leader_awaits_again_although_it_was_said_to_be_ready_is_left_to_the_time():
    clock, ready = ManualClock(), {ONE: 0, TWO: 0}
    first = follow_up(ONE, clock=clock)
    assert first.due(lambda: ready)
    first.subscribes(lambda: ready)
    again = follow_up(ONE, clock=clock, after=first, probes=True)
    assert not again.due(lambda: ready)
    again.subscribes(lambda: ready)
    more = follow_up(ONE, TWO, clock=clock, after=again, probes=True)
    assert more.due(lambda: ready), "one of them is new"
    more.subscribes(lambda: ready)
    last = follow_up(ONE, TWO, clock=clock, after=more, probes=True)
    assert not last.due(lambda: ready)
    clock.advance_ms(PROBING_MS)
    assert last.due(lambda: ready)
    last.subscribes(lambda: ready)
    assert not follow_up(ONE, clock=clock, after=last).due(lambda: ready)


def test_it_asks_again_for_what_became_ready_after_its_subscription():
    """The group was already in a rebalance, in which a request for another one is lost."""
    ready = {ONE: 0}
    first = follow_up(ONE)
    first.subscribes(lambda: {ONE: ACCEPTABLE_LAG + 1})
    assert first.due(lambda: ready)
    assert follow_up(ONE, after=first).due(lambda: ready)
