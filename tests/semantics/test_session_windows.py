"""Sessions grow and merge; nulls and late records; what is emitted with a cache and without."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pystreams import (
    EmitStrategy,
    KTable,
    SessionWindowedKStream,
    SessionWindows,
    StreamsBuilder,
    TopologyError,
    TopologyTestDriver,
    Windowed,
)

Records = Iterable[tuple[str | None, str | None, int]]


def sessions(builder: StreamsBuilder, windows: SessionWindows) -> SessionWindowedKStream[str, str]:
    return builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)


def emitted(
    builder: StreamsBuilder,
    table: KTable[Windowed[str], Any],
    records: Records,
    *,
    cached: bool = False,
    value: type = int,
) -> tuple[list[tuple[str, Any, int]], int]:
    """(session, value, timestamp) of what comes out, and how many records were dropped."""
    table.to_stream(lambda session, _: str(session), key=str).to("out")
    settings = {} if cached else {"statestore_cache_max_bytes": 0}
    with TopologyTestDriver(builder.build(), settings) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key, text, timestamp in records:
            topic.pipe_input(key, text, timestamp=timestamp)
        out: list[Any] = driver.create_output_topic("out", key=str, value=value).read_records()
        return [(r.key, r.value, r.timestamp) for r in out], driver.dropped_records


def test_a_record_between_two_sessions_makes_them_one_and_deletes_both() -> None:
    builder = StreamsBuilder()
    table = sessions(builder, SessionWindows.of(5, grace=100)).count()
    out, _ = emitted(builder, table, [("a", "x", 10), ("a", "x", 20), ("a", "x", 15)])
    assert out == [
        ("a@10/10", 1, 10),
        ("a@20/20", 1, 20),
        ("a@10/10", None, 10),
        ("a@20/20", None, 20),
        ("a@10/20", 3, 20),
    ]


def test_with_a_cache_the_session_that_keeps_its_bounds_is_not_deleted() -> None:
    builder = StreamsBuilder()
    table = sessions(builder, SessionWindows.of(5)).count()
    out, _ = emitted(builder, table, [("a", "x", 10), ("a", "x", 12), ("a", "x", 12)], cached=True)
    assert out == [("a@10/10", 1, 10), ("a@10/10", None, 10), ("a@10/12", 2, 12), ("a@10/12", 3, 12)]


def test_the_gap_is_within_a_session_and_a_millisecond_more_begins_another() -> None:
    builder = StreamsBuilder()
    table = sessions(builder, SessionWindows.of(5)).reduce(lambda one, two: one + two)
    out, _ = emitted(builder, table, [("a", "x", 10), ("a", "y", 15), ("a", "z", 21)], value=str)
    assert [line for line in out if line[1] is not None] == [
        ("a@10/10", "x", 10),
        ("a@10/15", "xy", 15),
        ("a@21/21", "z", 21),
    ]


def test_the_merger_gets_the_aggregates_in_the_order_of_their_ends() -> None:
    builder = StreamsBuilder()
    table = sessions(builder, SessionWindows.of(5, grace=50)).aggregate(
        str, lambda total, value: total + value, lambda key, one, two: f"{one}[{key}{two}]", name="s"
    )
    out, _ = emitted(builder, table, [("a", "y", 20), ("a", "x", 10), ("a", "z", 15)], value=str)
    assert out[-1] == ("a@10/20", "[ax][ay]z", 20)


def test_null_keys_are_dropped_and_null_values_are_not() -> None:
    builder = StreamsBuilder()
    table = sessions(builder, SessionWindows.of(5)).count()
    out, dropped = emitted(builder, table, [(None, "x", 100), ("a", None, 10)])
    assert (out, dropped) == ([("a@10/10", 1, 10)], 1)


def test_a_session_takes_records_until_stream_time_is_past_its_end_gap_and_grace() -> None:
    builder = StreamsBuilder()
    table = sessions(builder, SessionWindows.of(5, grace=3)).count()
    out, dropped = emitted(builder, table, [("a", "x", 10), ("b", "x", 18), ("c", "x", 10), ("c", "x", 9)])
    assert ([line[0] for line in out], dropped) == (["a@10/10", "b@18/18", "c@10/10"], 1)


def test_on_close_each_session_comes_once_when_it_has_closed() -> None:
    builder = StreamsBuilder()
    grouped = sessions(builder, SessionWindows.of(5)).emit_strategy(EmitStrategy.on_window_close())
    records = [("a", "x", 10), ("a", "x", 12), ("b", "x", 17), ("b", "x", 18), ("c", "x", 100)]
    out, _ = emitted(builder, grouped.count(), records)
    assert out == [("a@10/12", 2, 12), ("b@17/18", 2, 18)]


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        (lambda: SessionWindows.of(0), "inactivity_gap must be at least 1 ms"),
        (lambda: SessionWindows.of(5, grace=-1), "grace must be at least 0 ms"),
        (
            lambda: SessionWindows.of("5"),  # type: ignore[arg-type]
            "is not a duration",
        ),
    ],
)
def test_windows_that_cannot_be_are_refused(windows: Any, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        windows()


def test_mistakes_are_reported_when_the_topology_is_written() -> None:
    grouped = sessions(StreamsBuilder(), SessionWindows.of(5, grace=3))
    with pytest.raises(TopologyError, match=r"long enough: retention=7 ms\n(.*\n)*.*at least retention=8"):
        grouped.count(name="s", retention=7)
    with pytest.raises(TopologyError, match="emit_strategy takes a strategy, not 'close'"):
        grouped.emit_strategy("close")  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match=r"takes 1 argument\n(.*\n)*.*\(one, two\) or \(key, one, two\)"):
        grouped.aggregate(str, lambda total, value: total + value, lambda one: one)  # type: ignore[arg-type, misc]
    with pytest.raises(TypeError, match="did you mean retention"):
        grouped.count(retenton=7)  # type: ignore[call-arg]
