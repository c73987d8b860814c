"""A function that raises stops the task, or costs only its own branch of the record if the handler says continue."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import Processor, Record, Stores, StreamsBuilder, TimeWindows
from pystreams.errors import ProcessingError, SerializationError
from pystreams.testing import TopologyTestDriver

CONTINUE = {"processing_exception_handler": "continue"}


def picky(value: str) -> str:
    """Raises for ``bad``."""
    if value == "bad":
        raise ValueError("I do not like it")
    return value


def test_the_error_names_step_record_and_function() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(picky, value=str, step="taste").to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("a", "good")
        with pytest.raises(ProcessingError) as raised:
            topic.pipe_input("a", "bad")
        for part in ("taste", "in-0", "offset 1", "I do not like it", "picky"):
            assert part in str(raised.value)
        assert isinstance(raised.value.__cause__, ValueError)


def test_continue_skips_the_failing_branch_only() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.map_values(picky, value=str).to("picky")
    stream.to("all")
    with TopologyTestDriver(builder, CONTINUE) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_values(["bad", "good"])
        assert driver.create_output_topic("picky", key=str, value=str).read_values() == ["good"]
        assert driver.create_output_topic("all", key=str, value=str).read_values() == ["bad", "good"]
        assert driver.dropped_records == 1


@pytest.mark.parametrize("cached", [True, False])
def test_an_aggregator_that_fails_leaves_its_aggregate_as_it_was(cached: bool) -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.aggregate(str, lambda text, value: text + picky(value), name="texts", cached=cached)
    grouped.windowed_by(TimeWindows.tumbling(10)).reduce(
        lambda text, value: text + picky(value), name="windows", cached=cached
    )
    with TopologyTestDriver(builder, CONTINUE) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values(
            [("a", "x"), ("a", "bad"), ("a", "y")], start=1
        )
        assert driver.store("texts").get("a")[0] == "xy"
        with driver.store("windows").fetch("a", 0, 0) as found:
            assert [value for _, (value, _) in found] == ["xy"]


@pytest.mark.parametrize("handler", ["fail", "continue"])
def test_bytes_that_cannot_be_read_go_to_the_deserialization_handler(handler: str) -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=int).to("out")
    config: dict[str, Any] = {"deserialization_exception_handler": handler}
    with TopologyTestDriver(builder, config) as driver:
        if handler == "fail":
            with pytest.raises(SerializationError, match=r"offset 0"):
                driver.pipe_bytes("in", b"a", b"123", 1)
            return
        driver.pipe_bytes("in", b"a", b"123", 1)
        driver.create_input_topic("in", key=str, value=int).pipe_input("a", 7)
        assert driver.create_output_topic("out", key=str, value=int).read_values() == [7]
        assert driver.dropped_records == 1


@pytest.mark.parametrize(
    "result, found", [(("k", 1, 2), "type tuple of 3 elements"), (["k"], "type list of 1 elements")]
)
@pytest.mark.parametrize("flat", [False, True])
def test_a_pair_of_the_wrong_length_is_reported_with_what_is_expected(
    result: Any, found: str, flat: bool
) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    mapped = (
        stream.flat_map(lambda v: [result], key=str, value=str)
        if flat
        else stream.map(lambda v: result, key=str, value=str)
    )
    mapped.to("out")
    with TopologyTestDriver(builder) as driver, pytest.raises(ProcessingError) as raised:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "x")
    assert f"{found} is not a pair: expected (key, value)" in str(raised.value)


class WithoutSuper(Processor[str, str, str, str]):
    def init(self, context: Any) -> None:
        self.seen = 0

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)


def test_the_error_of_a_processor_whose_init_keeps_no_context_says_how_to() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).process(WithoutSuper, key=str, value=str).to("out")
    with TopologyTestDriver(builder) as driver, pytest.raises(ProcessingError) as raised:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "x")
    assert "super().init(context)" in str(raised.value)


class PutsNone(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        self.context.store("rows").put(None if record.value == "bad" else record.key, record.value)


def test_a_null_key_that_a_processor_puts_into_a_store_is_the_handlers_matter() -> None:
    builder = StreamsBuilder()
    store = Stores.key_value_store("rows", key=str, value=str)
    builder.stream("in", key=str, value=str).process(PutsNone, stores=[store], step="put")
    with TopologyTestDriver(builder) as driver, pytest.raises(ProcessingError) as raised:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "bad")
    for part in ("step put", "in-0 offset 0", "the key must not be None in store rows"):
        assert part in str(raised.value)
    with TopologyTestDriver(builder, CONTINUE) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values([("a", "bad"), ("a", "good")])
        assert driver.store("rows").get("a") == "good"
