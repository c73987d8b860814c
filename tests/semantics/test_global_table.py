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


def test_what_the_application_itself_writes_to_the_topic_is_seen() -> None:
    builder = shop()
    builder.stream("offers", key=str, value=str).to("prices")
    assert sold(builder, ("offers", "tea", "3"), ("sales", "ann", "tea")) == [("ann", "tea=3")]


def test_it_is_described_as_java_does() -> None:
    described = shop().build().describe()
    assert "Sub-topology: 0 for global store (will not generate tasks)" in described
    assert "stores: [rows]" in described


class Scheduling(Processor[str, str, None, None]):
    def init(self, context: ProcessorContext[None, None]) -> None:
        context.schedule(1, PunctuationType.WALL_CLOCK_TIME, lambda _: None)


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
            "no processor's class",
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
    with pytest.raises(TopologyError, match="is a global one"):
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
