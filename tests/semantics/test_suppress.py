"""``suppress`` holds changes of a table back; what comes through is the last of each key, when its time has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pystreams import KTable, SlidingWindows, StreamsBuilder, Suppressed, TimeWindows, WhenFull
from pystreams.dsl.windows import SessionWindows
from pystreams.errors import ProcessingError, StateError, TopologyError
from pystreams.record import Record
from pystreams.testing import TopologyTestDriver

Piped = tuple[str, str | None, int]
Build = Callable[[StreamsBuilder], KTable[Any, Any]]


def results(build: Build, piped: list[Piped]) -> list[Record[Any, Any]]:
    """What the table that ``build`` makes of topic ``in`` tells of (key, value, timestamp)."""
    builder = StreamsBuilder()
    build(builder).to_stream(lambda key, value: str(key), key=str).to("out")
    with TopologyTestDriver(builder, {"statestore_cache_max_bytes": 0}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key, value, timestamp in piped:
            topic.pipe_input(key, value, timestamp=timestamp)
        return driver.create_output_topic("out", key=str, value=str).read_records()


def rows(until: Suppressed[Any]) -> Build:
    return lambda builder: builder.table("in", key=str, value=str).suppress(until)


def closed(windows: TimeWindows | SlidingWindows | SessionWindows, **bounds: Any) -> Build:
    def build(builder: StreamsBuilder) -> KTable[Any, Any]:
        windowed: Any = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)
        counted: KTable[Any, int] = windowed.count()
        return counted.map_values(str).suppress(Suppressed.until_window_closes(**bounds))

    return build


def test_the_result_of_a_window_comes_once_when_its_end_and_grace_have_passed() -> None:
    windows = TimeWindows.tumbling(10, grace=5)
    piped: list[Piped] = [("a", "1", 1), ("a", "2", 2), ("b", "3", 14), ("a", "4", 9)]
    assert results(closed(windows), piped) == []
    assert results(closed(windows), [*piped, ("c", "5", 15)]) == [Record("a@0/10", "3", 9)]


def test_what_a_filter_before_it_leaves_out_does_not_close_windows() -> None:
    piped: list[Piped] = [("a", "1", 1), ("a", "2", 2), ("b", "3", 100)]
    final = Suppressed.until_window_closes()

    def counted(builder: StreamsBuilder) -> KTable[Any, int]:
        stream = builder.stream("in", key=str, value=str)
        return stream.group_by_key().windowed_by(TimeWindows.tumbling(10)).count()

    assert results(lambda builder: counted(builder).filter(lambda n: n > 1).suppress(final), piped) == []
    behind = results(
        lambda builder: counted(builder).suppress(final).filter(lambda n: n > 1).map_values(str), piped
    )
    assert behind == [Record("a@0/10", "2", 2)]


def test_sessions_close_after_gap_and_grace() -> None:
    windows = SessionWindows.of(10, grace=5)
    piped: list[Piped] = [("a", "1", 1), ("a", "2", 8), ("b", "3", 22)]
    assert results(closed(windows), piped) == []
    assert results(closed(windows), [*piped, ("b", "3", 23)]) == [Record("a@1/8", "2", 8)]


def test_windows_that_close_together_come_in_the_order_of_their_ends_and_keys() -> None:
    piped: list[Piped] = [("b", "1", 11), ("b", "2", 1), ("a", "3", 12), ("z", "4", 100)]
    found = results(closed(TimeWindows.tumbling(10, grace=20)), piped)
    assert [record.key for record in found] == ["b@0/10", "a@10/20", "b@10/20"]


def test_a_window_that_was_deleted_before_it_closed_is_never_heard_of() -> None:
    def build(builder: StreamsBuilder) -> KTable[Any, Any]:
        grouped: Any = builder.stream("in", key=str, value=str).group_by_key()
        last = grouped.windowed_by(TimeWindows.tumbling(10)).aggregate(
            lambda: "", lambda held, value: None if value == "gone" else value, value=str
        )
        held: KTable[Any, Any] = last.suppress(Suppressed.until_window_closes())
        return held

    piped: list[Piped] = [("a", "1", 1), ("a", "gone", 2), ("b", "1", 3), ("z", "1", 50)]
    assert results(build, piped) == [Record("b@0/10", "1", 3)]


def test_a_time_limit_counts_from_the_first_change_that_is_held_back() -> None:
    until = Suppressed.until_time_limit(10)
    piped: list[Piped] = [("a", "1", 1), ("a", "2", 9), ("a", "3", 11), ("a", "4", 12)]
    assert results(rows(until), piped) == [Record("a", "3", 11)]


def test_a_time_limit_lets_deletions_through() -> None:
    until = Suppressed.until_time_limit(0)
    assert results(rows(until), [("a", None, 5)]) == [Record("a", None, 5)]


def test_a_full_buffer_lets_the_first_changes_go_early() -> None:
    until = Suppressed.until_time_limit(1_000, max_records=2)
    piped: list[Piped] = [("b", "1", 1), ("a", "2", 1), ("c", "3", 2), ("d", "4", 0)]
    assert results(rows(until), piped) == [Record("a", "2", 1), Record("d", "4", 0)]


def test_the_bound_in_bytes_counts_keys_values_and_where_they_came_from() -> None:
    # 8 for the time, 1 key, 20 context, 2 topic, and the value.
    entry = 8 + 1 + 20 + len("in")
    piped: list[Piped] = [("a", "x" * 9, 1), ("b", "", 2)]
    until = Suppressed.until_time_limit(1_000, max_bytes=2 * entry + 9)
    assert results(rows(until), piped) == []
    until = Suppressed.until_time_limit(1_000, max_bytes=2 * entry + 8)
    assert results(rows(until), piped) == [Record("a", "x" * 9, 1)]


@pytest.mark.parametrize("bound", ["max_records", "max_bytes"])
def test_a_full_buffer_of_windows_stops_and_says_what_to_do(bound: str) -> None:
    build = closed(TimeWindows.tumbling(10), **{bound: 1})
    with pytest.raises(StateError) as caught:
        results(build, [("a", "1", 1), ("b", "1", 2)])
    for part in ("KTABLE-SUPPRESS", "holds back more changes", "of 1", "raise max_records= or max_bytes="):
        assert part in str(caught.value)


def test_a_time_limit_may_stop_when_it_is_full() -> None:
    until = Suppressed.until_time_limit(10, max_records=0, when_full=WhenFull.SHUT_DOWN)
    with pytest.raises(StateError, match="1 records of 0"):
        results(rows(until), [("a", "1", 1)])


def test_no_handler_lets_a_full_buffer_grow() -> None:
    builder = StreamsBuilder()
    held = Suppressed.until_time_limit(10, max_records=1, when_full=WhenFull.SHUT_DOWN)
    builder.table("in", key=str, value=str).suppress(held)
    with TopologyTestDriver(builder, {"processing_exception_handler": "continue"}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("a", "1")
        with pytest.raises(StateError, match="2 records of 1"):
            topic.pipe_input("b", "1")


def test_who_joins_the_table_sees_what_has_come_through() -> None:
    """What is held back is not there yet: the value from before is."""

    def build(builder: StreamsBuilder) -> KTable[Any, Any]:
        table = builder.table("in", key=str, value=str)
        held = table.suppress(Suppressed.until_time_limit(10))
        return table.left_join(held, lambda now, before: f"{now}/{before}", value=str)

    found = results(build, [("a", "1", 1), ("b", "2", 11), ("a", "3", 12)])
    assert [(record.key, record.value) for record in found] == [
        ("a", "1/None"),
        ("a", "1/1"),
        ("b", "2/None"),
        ("a", "3/1"),
    ]


def test_names_of_the_step_and_its_store() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    table.suppress(Suppressed.until_time_limit(1), step="calm")
    assert "Processor: calm (stores: [calm-store])" in builder.build().describe()


def test_windows_of_a_cogroup_are_held_back_below_a_table_that_keeps_versions() -> None:
    """Kafka Streams looks past the cogroup, takes the windows for a table with versions, and refuses them."""

    def build(builder: StreamsBuilder) -> KTable[Any, Any]:
        versions = builder.table("in", key=str, value=str, name="versions", history=100)
        cogrouped = versions.to_stream().group_by_key().cogroup(lambda text, value: text + value)
        windowed = cogrouped.windowed_by(TimeWindows.tumbling(10)).aggregate(str, value=str)
        return windowed.suppress(Suppressed.until_window_closes())

    piped: list[Piped] = [("a", "1", 1), ("a", "2", 2), ("b", "3", 14)]
    assert results(build, piped) == [Record("a@0/10", "12", 2)]


def test_a_table_without_windows_never_closes() -> None:
    builder = StreamsBuilder()
    table: Any = builder.table("in", key=str, value=str)
    with pytest.raises(TopologyError) as caught:
        table.filter(lambda value: True).suppress(Suppressed.until_window_closes())
    assert "needs a windowed table" in str(caught.value)
    assert "KTABLE-FILTER" in str(caught.value)
    assert "until_time_limit" in str(caught.value)


def test_rows_that_lost_their_window_are_refused() -> None:
    def build(builder: StreamsBuilder) -> KTable[Any, Any]:
        grouped = builder.stream("in", key=str, value=str).group_by_key()
        table = grouped.windowed_by(TimeWindows.tumbling(10)).count()
        by_key: Any = table.group_by(lambda key, value: (key.key, value), key=str, value=int).count()
        return by_key.map_values(str).suppress(Suppressed.until_window_closes())

    with pytest.raises(ProcessingError, match="needs windowed keys, not 'a'"):
        results(build, [("a", "1", 1)])


def test_suppress_takes_a_suppressed() -> None:
    table: Any = StreamsBuilder().table("in", key=str, value=str)
    with pytest.raises(TopologyError, match="suppress takes a Suppressed, not 10"):
        table.suppress(10)


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"wait": "1 h"}, "wait='1 h' is not a duration"),
        ({"wait": -1}, "wait must be at least 0 ms"),
        ({"wait": 1, "max_records": -1}, "max_records=-1 is not a valid limit"),
        ({"wait": 1, "max_bytes": 1.5}, "max_bytes=1.5 is not a valid limit"),
        ({"wait": 1, "when_full": "stop"}, "when_full='stop' is not a reaction to a full"),
    ],
)
def test_wrong_arguments_are_reported(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(TopologyError) as caught:
        Suppressed.until_time_limit(**arguments)
    assert told in str(caught.value)
