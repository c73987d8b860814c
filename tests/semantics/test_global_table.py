"""Streams join with a global table by any key; its rows follow its topic at once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pystreams import Stores, StreamsBuilder, Topology, TopologyError
from pystreams.errors import ProcessingError
from pystreams.processor import Processor, ProcessorContext, PunctuationType
from pystreams.record import Record
from pystreams.testing import TopologyTestDriver


def shop(method: str = "join", **given: Any) -> StreamsBuilder:
    builder = StreamsBuilder()
    prices = builder.global_table("prices", key=str, value=str, name="rows")
    sales = builder.stream("sales", key=str, value=str)
    given = {"key_fn": lambda item: item or None, "value": str, **given}
    getattr(sales, method)(prices, lambda item, price: f"{item}={price}", **given).to("sold")
    return builder


def sold(builder: StreamsBuilder, *records: tuple[str, str | None, str | None]) -> list[tuple[Any, Any]]:
    with TopologyTestDriver(builder) as driver:
        for topic, key, value in records:
            driver.create_input_topic(topic, key=str, value=str).pipe_input(key, value, timestamp=5)
        found: list[Record[str, str]] = driver.create_output_topic("sold", key=str, value=str).read_records()
        return [(record.key, record.value) for record in found]


def test_the_function_names_the_row_whatever_the_key() -> None:
    records = [
        ("prices", "tea", "3"),
        ("sales", "ann", "tea"),
        ("sales", None, "tea"),
        ("sales", "bob", "salt"),
    ]
    assert sold(shop(), *records) == [("ann", "tea=3"), (None, "tea=3")]
    assert sold(shop("left_join"), *records)[-1] == ("bob", "salt=None")


def test_without_a_row_key_an_inner_join_drops_and_a_left_one_goes_on() -> None:
    assert sold(shop(), ("sales", "ann", "")) == []
    assert sold(shop("left_join"), ("sales", "ann", "")) == [("ann", "=None")]
    assert sold(shop("left_join"), ("sales", "ann", None)) == []


def test_a_deleted_row_is_gone() -> None:
    records = [
        ("prices", "tea", "3"),
        ("prices", "tea", None),
        ("prices", None, "9"),
        ("sales", "ann", "tea"),
    ]
    assert sold(shop(), *records) == []


def test_a_row_without_a_time_is_as_good_as_any_other() -> None:
    with TopologyTestDriver(shop()) as driver:
        driver.pipe_bytes("prices", b"tea", b"3", -1, ())
        driver.create_input_topic("sales", key=str, value=str).pipe_input("ann", "tea", timestamp=5)
        assert [record.value for record in driver.read_raw("sold")] == [b"tea=3"]


def test_what_the_application_itself_writes_to_the_topic_is_seen() -> None:
    builder = shop()
    builder.stream("offers", key=str, value=str).to("prices")
    assert sold(builder, ("offers", "tea", "3"), ("sales", "ann", "tea")) == [("ann", "tea=3")]


def test_it_is_described_as_java_does() -> None:
    described = shop().build().describe()
    assert "Sub-topology: 0 for global store (will not generate tasks)" in described
    assert "stores: [rows]" in described


def test_tasks_are_numbered_without_its_sub_topology() -> None:
    """Java's ids go on behind those of global stores: the first task is 1_0."""
    assert "Sub-topology: 1\n" in shop().build().describe()
    (subtopology,) = shop().build().build("app").subtopologies
    assert subtopology.id == 0


def test_it_takes_no_timestamp_extractor() -> None:
    """Java takes one, and never asks it."""
    builder, extractor = StreamsBuilder(), {"timestamp_extractor": "fail"}
    with pytest.raises(TypeError, match="timestamp_extractor"):
        builder.global_table("g", **extractor)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="timestamp_extractor"):
        builder.add_global_store(Stores.key_value_store("s", str, str), "t", Filling, **extractor)  # type: ignore[arg-type]


