"""Each step that drops, closes or emits something by stream time says how late its records may be."""

from __future__ import annotations

import pytest

from pystreams import (
    JoinWindows,
    Processor,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from pystreams.runtime.catching_up.time_steps import time_steps
from pystreams.state.stores.factory import Stores

MINUTE = 60_000
HOUR = 60 * MINUTE


def steps_of(builder: StreamsBuilder) -> dict[str, int | None]:
    """The graces of all steps of a program, by the class of the operation."""
    return {
        type(step.node.operation).__name__: step.grace_ms
        for sub in builder.build().build("app").subtopologies
        for step in time_steps(sub)
    }


@pytest.mark.parametrize(
    ("windows", "operation"),
    [
        (TimeWindows.tumbling(5 * MINUTE, grace=7_000), "WindowAggregate"),
        (TimeWindows.hopping(5 * MINUTE, advance=MINUTE, grace=7_000), "WindowAggregate"),
        (SlidingWindows.of(5 * MINUTE, grace=7_000), "SlidingAggregate"),
        (SessionWindows.of(5 * MINUTE, grace=7_000), "SessionAggregate"),
    ],
    ids=["tumbling", "hopping", "sliding", "session"],
)
def test_a_windowed_aggregation_has_the_grace_of_its_windows(windows, operation):
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count()
    assert steps_of(builder) == {operation: 7_000}


def test_the_window_that_never_ends_drops_nothing_in_any_time_that_a_record_can_have():
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().windowed_by(UnlimitedWindows.of()).count()
    assert (steps_of(builder)["WindowAggregate"] or 0) > 1 << 60


def test_an_inner_join_finds_a_match_while_the_other_record_is_kept():
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
    left.join(right, lambda a, b: a + b, windows=JoinWindows(MINUTE, 2 * MINUTE, 7_000))
    assert steps_of(builder)["StreamJoin"] == MINUTE + 7_000


def test_an_outer_join_lets_a_record_leave_without_a_match_after_its_grace():
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
    left.outer_join(right, lambda a, b: f"{a}{b}", windows=JoinWindows(MINUTE, 2 * MINUTE, 7_000))
    assert steps_of(builder)["StreamJoin"] == 7_000


def test_versions_expire_with_the_history_and_a_join_with_a_grace_waits_as_long():
    builder = StreamsBuilder()
    table = builder.table("rows", key=str, value=str, name="rows", history=HOUR)
    builder.stream("in", key=str, value=str).join(table, lambda a, b: a + b, grace=7_000)
    assert steps_of(builder) == {"TableSource": HOUR, "StreamTableJoin": 7_000}


def test_suppress_depends_on_time_but_drops_nothing():
    builder = StreamsBuilder()
    table = builder.table("rows", key=str, value=str)
    table.suppress(Suppressed.until_time_limit(MINUTE))
    assert steps_of(builder) == {"Suppress": None}


def test_a_processor_may_depend_on_time_and_its_stores_say_how():
    builder = StreamsBuilder()
    builder.stream("in").process(Processor)
    assert steps_of(builder) == {"Process": None}

    builder = StreamsBuilder()
    store = Stores.window_store("seen", str, str, retention=HOUR, size=MINUTE)
    builder.add_state_store(store)
    builder.stream("in").process(Processor, stores=["seen"])
    assert steps_of(builder) == {"Process": HOUR}


def test_a_program_that_looks_at_no_time_has_no_such_steps():
    builder = StreamsBuilder()
    table = builder.table("rows", key=str, value=str)
    builder.stream("in", key=str, value=str).join(table, lambda a, b: a + b).group_by_key().count()
    assert steps_of(builder) == {}
