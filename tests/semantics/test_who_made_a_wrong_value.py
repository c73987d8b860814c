"""A key or value that cannot be written is told with the step that made it, and where its function stands."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import JoinWindows, Processor, StreamsBuilder
from pystreams.errors import ProcessingError, ProductionError
from pystreams.testing import TopologyTestDriver


def twice(value: Any) -> Any:
    return value + value


def same(value: Any) -> Any:
    return value


def both(left: Any, right: Any) -> Any:
    return left + right


class Shout(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        self.context.forward(record.with_value(record.value.upper()))


def at(function: Any) -> str:
    return f"{function.__qualname__} ({__file__}:{function.__code__.co_firstlineno})"


def failure(builder: StreamsBuilder, error: type[Exception], *topics: str) -> Any:
    def feed(driver: TopologyTestDriver) -> None:
        for topic in topics or ("in",):
            driver.create_input_topic(topic, key=str, value=str).pipe_input("k", "v", timestamp=1)

    with TopologyTestDriver(builder) as driver:
        with pytest.raises(error) as caught:
            feed(driver)
        return caught.value


def lines(builder: StreamsBuilder, topic: str = "in") -> Any:
    return builder.stream(topic, key=str, value=str)


def test_at_a_sink_it_is_the_nearest_step_that_makes_values():
    builder = StreamsBuilder()
    made = lines(builder).map_values(same).map_values(twice, step="double").filter(lambda v: True).peek(print)
    made.to("out", value=int)
    why = failure(builder, ProductionError).why
    assert "the key is a str (to be written as str), read from topic in" in why
    assert f"the value is a str (to be written as int), made by step double in {at(twice)}" in why


def test_who_made_the_key_and_who_made_the_value_are_distinguished():
    builder = StreamsBuilder()
    lines(builder).map_values(twice, step="double").select_key(same, step="choose").to("out", key=int)
    why = failure(builder, ProductionError).why
    assert f"the key is a str (to be written as int), made by step choose in {at(same)}" in why
    assert f"made by step double in {at(twice)}" in why


def test_at_a_repartition_topic():
    builder = StreamsBuilder()
    lines(builder).map_values(twice, step="double").repartition(name="again", value=int)
    told = failure(builder, ProductionError)
    assert "again-repartition cannot be serialized" in told.what
    assert f"made by step double in {at(twice)}" in told.why


def test_behind_a_repartition_topic_it_is_the_topic():
    builder = StreamsBuilder()
    lines(builder).map_values(twice).repartition(name="again", value=str).to("out", value=int)
    assert (
        "the value is a str (to be written as int), read from topic" in failure(builder, ProductionError).why
    )
    assert "again-repartition" in failure(builder, ProductionError).why


def test_at_a_store_of_a_step_without_a_function():
    builder = StreamsBuilder()
    lines(builder).map_values(twice, step="double").to_table(name="rows", value=int)
    told = failure(builder, ProcessingError)
    assert f"the value is a str, made by step double in {at(twice)}" in told.why


def test_at_a_store_whose_step_has_a_function_that_was_not_called():
    builder = StreamsBuilder()
    lines(builder).map_values(twice, step="double").group_by_key().reduce(both, name="sums", value=int)
    told = failure(builder, ProcessingError)
    assert f"the value is a str, made by step double in {at(twice)}" in told.why


def test_what_the_function_of_a_step_itself_raises_is_not_put_on_others():
    builder = StreamsBuilder()
    lines(builder).map_values(twice).map_values(lambda value: int(f"{value}!")).to("out")
    assert "made by" not in failure(builder, ProcessingError).why


def test_a_processor_makes_what_it_forwards():
    builder = StreamsBuilder()
    lines(builder).process(Shout, step="shout").to("out", key=str, value=int)
    place = f"Shout.process ({__file__}:{Shout.process.__code__.co_firstlineno})"
    assert f"the value is a str (to be written as int), made by step shout in {place}" in (
        failure(builder, ProductionError).why
    )


def test_where_streams_meet_each_is_named():
    builder = StreamsBuilder()
    left = lines(builder).map_values(twice, step="double")
    left.merge(lines(builder, "other").map_values(same, step="keep")).to("out", key=str, value=int)
    assert (
        f"made by step double in {at(twice)} or made by step keep in {at(same)}"
        in failure(builder, ProductionError).why
    )


def test_a_join_makes_its_result():
    builder = StreamsBuilder()
    joined = lines(builder).join(lines(builder, "other"), both, windows=JoinWindows.of(10))
    joined.to("out", key=str, value=int)
    assert f"in {at(both)}" in failure(builder, ProductionError, "in", "other").why


def test_a_count_makes_its_number_without_a_function_of_the_users():
    builder = StreamsBuilder()
    counts = lines(builder).group_by_key().count(name="n", step="number")
    counts.to_stream().to("out", key=str, value=str)
    assert "the value is an int (to be written as str), made by step number;" in (
        failure(builder, ProductionError).why + ";"
    )
