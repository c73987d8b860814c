"""How old the results of a sub-topology can be follows from what its steps hold back."""

from __future__ import annotations

import pytest

from pystreams import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from pystreams.runtime.catching_up.hold_back import hold_back_ms

MINUTE = 60_000
TUMBLING = TimeWindows.tumbling(5 * MINUTE, grace=7_000)


def of(builder: StreamsBuilder) -> int:
    (sub,) = builder.build().build("app").subtopologies
    return hold_back_ms(sub)


def windowed(builder: StreamsBuilder, windows):
    return builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (TUMBLING, 5 * MINUTE + 7_000),
        (TimeWindows.hopping(5 * MINUTE, advance=MINUTE, grace=7_000), 5 * MINUTE + 7_000),
        (SlidingWindows.of(5 * MINUTE, grace=7_000), 5 * MINUTE + 7_000),
        (SessionWindows.of(5 * MINUTE, grace=7_000), 5 * MINUTE + 7_000),
    ],
    ids=["tumbling", "hopping", "sliding", "session"],
)
@pytest.mark.parametrize("by", ["on close", "suppressed"])
def test_final_results_are_as_old_as_a_window_and_its_grace(windows, expected, by):
    builder = StreamsBuilder()
    counted = windowed(builder, windows)
    if by == "on close":
        counted.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count().to_stream().to("out")
    else:
        counted.count().suppress(Suppressed.until_window_closes()).to_stream().to("out")
    assert of(builder) == expected


def test_results_that_follow_every_record_are_not_held_back():
    builder = StreamsBuilder()
    windowed(builder, TUMBLING).count().to_stream().to("out")
    assert of(builder) == 0


def test_a_window_without_an_end_has_no_final_results_to_wait_for():
    builder = StreamsBuilder()
    windowed(builder, UnlimitedWindows.of()).count().to_stream().to("out")
    assert of(builder) == 0


def test_a_time_limit_is_what_is_held_back_and_steps_in_a_row_add_up():
    builder = StreamsBuilder()
    counts = windowed(builder, TUMBLING).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count()
    counts.suppress(Suppressed.until_time_limit(MINUTE)).to_stream().to("out")
    counts.to_stream().to("at-once")
    assert of(builder) == 5 * MINUTE + 7_000 + MINUTE


@pytest.mark.parametrize(("kind", "expected"), [("join", 0), ("left_join", 258_000), ("outer_join", 258_000)])
def test_a_record_without_a_match_waits_for_its_window_and_the_grace(kind, expected):
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
    windows = JoinWindows(MINUTE, 2 * MINUTE, 9_000)
    getattr(left, kind)(right, lambda a, b: f"{a}{b}", windows=windows).to("out")
    assert of(builder) == expected


def test_a_join_with_a_grace_holds_records_back_for_it():
    builder = StreamsBuilder()
    table = builder.table("rows", key=str, value=str, name="rows", history=MINUTE)
    builder.stream("in", key=str, value=str).join(table, lambda a, b: a + b, grace=7_000).to("out")
    assert of(builder) == 7_000
