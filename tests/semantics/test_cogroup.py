"""Several grouped streams with one aggregate: plain, by window and by session."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import (
    KGroupedStream,
    KTable,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
)

RECORDS = [("one", "a", "1", 1), ("two", "a", "2", 3), ("one", "b", "3", 4), ("two", "a", "4", 12)]


def add(total: str, value: str) -> str:
    return f"{total}+{value}"


def subtract(key: str, total: str, value: str) -> str:
    return f"{total}-{key}{value}"


def grouped(builder: StreamsBuilder, topic: str) -> KGroupedStream[str, str]:
    return builder.stream(topic, key=str, value=str).group_by_key()


def driven(builder: StreamsBuilder, table: KTable[Any, Any], records: Any = RECORDS) -> list[tuple[str, Any]]:
    table.to_stream(lambda key, _: str(key), key=str).to("out")
    with TopologyTestDriver(builder.build(), {"statestore_cache_max_bytes": 0}) as driver:
        names = {record[0] for record in records}
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in names}
        for topic, key, value, timestamp in records:
            topics[topic].pipe_input(key, value, timestamp=timestamp)
        return driver.create_output_topic("out", key=str, value=str).read_key_values()


def test_each_stream_has_its_aggregator_and_all_have_one_aggregate() -> None:
    builder = StreamsBuilder()
    cogrouped = grouped(builder, "one").cogroup(add).cogroup(grouped(builder, "two"), subtract)
    out = driven(builder, cogrouped.aggregate(str, name="all"))
    assert out == [("a", "+1"), ("a", "+1-a2"), ("b", "+3"), ("a", "+1-a2-a4")]


def test_by_window_and_by_session() -> None:
    builder = StreamsBuilder()
    cogrouped = grouped(builder, "one").cogroup(add).cogroup(grouped(builder, "two"), subtract)
    out = driven(builder, cogrouped.windowed_by(TimeWindows.tumbling(10)).aggregate(str))
    assert out == [("a@0/10", "+1"), ("a@0/10", "+1-a2"), ("b@0/10", "+3"), ("a@10/20", "-a4")]

    builder = StreamsBuilder()
    cogrouped = grouped(builder, "one").cogroup(add).cogroup(grouped(builder, "two"), subtract)
    sessions = cogrouped.windowed_by(SessionWindows.of(5)).aggregate(str, lambda one, two: one + two)
    out = driven(builder, sessions)
    assert [line for line in out if line[1] is not None] == [
        ("a@1/1", "+1"),
        ("a@1/3", "+1-a2"),
        ("b@4/4", "+3"),
        ("a@12/12", "-a4"),
    ]


def test_by_sliding_window() -> None:
    builder = StreamsBuilder()
    cogrouped = grouped(builder, "one").cogroup(add).cogroup(grouped(builder, "two"), subtract)
    out = driven(builder, cogrouped.windowed_by(SlidingWindows.of(5)).aggregate(str))
    assert ("a@0/5", "+1-a2") in out


def test_nulls_are_dropped() -> None:
    builder = StreamsBuilder()
    table = grouped(builder, "one").cogroup(add).aggregate(str)
    assert driven(builder, table, [("one", None, "1", 1), ("one", "a", None, 2)]) == []


def test_streams_with_a_new_key_go_through_topics_of_their_names() -> None:
    builder = StreamsBuilder()
    one = builder.stream("one", key=str, value=str).group_by(lambda v: v, key=str, repartition="by-value")
    two = builder.stream("two", key=str, value=str).group_by(lambda v: v, key=str)
    table = one.cogroup(add).cogroup(two, add).aggregate(str, name="all")
    assert table.queryable_store_name == "all"
    text = builder.build().describe()
    assert "topic: by-value-repartition" in text
    assert "topic: all-repartition" in text


def test_two_new_keys_without_names_would_share_a_topic() -> None:
    builder = StreamsBuilder()
    one = builder.stream("one", key=str, value=str).group_by(lambda v: v, key=str)
    two = builder.stream("two", key=str, value=str).group_by(lambda v: v, key=str)
    one.cogroup(add).cogroup(two, add).aggregate(str, name="all")
    with pytest.raises(TopologyError, match="all-repartition"):
        builder.build()


def test_steps_can_be_named() -> None:
    builder = StreamsBuilder()
    grouped(builder, "one").cogroup(add).aggregate(str, name="all", step="together")
    text = builder.build().describe()
    assert "Processor: together-cogroup-agg-0 (stores: [all])" in text
    assert "Processor: together-cogroup-merge (stores: [])" in text


def test_the_table_of_a_windowed_cogroup_can_be_joined() -> None:
    """Kafka Streams takes its store for one without windows, and fails at the start."""
    builder = StreamsBuilder()
    windows = TimeWindows.tumbling(10)
    left = grouped(builder, "one").cogroup(add).windowed_by(windows).aggregate(str)
    right = grouped(builder, "two").windowed_by(windows).count()
    out = driven(builder, left.join(right, lambda text, count: f"{text}/{count}", value=str))
    assert out == [("a@0/10", "+1/1")]


def test_topics_that_are_cogrouped_are_partitioned_alike() -> None:
    builder = StreamsBuilder()
    table = grouped(builder, "one").cogroup(add).cogroup(grouped(builder, "two"), add).aggregate(str)
    table.join(builder.table("three", key=str, value=str), lambda left, right: left + right)
    (sub,) = builder.build().build("app").subtopologies
    (topics,) = sub.copartitioned_sources
    assert len(topics) == 3


def test_mistakes_are_reported_when_the_topology_is_written() -> None:
    builder = StreamsBuilder()
    cogrouped = grouped(builder, "one").cogroup(add)
    with pytest.raises(TopologyError, match="cogroup takes a grouped stream, not KStream"):
        cogrouped.cogroup(builder.stream("two"), add)  # type: ignore[call-overload]
    with pytest.raises(TopologyError, match="takes 1 argument"):
        cogrouped.cogroup(grouped(builder, "two"), lambda value: value)  # type: ignore[arg-type, misc]
    with pytest.raises(TopologyError, match="windowed_by takes windows"):
        cogrouped.windowed_by(None)  # type: ignore[call-overload]
    with pytest.raises(TopologyError, match="different builders"):
        cogrouped.cogroup(grouped(StreamsBuilder(), "two"), add).aggregate(str)
