"""Windows that are emitted when they have closed, unlimited windows, and what may not be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import (
    EmitStrategy,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
    UnlimitedWindows,
)


def emitted(windows: Any, times: list[int], settings: dict[str, Any], **store: Any) -> list[tuple[str, int]]:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)
    strategy = EmitStrategy.on_window_close()
    counts = grouped.emit_strategy(strategy).count(**store)
    counts.to_stream(lambda window, _: str(window), key=str).to("out")
    with TopologyTestDriver(builder.build(), settings) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for timestamp in times:
            topic.pipe_input("a", "x", timestamp=timestamp)
        return driver.create_output_topic("out", key=str, value=int).read_key_values()


@pytest.mark.parametrize("settings", [{}, {"statestore_cache_max_bytes": 0}], ids=["cached", "uncached"])
def test_a_window_comes_once_when_stream_time_reaches_its_end_and_grace(settings: dict[str, Any]) -> None:
    times = [1, 12, 9, 14, 15, 26, 40]
    out = emitted(TimeWindows.tumbling(10, grace=5), times, settings, retention=1_000)
    assert out == [("a@0/10", 2), ("a@10/20", 3), ("a@20/30", 1)]


def test_hopping_windows_come_in_the_order_of_their_starts() -> None:
    out = emitted(TimeWindows.hopping(10, advance=5), [7, 12, 30], {}, retention=1_000)
    assert out == [("a@0/10", 1), ("a@5/15", 2), ("a@10/20", 1)]


def test_a_store_that_shows_a_window_no_more_has_lost_it() -> None:
    """As in Java: stream time jumps by more than the retention, and no cache holds the window."""
    uncached = {"statestore_cache_max_bytes": 0}
    assert emitted(TimeWindows.tumbling(10), [1, 100], uncached) == []
    assert emitted(TimeWindows.tumbling(10), [1, 100], uncached, retention=200) == [("a@0/10", 1)]


def test_an_unlimited_window_takes_all_from_its_start_on() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    counts = grouped.windowed_by(UnlimitedWindows.of(start=100)).count(name="u")
    counts.to_stream(lambda window, _: str(window), key=str).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for timestamp in (99, 100, 10**15, 150):
            topic.pipe_input("a", "x", timestamp=timestamp)
        records = driver.create_output_topic("out", key=str, value=int).read_records()
        out = [(r.key, r.value, r.timestamp) for r in records]
        assert driver.dropped_records == 0
    key = f"a@100/{2**63 - 1}"
    assert out == [(key, 1, 100), (key, 2, 10**15), (key, 3, 10**15)]


def test_mistakes_are_told_when_the_topology_is_written() -> None:
    grouped = StreamsBuilder().stream("in", key=str, value=str).group_by_key()
    with pytest.raises(TopologyError, match="unlimited windows never close"):
        grouped.windowed_by(UnlimitedWindows.of()).emit_strategy(EmitStrategy.on_window_close())
    with pytest.raises(TopologyError, match="start must be at least 0 ms"):
        UnlimitedWindows.of(start=-1)
    with pytest.raises(TopologyError, match="windowed_by takes windows, not 10"):
        grouped.windowed_by(10)  # type: ignore[call-overload]