def test_rows_that_a_bounded_one_has_forgotten_are_gone() -> None:
    """In Kafka Streams its cache still gives them."""
    builder = StreamsBuilder()
    prices = builder.global_table("prices", key=str, value=str, persistent=False, max_entries=1)
    sales = builder.stream("sales", key=str, value=str)
    sales.join(prices, lambda item, price: f"{item}={price}", key_fn=lambda item: item, value=str).to("sold")
    rows = [("prices", "tea", "3"), ("prices", "salt", "2")]
    assert sold(builder, *rows, ("sales", "ann", "tea"), ("sales", "bob", "salt")) == [("bob", "salt=2")]


def test_it_has_no_cache_that_others_would_share() -> None:
    """In Kafka Streams' driver its rows leave no room for those of the table."""
    builder = shop()
    builder.table("stock", key=str, value=str, name="stock")
    with TopologyTestDriver(builder, {"statestore_cache_max_bytes": 150}) as driver:
        assert driver.store("rows").cache is None
        driver.create_input_topic("prices", key=str, value=str).pipe_input("tea", "3" * 50, timestamp=5)
        driver.create_input_topic("stock", key=str, value=str).pipe_input("tea", "9", timestamp=5)
        assert len(driver.store("stock").cache) == 1


class Scheduling(Processor[str, str, None, None]):
    def init(self, context: ProcessorContext[None, None]) -> None:
        context.schedule(1, PunctuationType.WALL_CLOCK_TIME, lambda _: None)

    def process(self, record: Record[str, str]) -> None:
        """Nothing."""


class Filling(Processor[str, str, None, None]):
    def process(self, record: Record[str, str]) -> None:
        self.context.store("low").put(record.key, record.value)


def test_its_processor_cannot_schedule() -> None:
    builder = StreamsBuilder()
    store = Stores.key_value_store("s", str, str)
    builder.add_global_store(store, "prices", Scheduling, key=str, value=str)
    with pytest.raises(ProcessingError, match="scheduled a punctuator"):
        TopologyTestDriver(builder)


def test_the_low_level_api_has_them() -> None:
    topology = Topology()
    store = Stores.key_value_store("low", str, str)
    topology.add_global_store(store, "source", "prices", "fill", Filling, key=str, value=str)
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("prices", key=str, value=str).pipe_input("tea", "3", timestamp=1)
        assert driver.store("low").get("tea") == "3"


@pytest.mark.parametrize(
    ("write", "complaint"),
    [
        (lambda b: b.stream("s").join(b.global_table("g"), lambda a, c: a), "needs key_fn="),
        (
            lambda b: b.stream("s").join(StreamsBuilder().global_table("g"), max, key_fn=len),
            "different builders",
        ),
        (lambda b: b.stream("s").join(b.table("t"), lambda a, c: a, key_fn=len), "is for joins with global"),
        (lambda b: (b.global_table("g"), b.stream("g"), b.build()), "topic g is already read"),
        (
            lambda b: b.add_global_store(Stores.key_value_store("x", str, str), "t", None),
            "not a class or function that makes a processor",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(write: Any, complaint: str) -> None:
    with pytest.raises(TopologyError) as refused:
        write(StreamsBuilder())
    assert re.search(complaint, str(refused.value))


def test_processors_need_not_be_connected_and_must_not_be() -> None:
    builder = shop()
    builder.stream("more", key=str, value=str).process(Filling, stores=["rows"])
    with pytest.raises(TopologyError, match="is a global store"):
        builder.build()


def test_another_global_table_is_another_topology() -> None:
    def fingerprint(builder: StreamsBuilder) -> str:
        return builder.build().build("app").fingerprint

    other = StreamsBuilder()
    other.global_table("others", key=str, value=str, name="rows")
    same = StreamsBuilder()
    same.global_table("prices", key=str, value=str, name="rows")
    again = StreamsBuilder()
    again.global_table("prices", key=str, value=str, name="rows")
    assert fingerprint(same) == fingerprint(again) != fingerprint(other)
