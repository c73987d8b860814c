"""Sliding windows: which there are, early, late and null records, and what is emitted on close."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import (
    EmitStrategy,
    SlidingWindows,
    StreamsBuilder,
    TimeWindowedKStream,
    TopologyError,
    TopologyTestDriver,
)
from tests.examples import examples

Records = Iterable[tuple[str | None, str | None, int]]
UNCACHED = {"statestore_cache_max_bytes": 0}


def sliding(builder: StreamsBuilder, windows: SlidingWindows) -> TimeWindowedKStream[str, str]:
    return builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)


def counted(
    windows: SlidingWindows, records: Records, *, on_close: bool = False, **store: Any
) -> tuple[list[tuple[str, int]], int]:
    """(window, count) of what comes out, and how many records were dropped."""
    builder = StreamsBuilder()
    grouped = sliding(builder, windows)
    if on_close:
        grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    grouped.count(**store).to_stream(lambda window, _: str(window), key=str).to("out")
    with TopologyTestDriver(builder.build(), UNCACHED) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key, value, timestamp in records:
            topic.pipe_input(key, value, timestamp=timestamp)
        out = driver.create_output_topic("out", key=str, value=int).read_key_values()
        return out, driver.dropped_records


def test_there_is_a_window_that_ends_with_each_record_and_one_behind_it() -> None:
    out, _ = counted(SlidingWindows.of(10, grace=50), [("a", "x", 20), ("a", "x", 25), ("a", "x", 22)])
    assert out == [
        ("a@10/20", 1),
        ("a@21/31", 1),
        ("a@15/25", 2),
        ("a@21/31", 2),
        ("a@15/25", 3),
        ("a@12/22", 2),
        ("a@23/33", 1),
    ]


def test_records_before_the_time_difference_share_the_window_from_zero_on() -> None:
    out, _ = counted(SlidingWindows.of(10, grace=50), [("a", "x", 3), ("a", "x", 5)])
    assert out == [("a@0/10", 1), ("a@4/14", 1), ("a@0/10", 2)]


def deleted(_count: Any, _value: str) -> Any:
    """An aggregator that deletes its windows."""


def test_a_window_that_was_deleted_is_gone_though_its_deletion_is_in_the_cache() -> None:
    """Two aggregators read the windows of a record, one after the other. In Java the second fails."""
    found = []
    for cached in (True, False):
        builder = StreamsBuilder()
        stream = builder.stream("in", key=str, value=str)
        deleting = stream.peek(lambda value: None).group_by_key()
        cogroup = deleting.cogroup(deleted)
        cogroup = cogroup.cogroup(stream.group_by_key(), lambda count, _value: count + 1)
        windowed = cogroup.windowed_by(SlidingWindows.of(25))
        windowed.aggregate(int, name="counts", value=int, cached=cached)
        with TopologyTestDriver(builder) as driver:
            topic = driver.create_input_topic("in", key=str, value=str)
            for timestamp in (147, 150, 160):
                topic.pipe_input("a", "x", timestamp=timestamp)
            with driver.store("counts").all() as rows:
                found.append([(str(window), row.value) for window, row in rows])
    assert found[0] == found[1]
    assert found[0]


def test_null_keys_and_null_values_are_dropped() -> None:
    assert counted(SlidingWindows.of(10), [(None, "x", 20), ("a", None, 20)]) == ([], 2)


def test_a_record_is_dropped_when_all_its_windows_have_closed() -> None:
    out, dropped = counted(SlidingWindows.of(10, grace=5), [("a", "x", 100), ("b", "x", 85), ("b", "x", 84)])
    # The window behind the second record is still open, the one that ends with it is not.
    assert (out, dropped) == ([("a@90/100", 1)], 2)


def test_on_close_each_window_comes_once() -> None:
    out, _ = counted(SlidingWindows.of(10), [("a", "x", 20), ("a", "x", 25), ("b", "x", 36)], on_close=True)
    assert out == [("a@10/20", 1), ("a@15/25", 2), ("a@21/31", 1)]


def test_mistakes_are_reported_when_the_topology_is_written() -> None:
    with pytest.raises(TopologyError, match="time_difference must be at least 0 ms"):
        SlidingWindows.of(-1)
    with pytest.raises(TopologyError, match=r"long enough: retention=24 ms\n(.*\n)*.*at least retention=25"):
        sliding(StreamsBuilder(), SlidingWindows.of(10, grace=5)).count(name="s", retention=24)


@pytest.mark.parametrize("persistent", [True, False])
@examples(25)
@given(times=st.lists(st.integers(100, 160), min_size=1, max_size=12))
def test_in_any_order_the_windows_are_those_of_the_records(times: list[int], persistent: bool) -> None:
    """Of each two neighbouring sets of records that fit into a window, both are counted, and nothing else."""
    difference = 10
    out, _ = counted(
        SlidingWindows.of(difference, grace=1_000), [("a", "x", t) for t in times], persistent=persistent
    )
    starts = {t - difference for t in times} | {t + 1 for t in times}
    expected = {
        f"a@{start}/{start + difference}": count
        for start in starts
        if (count := sum(start <= t <= start + difference for t in times))
    }
    assert dict(out) == expected
