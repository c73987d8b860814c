"""A join of two tables follows the changes of both."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import StreamsBuilder, TopologyError
from pystreams.record import Record
from pystreams.testing import TopologyTestDriver


def joined(method: str, **store: Any) -> StreamsBuilder:
    """``left`` joined with ``right``, written to ``out``."""
    builder = StreamsBuilder()
    left = builder.table("left", key=str, value=str)
    right = builder.table("right", key=str, value=str)
    result = getattr(left, method)(right, lambda one, two: f"{one}+{two}", **store)
    result.to_stream().to("out", key=str, value=str)
    return builder


def results(builder: StreamsBuilder, *changes: tuple[str, str | None, int]) -> list[tuple[Any, int]]:
    """(value, timestamp) of what comes out for changes (table, value, timestamp) of one key."""
    with TopologyTestDriver(builder, {"statestore_cache_max_bytes": 0}) as driver:
        for topic, value, timestamp in changes:
            driver.create_input_topic(topic, key=str, value=str).pipe_input("k", value, timestamp=timestamp)
        if "out" not in driver.produced_topics:
            return []
        records: list[Record[str, str]] = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.value, record.timestamp) for record in records]


ONE_SIDE = [("left", "A", 5), ("left", None, 6), ("right", "B", 7), ("right", None, 8)]


def test_an_inner_join_has_rows_that_both_tables_have() -> None:
    changes = [("left", "A", 5), ("right", "B", 3), ("left", None, 9), ("right", None, 10)]
    assert results(joined("join"), *changes) == [("A+B", 5), (None, 9)]
    assert results(joined("join"), *ONE_SIDE) == []


def test_a_left_join_has_every_row_of_the_left_table() -> None:
    changes = [("right", "B", 3), ("left", "A", 2), ("right", None, 4), ("left", None, 5)]
    assert results(joined("left_join"), *changes) == [("A+B", 3), ("A+None", 4), (None, 5)]
    assert results(joined("left_join"), *ONE_SIDE) == [("A+None", 5), (None, 6)]


def test_an_outer_join_has_every_row_of_either() -> None:
    expected = [("A+None", 5), (None, 6), ("None+B", 7), (None, 8)]
    assert results(joined("outer_join"), *ONE_SIDE) == expected


def test_the_time_of_a_row_is_that_of_the_later_side() -> None:
    assert results(joined("join"), ("left", "A", 50), ("right", "B", 7)) == [("A+B", 50)]


def test_a_named_join_can_be_queried() -> None:
    builder = joined("outer_join", name="both", value=str)
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("left", key=str, value=str).pipe_input("a", "A", timestamp=1)
        driver.create_input_topic("right", key=str, value=str).pipe_input("b", "B", timestamp=2)
        store = driver.store("both")
        assert list(store.all()) == [("a", ("A+None", 1)), ("b", ("None+B", 2))]


def test_a_function_of_three_is_given_the_key_whichever_side_changes() -> None:
    builder = StreamsBuilder()
    left, right = (builder.table(name, key=str, value=str) for name in ("left", "right"))
    left.join(right, lambda key, one, two: f"{key}:{one}{two}").to_stream().to("out")
    changes = [("left", "A", 1), ("right", "B", 2), ("left", "C", 3)]
    assert results(builder, *changes) == [("k:AB", 2), ("k:CB", 3)]


def test_a_joined_table_without_a_store_can_be_read_by_a_stream() -> None:
    builder = StreamsBuilder()
    left, right = (builder.table(name, key=str, value=str) for name in ("left", "right"))
    both = left.outer_join(right, lambda one, two: f"{one}{two}")
    builder.stream("in", key=str, value=str).left_join(both, lambda line, row: f"{line}:{row}").to("out")
    changes = [("in", "1", 1), ("right", "B", 2), ("in", "2", 3), ("left", "A", 4), ("in", "3", 5)]
    assert results(builder, *changes) == [("1:None", 1), ("2:NoneB", 3), ("3:AB", 5)]


def test_old_values_of_a_join_leave_their_groups() -> None:
    builder = StreamsBuilder()
    left, right = (builder.table(name, key=str, value=str) for name in ("left", "right"))
    both = left.join(right, lambda one, two: one + two)
    both.group_by(lambda key, value: (value, value)).count().to_stream().to("out", key=str, value=int)
    with TopologyTestDriver(builder, {"statestore_cache_max_bytes": 0}) as driver:
        for topic, value in (("left", "A"), ("right", "B"), ("left", "C")):
            driver.create_input_topic(topic, key=str, value=str).pipe_input("k", value)
        counts = driver.create_output_topic("out", key=str, value=int).read_key_values()
    assert counts == [("AB", 1), ("AB", 0), ("CB", 1)]


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20], ids=["without a cache", "with a cache"])
def test_a_row_that_both_tables_lose_at_once_is_gone(cache_bytes: int) -> None:
    builder = StreamsBuilder()
    lines = builder.stream("in", key=str, value=str)
    left, right = lines.to_table(), lines.map_values(lambda line: line).to_table()
    left.join(right, lambda one, two: one + two, name="both", value=str).to_stream().to("out")
    with TopologyTestDriver(builder, {"statestore_cache_max_bytes": cache_bytes}) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values([("a", "x"), ("a", None)])
        changes = driver.create_output_topic("out", key=str, value=str).read_key_values()
    assert changes[-1] == ("a", None)


def test_joining_a_stream_is_refused_with_the_way_out() -> None:
    builder = StreamsBuilder()
    table = builder.table("t", key=str, value=str)
    with pytest.raises(
        TopologyError, match=r"join of a table takes a table, not KStream\n(.*\n)*.*to_table\(\)"
    ):
        table.join(builder.stream("in", key=str, value=str), lambda one, two: one)  # type: ignore[arg-type]


def test_tables_of_different_builders_cannot_be_joined() -> None:
    one, other = (StreamsBuilder().table("t", key=str, value=str) for _ in range(2))
    with pytest.raises(TopologyError, match="belong to different builders"):
        one.join(other, lambda left, right: left)
