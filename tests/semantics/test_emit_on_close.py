"""Windows that are emitted when they have closed, unlimited windows, and what may not be asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
    UnlimitedWindows,
)
from tests.examples import examples


def emitted(
    windows: Any, records: Sequence[int | tuple[str, int]], settings: dict[str, Any], **store: Any
) -> list[tuple[str, int]]:
    """What comes of records, which are (key, timestamp), or a timestamp of key ``a``."""
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)
    strategy = EmitStrategy.on_window_close()
    counts = grouped.emit_strategy(strategy).count(**store)
    counts.to_stream(lambda window, _: str(window), key=str).to("out")
    with TopologyTestDriver(builder.build(), settings) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for record in records:
            key, timestamp = ("a", record) if isinstance(record, int) else record
            topic.pipe_input(key, "x", timestamp=timestamp)
        return driver.create_output_topic("out", key=str, value=int).read_key_values()


@pytest.mark.parametrize("config", [{}, {"statestore_cache_max_bytes": 0}], ids=["cached", "uncached"])
def test_a_window_comes_once_when_stream_time_reaches_its_end_and_grace(config: dict[str, Any]) -> None:
    times = [1, 12, 9, 14, 15, 26, 40]
    out = emitted(TimeWindows.tumbling(10, grace=5), times, config)
    assert out == [("a@0/10", 2), ("a@10/20", 3), ("a@20/30", 1)]


def test_hopping_windows_come_in_the_order_of_their_starts() -> None:
    out = emitted(TimeWindows.hopping(10, advance=5), [7, 12, 30], {})
    assert out == [("a@0/10", 1), ("a@5/15", 2), ("a@10/20", 1)]


WINDOWS = {
    "tumbling": TimeWindows.tumbling(10),
    "tumbling, late": TimeWindows.tumbling(10, grace=7),
    "hopping": TimeWindows.hopping(10, advance=4),
    "hopping, late": TimeWindows.hopping(10, advance=4, grace=3),
    "sliding": SlidingWindows.of(5),
    "sliding, late": SlidingWindows.of(5, grace=7),
    "sliding, points": SlidingWindows.of(0, grace=5),
    "sessions": SessionWindows.of(4),
    "sessions, late": SessionWindows.of(4, grace=5),
}
#: As little as the windows need. Of sessions and points a millisecond more: else, as in Java, sessions that are just as
#: far apart as the gap are not found to be merged, and points of stores in memory are dropped as late.
SHORT = {
    kind: {"retention": ms} for kind, ms in (("sessions", 5), ("sessions, late", 10), ("sliding, points", 6))
}
FAR = 10**9

KINDS = pytest.mark.parametrize("kind", WINDOWS)
PERSISTENT = pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
CACHES = pytest.mark.parametrize(
    "store",
    [{"cached": False}, {"bytes": 0}, {"bytes": 300}, {}],
    ids=["store without a cache", "no cache", "small cache", "cached"],
)


@KINDS
@PERSISTENT
@CACHES
def test_no_window_is_lost_where_stream_time_jumps(
    kind: str, persistent: bool, store: dict[str, Any]
) -> None:
    times = [21, 21, 22, 29]
    for jump in (1, 10, 10, 1_000, 70_000, 200_000, 10, FAR, FAR):
        times += [times[-1] + jump, times[-1] + jump + 2]
    store = {"persistent": persistent, **store}
    config = {"statestore_cache_max_bytes": store.pop("bytes", 10_000_000)}
    out = emitted(WINDOWS[kind], times, config, **store, **SHORT.get(kind, {}))
    assert out == emitted(WINDOWS[kind], times, config, **store, retention=10 * FAR)
    assert out


@given(
    st.sampled_from(list(WINDOWS)),
    st.booleans(),
    st.sampled_from([0, 300, 10_000_000]),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0, 1, 2, 5, 9, 30, 70_000])), max_size=15),
)
@examples(15)
def test_each_window_comes_once_with_all_that_was_in_it(
    kind: str, persistent: bool, cache_bytes: int, steps: list[tuple[str, int]]
) -> None:
    now, records = 0, []
    for key, pause in steps:
        now += pause
        records.append((key, now))
    records.append(("z", now + FAR))
    config = {"statestore_cache_max_bytes": cache_bytes}
    store = {"persistent": persistent}
    out = emitted(WINDOWS[kind], records, config, **store, **SHORT.get(kind, {}))
    assert out == emitted(WINDOWS[kind], records, config, **store, retention=10 * FAR)
    if kind.startswith(("tumbling", "hopping")):
        assert sorted(out) == sorted(counted(WINDOWS[kind], records[:-1]).items())


def counted(windows: Any, records: list[tuple[str, int]]) -> dict[str, int]:
    """The windows of these records, by their definition."""
    found: Counter[str] = Counter()
    for key, time in records:
        for start in range(time // windows.advance_ms * windows.advance_ms, -1, -windows.advance_ms):
            if start + windows.size_ms <= time:
                break
            found[f"{key}@{start}/{start + windows.size_ms}"] += 1
    return found


@PERSISTENT
def test_a_session_comes_whose_store_shows_it_no_more_before_it_closes(persistent: bool) -> None:
    """The store shows sessions that end less than its retention ago, and one closes a millisecond later."""
    for later in (16, FAR):
        records = [("a", 10), ("b", 15), ("b", later)]
        out = emitted(SessionWindows.of(5), records, {}, persistent=persistent)
        assert out[0] == ("a@10/10", 1)


@PERSISTENT
def test_what_a_failing_function_has_held_up_comes_with_the_next_record(persistent: bool) -> None:
    """A record has moved the store's time with its first window when the function fails for its second one."""

    def add(total: int, value: str) -> int:
        if value == "bad" and total == 0 and failing.pop(0):
            raise ValueError(value)
        return total + 1

    out = []
    stores: tuple[dict[str, Any], ...] = ({}, {"retention": 10 * FAR})
    for store in stores:
        failing = [False, True]
        builder = StreamsBuilder()
        grouped = builder.stream("in", key=str, value=str).group_by_key()
        windowed = grouped.windowed_by(TimeWindows.hopping(10, advance=4))
        aggregated = windowed.emit_strategy(EmitStrategy.on_window_close())
        sums = aggregated.aggregate(int, add, persistent=persistent, **store)
        sums.to_stream(lambda window, _: str(window), key=str).to("out")
        config = {"processing_exception_handler": "continue", "statestore_cache_max_bytes": 0}
        with TopologyTestDriver(builder.build(), config) as driver:
            topic = driver.create_input_topic("in", key=str, value=str)
            for value, timestamp in (("good", 21), ("bad", FAR), ("good", FAR + 1)):
                topic.pipe_input("a", value, timestamp=timestamp)
            assert failing == []
            out.append(driver.create_output_topic("out", key=str, value=int).read_key_values())
    assert out[0] == out[1] == [("a@12/22", 1), ("a@16/26", 1), ("a@20/30", 1)]


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


def test_mistakes_are_reported_when_the_topology_is_written() -> None:
    grouped = StreamsBuilder().stream("in", key=str, value=str).group_by_key()
    with pytest.raises(TopologyError, match="unlimited windows never close"):
        grouped.windowed_by(UnlimitedWindows.of()).emit_strategy(EmitStrategy.on_window_close())
    with pytest.raises(TopologyError, match="start must be at least 0 ms"):
        UnlimitedWindows.of(start=-1)
    with pytest.raises(TopologyError, match="windowed_by takes windows, not 10"):
        grouped.windowed_by(10)  # type: ignore[call-overload]
