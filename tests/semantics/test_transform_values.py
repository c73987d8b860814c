"""A transformer makes the values of a table: it lives with its task, sees deletions, and forwards nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import StreamsBuilder
from pystreams.errors import ProcessingError
from pystreams.processor import ProcessorContext, RecordMetadata, ValueTransformer
from pystreams.record import Record
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.testing import TopologyTestDriver


class Told(ValueTransformer[str, str, str]):
    """Remembers what happens to it."""

    all: list[Told]

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None]] = []
        self.places: list[RecordMetadata | None] = []
        self.closed = False
        Told.all.append(self)

    def transform(self, key: str, value: str | None) -> str | None:
        self.calls.append((key, value))
        self.places.append(self.context.record_metadata())
        return f"<{value}>"

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def nobody() -> None:
    Told.all = []


def pipe(driver: TopologyTestDriver, topic: str, key: str, value: str | None, timestamp: int) -> None:
    driver.create_input_topic(topic, key=str, value=str).pipe_input(key, value, timestamp=timestamp)


def read(driver: TopologyTestDriver) -> list[tuple[Any, Any]]:
    records: list[Record[str, str]] = driver.create_output_topic("out", key=str, value=str).read_records()
    return [(record.key, record.value) for record in records]


def test_it_is_called_for_deletions_and_closed_at_the_end() -> None:
    builder = StreamsBuilder()
    builder.table("in", key=str, value=str).transform_values(Told, value=str).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        pipe(driver, "in", "k", "a", 1)
        pipe(driver, "in", "k", None, 2)
        assert read(driver) == [("k", "<a>"), ("k", "<None>")]
        (told,) = Told.all
        assert told.calls == [("k", "a"), ("k", None)]
        assert told.places[0] == RecordMetadata("in", 0, 0)
        assert not told.closed
    assert told.closed


def test_a_reader_without_a_store_has_a_transformer_of_its_own_that_sees_no_record() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in", key=str, value=str).transform_values(Told, value=str)
    builder.stream("events", key=str, value=str).left_join(rows, lambda a, b: f"{a}{b}", value=str).to("out")
    with TopologyTestDriver(builder) as driver:
        pipe(driver, "in", "k", "a", 1)
        pipe(driver, "events", "k", "e", 2)
        pipe(driver, "events", "other", "e", 3)
        assert read(driver) == [("k", "e<a>"), ("other", "e<None>")]
        reading = next(told for told in Told.all if told.calls[-1] == ("other", None))
        assert reading.calls == [("k", "a"), ("other", None)]
        assert reading.places == [None, None]
    assert all(told.closed for told in Told.all)


def test_a_group_behind_it_gives_up_the_row_that_was() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in", key=str, value=str).transform_values(Told, value=str)
    groups = rows.group_by(lambda key, value: (value, key), key=str, value=str)
    groups.count().to_stream().map_values(str).to("out")
    with TopologyTestDriver(builder) as driver:
        pipe(driver, "in", "k", "a", 1)
        pipe(driver, "in", "k", "b", 2)
        assert read(driver) == [("<a>", "1"), ("<a>", "0"), ("<b>", "1")]


class Counting(ValueTransformer[str, str, int]):
    """How often a key was transformed."""

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.store = context.store("counts")

    def transform(self, key: str, value: str | None) -> int:
        count: int = (self.store.get(key) or 0) + 1
        self.store.put(key, count)
        return count


def test_its_stores_are_there_for_readers_too() -> None:
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value_store("counts", str, int))
    rows = builder.table("in", key=str, value=str).transform_values(Counting, stores=["counts"], value=int)
    builder.stream("events", key=str, value=str).join(rows, lambda a, b: f"{a}{b}", value=str).to("out")
    with TopologyTestDriver(builder) as driver:
        pipe(driver, "in", "k", "a", 1)
        pipe(driver, "events", "k", "e", 2)
        assert read(driver) == [("k", "e2")]


class Bringing(Counting):
    """A transformer that brings its store along."""

    @staticmethod
    def stores() -> list[StoreSpec]:
        return [Stores.key_value_store("counts", str, int)]


def test_the_store_that_a_supplier_brings_is_added() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in", key=str, value=str).transform_values(Bringing, value=int)
    builder.stream("events", key=str, value=str).join(rows, lambda a, b: f"{a}{b}", value=str).to("out")
    with TopologyTestDriver(builder) as driver:
        pipe(driver, "in", "k", "a", 1)
        pipe(driver, "events", "k", "e", 2)
        assert read(driver) == [("k", "e2")]


class Forwarding(ValueTransformer[str, str, str]):
    def transform(self, key: str, value: str | None) -> str | None:
        self.context.forward(Record(key, value, 1))
        return value


class Failing(ValueTransformer[str, str, str]):
    def init(self, context: ProcessorContext[Any, Any]) -> None:
        raise ValueError("not today")

    def transform(self, key: str, value: str | None) -> str | None:
        return value


def test_it_cannot_forward() -> None:
    builder = StreamsBuilder()
    builder.table("in", key=str, value=str).transform_values(Forwarding, value=str).to_stream().to("out")
    driver = TopologyTestDriver(builder)
    with pytest.raises(ProcessingError, match="called forward"), driver:
        pipe(driver, "in", "k", "a", 1)


def test_what_its_init_raises_is_reported_with_its_step() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in", key=str, value=str).transform_values(Failing, value=str, step="mine")
    rows.to_stream().to("out")
    with pytest.raises(ProcessingError, match=r"init of processor mine raised .*not today"):
        TopologyTestDriver(builder)


def test_who_was_initialized_is_closed_when_a_later_one_fails() -> None:
    told: list[str] = []

    class Opens(ValueTransformer[str, str, str]):
        def init(self, context: Any) -> None:
            super().init(context)
            told.append("opened")

        def transform(self, key: str, value: str | None) -> str | None:
            return value

        def close(self) -> None:
            told.append("closed")

    class Fails(Opens):
        def init(self, context: Any) -> None:
            raise OSError("no connection")

    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    for supplier in (Opens, Fails):
        table.transform_values(supplier, value=str)
    with pytest.raises(ProcessingError, match="no connection"):
        TopologyTestDriver(builder)
    assert told == ["opened", "closed"]
