"""A stream-table join answers the stream's records with the table's value of that moment."""

from __future__ import annotations

import pytest

from pystreams import StreamsBuilder
from pystreams.record import Record
from pystreams.testing import TopologyTestDriver


@pytest.fixture
def joined() -> StreamsBuilder:
    """Inner and left join of ``in`` with the table ``t``."""
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    table = builder.table("t", key=str, value=str)
    stream.join(table, lambda left, right: f"{left}+{right}", value=str).to("inner")
    stream.left_join(table, lambda left, right: f"{left}+{right}", value=str).to("left")
    return builder


def test_only_the_stream_triggers_and_its_timestamp_counts(joined: StreamsBuilder) -> None:
    with TopologyTestDriver(joined) as driver:
        driver.create_input_topic("t", key=str, value=str).pipe_input("a", "T", timestamp=50)
        assert not driver.produced_topics & {"inner", "left"}
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "S", timestamp=5)
        out = driver.create_output_topic("inner", key=str, value=str)
        assert out.read_records() == [Record("a", "S+T", 5)]


def test_without_a_row_only_the_left_join_answers(joined: StreamsBuilder) -> None:
    with TopologyTestDriver(joined) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "S")
        assert driver.create_output_topic("inner", key=str, value=str).is_empty
        assert driver.create_output_topic("left", key=str, value=str).read_value() == "S+None"


def test_a_null_key_is_joined_with_nothing_and_a_null_value_with_no_row(joined: StreamsBuilder) -> None:
    with TopologyTestDriver(joined) as driver:
        stream = driver.create_input_topic("in", key=str, value=str)
        stream.pipe_input(None, "S")
        stream.pipe_input("a", None)
        assert driver.create_output_topic("inner", key=str, value=str).is_empty
        assert driver.create_output_topic("left", key=str, value=str).read_key_values() == [(None, "S+None")]
        assert driver.dropped_records == 3


def test_a_filtered_and_mapped_table_is_read_through_its_parent() -> None:
    builder = StreamsBuilder()
    table = (
        builder.table("t", key=str, value=str)
        .filter(lambda value: value != "no")
        .map_values(str.lower, value=str)
    )
    builder.stream("in", key=str, value=str).left_join(
        table, lambda left, right: f"{left}+{right}", value=str
    ).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("t", key=str, value=str).pipe_key_values([("a", "YES"), ("b", "no")])
        driver.create_input_topic("in", key=str, value=str).pipe_key_values([("a", "1"), ("b", "2")])
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_values() == ["1+yes", "2+None"]
