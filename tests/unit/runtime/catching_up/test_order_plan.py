"""Tasks are in an order only where a step behind them depends on stream time, as exact as its grace needs it."""

from __future__ import annotations

import pytest

from pystreams import StreamsBuilder, TimeWindows
from pystreams.runtime.catching_up.order_plan import OrderPlan, order_plan

MINUTE = 60_000


def counting(*graces: int, hops: int) -> OrderPlan | None:
    """The plan of a program that counts in windows, one count for each grace, after some repartitions."""
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    for hop in range(hops):
        stream = stream.select_key(lambda value: value, key=str).repartition(name=f"hop-{hop}")
    for grace in graces:
        stream.group_by_key().windowed_by(TimeWindows.tumbling(MINUTE, grace=grace)).count()
    return order_plan(builder.build().build("app"))


def test_a_program_without_a_topic_between_needs_no_order():
    assert counting(MINUTE, hops=0) is None


def test_a_program_whose_steps_look_at_no_time_needs_no_order():
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by(lambda value: value, key=str).count()
    assert order_plan(builder.build().build("app")) is None


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_all_that_is_before_the_windows_is_in_order_but_not_they_themselves(hops):
    plan = counting(MINUTE, hops=hops)
    assert plan is not None
    assert plan.subtopologies == frozenset(range(hops))
    assert plan.topics_between == {f"app-hop-{hop}-repartition" for hop in range(hops)}


def test_what_feeds_no_windows_is_in_no_order():
    builder = StreamsBuilder()
    builder.stream("other", key=str, value=str).group_by(lambda value: value, key=str).count()
    words = builder.stream("in", key=str, value=str).group_by(lambda value: value, key=str)
    words.windowed_by(TimeWindows.tumbling(MINUTE)).count()
    plan = order_plan(builder.build().build("app"))
    assert plan is not None
    assert plan.subtopologies == {2}


def test_the_slack_is_half_of_the_smallest_grace_and_at_least_five_seconds():
    slacks = [counting(*graces, hops=1) for graces in ([MINUTE], [MINUTE, 20_000], [0])]
    assert [plan and plan.slack_ms for plan in slacks] == [30_000, 10_000, 5_000]
