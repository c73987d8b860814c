"""An aggregated table subtracts a row from its old group before it adds it to the new one."""

from __future__ import annotations

from pystreams import StreamsBuilder
from pystreams.testing import TopologyTestDriver


def test_a_row_that_moves_leaves_its_old_group_first() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    table.group_by(lambda key, value: (value, key), key=str, value=str).count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values(
            [("a", "red"), ("b", "red"), ("a", "blue"), ("b", None)]
        )
        assert driver.create_output_topic("out", key=str, value=int).read_key_values() == [
            ("red", 1),
            ("red", 2),
            ("red", 1),
            ("blue", 1),
            ("red", 0),
        ]


def test_a_change_within_a_group_is_one_record_with_both_values() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    group = table.group_by(lambda key, value: (value[0], value), key=str, value=str)
    group.reduce(lambda one, two: f"{one}+{two}", lambda one, two: f"{one}-{two}", name="g")
    with TopologyTestDriver(builder, {"application_id": "app"}) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values([("a", "x1"), ("a", "x2")])
        values = [record.value for record in driver.read_raw("app-g-repartition")]
        assert values == [b"x1\x01", b"\x04x2x1\x02"]
        assert driver.store("g").get("x")[0] == "x1-x1+x2"


def test_a_group_keeps_the_greatest_timestamp() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    table.group_by(lambda key, value: ("all", value), key=str, value=str).count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("a", "x", timestamp=10)
        topic.pipe_input("b", "x", timestamp=5)
        records = driver.create_output_topic("out", key=str, value=int).read_records()
        assert [(record.value, record.timestamp) for record in records] == [(1, 10), (2, 10)]


def test_null_keys_and_values_of_the_mapper_leave_that_half_out() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    grouped = table.group_by(lambda key, value: (value or None, key), key=str, value=str)
    grouped.count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values(
            [("a", ""), ("a", "red"), ("a", "")]
        )
        out = driver.create_output_topic("out", key=str, value=int)
        assert out.read_key_values() == [("red", 1), ("red", 0)]
