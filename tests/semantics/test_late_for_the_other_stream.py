"""A record of a join of two streams that comes when the other side has forgotten its partners counts as late."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import JoinWindows, StreamsBuilder
from pystreams.testing import TopologyTestDriver
from tests.examples import examples

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

#: Of each record its side and its time.
History = list[tuple[str, int]]


class Joined:
    """The results of a join of a history, and what was said of late records."""

    def __init__(self, history: History, *, kind: str = "join", grace: int = 0, **options: Any) -> None:
        builder = StreamsBuilder()
        left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
        windows = JoinWindows.of(MINUTE_MS, grace=grace)
        joined = getattr(left, kind)(right, lambda a, b: f"{a}{b}", windows=windows, step="pair", **options)
        joined.to("out", value=str)
        with TopologyTestDriver(builder) as driver:
            topics = {name: driver.create_input_topic(name, key=str, value=str) for name in ("left", "right")}
            for n, (side, time) in enumerate(history):
                topics[side].pipe_input("k", f"{side[0]}{n}", timestamp=time)
            self.results = driver.create_output_topic("out", key=str, value=str).read_values()
            self.late = driver.late_records
            self.left_out = driver.left_out
            self.dropped = driver.dropped_records


#: The right stream is an hour ahead; each stream is in order.
BEHIND: History = [("right", 0), ("right", HOUR_MS), ("left", 1), ("left", 2)]


@pytest.mark.parametrize("persistent", [True, False], ids=["disk", "memory"])
@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_it_is_not_dropped_but_counts_as_late(kind: str, persistent: bool) -> None:
    joined = Joined(BEHIND, kind=kind, persistent=persistent)
    assert not any("r0" in result and "l" in result for result in joined.results)
    (late,) = joined.late
    assert late.step == ("pair-outer-this-join" if kind == "outer_join" else "pair-this-join")
    assert (late.records, late.late_ms, late.read) == (2, HOUR_MS - 1, 2)
    assert (joined.left_out, joined.dropped) == ({}, 0)


def test_with_the_grace_that_is_named_it_meets_them() -> None:
    (late,) = Joined(BEHIND).late
    joined = Joined(BEHIND, grace=late.grace_ms)
    assert joined.results == ["l2r0", "l3r0"]
    assert joined.late == []


def test_a_record_that_its_own_side_drops_is_late_there_alone() -> None:
    joined = Joined([("left", 10 * HOUR_MS), ("right", 10 * HOUR_MS), ("left", 1)])
    assert [late.step for late in joined.late] == ["pair-this-windowed"]
    assert joined.left_out == {"dropped": 1}


#: No two of them are exactly a minute apart.
TIMES = st.integers(0, 10).map(lambda n: 10 * HOUR_MS + n * 25_000)


@given(st.lists(st.tuples(st.sampled_from(["left", "right"]), TIMES), max_size=12))
@examples(25)
def test_what_misses_a_partner_is_late(history: History) -> None:
    joined = Joined(history)
    pairs = {
        f"l{n}r{m}"
        for n, (one, at) in enumerate(history)
        for m, (other, then) in enumerate(history)
        if (one, other) == ("left", "right") and abs(at - then) <= MINUTE_MS
    }
    assert set(joined.results) <= pairs
    assert joined.late or set(joined.results) == pairs
