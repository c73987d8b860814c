"""A record without a key passes steps that keep no state, and is dropped and counted by those that do."""

from __future__ import annotations

from pystreams import StreamsBuilder, TimeWindows
from pystreams.testing import TopologyTestDriver


def test_stateless_steps_pass_null_keys_on() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).filter(bool).map_values(str.upper, value=str).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input(None, "x")
        assert driver.create_output_topic("out", key=str, value=str).read_key_value() == (None, "X")
        assert driver.dropped_records == 0


def test_an_aggregation_drops_null_keys_and_null_values_and_counts_them() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values(
            [(None, "x"), ("a", None), ("a", "x")]
        )
        assert driver.create_output_topic("out", key=str, value=int).read_key_values() == [("a", 1)]
        assert driver.dropped_records == 2


def test_a_windowed_count_counts_null_values() -> None:
    builder = StreamsBuilder()
    windows = builder.stream("in", key=str, value=str).group_by_key().windowed_by(TimeWindows.tumbling(10))
    windows.count(name="counts")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values(
            [("a", None), (None, "x"), ("a", "x")], start=1, advance=1
        )
        with driver.store("counts").fetch("a", 0, 10) as found:
            assert [(start, count) for start, (count, _) in found] == [(0, 2)]
        assert driver.dropped_records == 1


def test_a_table_drops_null_keys_and_reads_null_values_as_deletions() -> None:
    builder = StreamsBuilder()
    builder.table("in", key=str, value=str, name="rows").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_key_values([(None, "x"), ("a", "x"), ("b", "y"), ("a", None)])
        with driver.store("rows").all() as rows:
            assert [(key, value) for key, (value, _) in rows] == [("b", "y")]
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_key_values() == [("a", "x"), ("b", "y"), ("a", None)]
        assert driver.dropped_records == 1


def test_a_repartition_topic_gets_no_null_keys() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.select_key(lambda value: value or None, key=str).group_by_key().count(name="n").to_stream().to(
        "out"
    )
    with TopologyTestDriver(builder, {"application_id": "app"}) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_values(["x", "", "x"])
        assert [record.key for record in driver.read_raw("app-n-repartition")] == [b"x", b"x"]
        assert driver.create_output_topic("out", key=str, value=int).read_map() == {"x": 2}
