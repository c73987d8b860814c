"""The grace that is named for late records would have kept all of them, and is no longer than that needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import JoinWindows, SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows
from pystreams.engine.failures.lateness import LateRecords
from pystreams.testing import TopologyTestDriver
from tests.examples import examples

#: By kind, the windows with a grace.
WINDOWS: dict[str, Callable[[int], Any]] = {
    "tumbling": lambda grace: TimeWindows.tumbling(10, grace=grace),
    "hopping": lambda grace: TimeWindows.hopping(10, advance=4, grace=grace),
    "sliding": lambda grace: SlidingWindows.of(10, grace=grace),
    "session": lambda grace: SessionWindows.of(5, grace=grace),
}

HISTORIES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1_000, 1_060)), max_size=12)


def late(windows: Any, history: list[tuple[str, int]]) -> LateRecords | None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count(name="counts")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key, timestamp in history:
            topic.pipe_input(key, "x", timestamp=timestamp)
        found = driver.late_records
        assert bool(found) == (driver.dropped_records > 0)
        return found[0] if found else None


@pytest.mark.parametrize("kind", WINDOWS)
@given(history=HISTORIES, grace=st.integers(0, 8))
@examples(12)
def test_with_that_grace_nothing_is_late(kind: str, history: list[tuple[str, int]], grace: int) -> None:
    found = late(WINDOWS[kind](grace), history)
    if found is None:
        return
    assert found.grace_ms > grace
    assert (found.store, found.read) == ("counts", len(history))
    assert late(WINDOWS[kind](found.grace_ms), history) is None
    # A session that has grown may still take a record for which there was none before.
    if kind != "session":
        assert late(WINDOWS[kind](found.grace_ms - 1), history) is not None


@given(history=HISTORIES)
@examples(12)
def test_the_worst_lateness_is_the_distance_from_stream_time(history: list[tuple[str, int]]) -> None:
    found = late(TimeWindows.tumbling(10), history)
    stream_time, worst = -1, 0
    for _, timestamp in history:
        stream_time = max(stream_time, timestamp)
        if timestamp // 10 * 10 + 10 <= stream_time:
            worst = max(worst, stream_time - timestamp)
    assert (0 if found is None else found.late_ms) == worst


def join_late(grace: int, times: list[int]) -> list[LateRecords]:
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
    left.join(right, lambda a, b: a + b, windows=JoinWindows.of(60_000, grace=grace), name="pairs").to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("left", key=str, value=str)
        for time in times:
            topic.pipe_input("a", "x", timestamp=time)
        return driver.late_records


def test_a_record_that_is_too_late_to_wait_for_its_partner_is_late() -> None:
    (found,) = join_late(0, [0, 1_000_000, 500_000])
    assert (found.store, found.records, found.late_ms, found.read) == ("pairs-this-join-store", 1, 500_000, 3)
    assert join_late(found.grace_ms, [0, 1_000_000, 500_000]) == []


def test_records_that_are_dropped_for_other_reasons_are_not_late() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().windowed_by(TimeWindows.tumbling(10)).count()
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input(None, "x", timestamp=5)
        assert (driver.dropped_records, driver.late_records) == (1, [])


def test_a_closed_window_that_a_cache_writes_after_its_retention_is_not_a_late_record() -> None:
    """Its result was forwarded before, so no data is lost; the metric counts the write, as in Java."""
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.windowed_by(TimeWindows.tumbling(60_000)).count(name="counts")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "x", timestamp=0)
        store = driver.store("counts")
        layer = store.layer
        for start in (600_000, 0):
            layer.put((b"a", start), b"value")
        assert (driver.dropped_records, driver.late_records, driver.left_out) == (1, [], {})


def test_a_row_that_is_older_than_the_history_of_its_table_is_dropped_and_not_called_late() -> None:
    builder = StreamsBuilder()
    builder.table("in", key=str, value=str, name="rows", history=10)
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for timestamp in (0, 100, 50):
            topic.pipe_input("a", "x", timestamp=timestamp)
        assert (driver.dropped_records, driver.late_records, driver.left_out) == (1, [], {"dropped": 1})
