"""Topologies that are written without the language: what sources, processors, stores and sinks can be told."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pystreams import (
    FixedKeyProcessor,
    Processor,
    Record,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
)
from pystreams.errors import ProcessingError
from pystreams.processor import ProcessorContext, RecordContext
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.timestamps import ConsumedRecord


class Pass(Processor[str, str, str, str]):
    """Hands records on."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)


class Keep(Processor[str, str, str, str]):
    """Puts each record into the store "rows"."""

    def init(self, context: ProcessorContext[str, str]) -> None:
        self.store = context.store("rows")

    def process(self, record: Record[str, str]) -> None:
        self.store.put(record.key, record.value)


class Look(Processor[str, str, str, str]):
    """Forwards what the store "rows" has for the key."""

    def init(self, context: ProcessorContext[str, str]) -> None:
        super().init(context)
        self.store = context.store("rows")

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(str(self.store.get(record.key))))


def rows() -> StoreSpec:
    return Stores.key_value_store("rows", str, str)


def copying(**source: Any) -> Topology:
    topology = Topology().add_source("in", "in", key=str, value=str, **source)
    return topology.add_sink("out", "out", "in", key=str, value=str)


def after_minutes(record: ConsumedRecord) -> int:
    return int(record.value) * 60_000


@pytest.mark.parametrize(
    ("extractor", "expected"),
    [(after_minutes, 180_000), ("wall_clock", 77), ("partition_time", 5), (None, 5)],
)
def test_a_source_has_a_timestamp_extractor(extractor: Any, expected: int) -> None:
    with TopologyTestDriver(copying(timestamp_extractor=extractor), initial_wall_clock=77) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "3", timestamp=5)
        assert driver.create_output_topic("out").read_record().timestamp == expected


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("none", "none"),
        ("by_duration:P1D", "by_duration:PT86400S"),
        (timedelta(hours=24), "by_duration:PT86400S"),
        (None, None),
    ],
)
def test_a_source_says_where_to_begin(given: Any, stored: str | None) -> None:
    source = copying(auto_offset_reset=given).nodes["in"]
    assert source.auto_offset_reset == stored  # type: ignore[union-attr]


@pytest.mark.parametrize("given", ["first", timedelta(seconds=-1), "by_duration:-PT1H", 5])
def test_a_place_to_begin_that_there_is_not_is_refused(given: Any) -> None:
    with pytest.raises(TopologyError):
        copying(auto_offset_reset=given)


def test_an_unknown_extractor_is_refused_where_it_is_given() -> None:
    with pytest.raises(TopologyError, match="takes 3 arguments"):
        copying(timestamp_extractor=lambda a, b, c: 0)


def test_a_source_reads_several_topics_or_all_that_a_pattern_finds() -> None:
    topology = Topology().add_source("in", ["one", "two"], key=str, value=str)
    topology.add_source("some", re.compile("three-.*"), key=str, value=str)
    topology.add_sink("out", "out", "in", "some", key=str, value=str)
    with TopologyTestDriver(topology) as driver:
        for topic in ("one", "two", "three-eu"):
            driver.create_input_topic(topic, key=str, value=str).pipe_input("k", topic)
        assert driver.create_output_topic("out", value=str).read_values() == ["one", "two", "three-eu"]


def test_a_sink_chooses_topic_and_partition_by_record_and_where_it_came_from() -> None:
    seen: list[RecordContext] = []

    def choose(key: str, value: str, context: RecordContext) -> str:
        seen.append(context)
        return f"from-{context.topic}-{value}"

    topology = Topology().add_source("in", "in", key=str, value=str).add_processor("later", Later, "in")
    topology.add_sink(
        "out", choose, "later", key=str, value=str, partitioner=lambda topic, key, value, partitions: 0
    )
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input(
            "k", "a", timestamp=5, headers=(("h", b"1"),)
        )
        assert driver.create_output_topic("from-in-a", value=str).read_value() == "a"
    assert seen == [RecordContext("in", 0, 0, 6, (("h", b"1"),))]


class Later(Pass):
    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_timestamp(record.timestamp + 1))


def test_the_language_chooses_topics_so_too() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).to(lambda key, value, context: f"{context.topic}-copy")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "a")
        assert driver.create_output_topic("in-copy", value=str).read_value() == "a"


class WithStore(Keep):
    """A processor that brings its store along."""

    @staticmethod
    def stores() -> list[StoreSpec]:
        return [rows()]


class Bringing:
    """A supplier that does."""

    def __init__(self) -> None:
        self.store = rows()

    def __call__(self) -> Keep:
        return Keep()

    def stores(self) -> StoreSpec:
        return self.store


@pytest.mark.parametrize("supplier", [WithStore, Bringing()], ids=["class", "object"])
def test_stores_that_a_supplier_brings_are_added_and_connected(supplier: Any) -> None:
    topology = Topology().add_source("in", "in", key=str, value=str).add_processor("keep", supplier, "in")
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).process(supplier)
    for program in (topology, builder):
        with TopologyTestDriver(program) as driver:
            driver.create_input_topic("in", key=str, value=str).pipe_input("k", "a")
            assert driver.store("rows").get("k") == "a"


def test_process_values_takes_what_its_supplier_brings_too() -> None:
    class Values(FixedKeyProcessor[str, str, str]):
        @classmethod
        def stores(cls) -> list[StoreSpec]:
            return [rows()]

        def process(self, record: Record[str, str]) -> None:
            self.context.store("rows").put(record.key, record.value)
            self.context.forward(record.with_value(record.value * 2))

    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).process_values(Values).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "a")
        assert driver.store("rows").get("k") == "a"
        assert driver.create_output_topic("out", value=str).read_value() == "aa"


def test_a_method_of_the_processor_itself_that_is_called_stores_is_its_own() -> None:
    class Shop(Pass):
        def stores(self) -> str:
            return "of the processor"

    Topology().add_source("in", "in").add_processor("shop", Shop, "in")


def test_what_a_supplier_brings_must_be_stores() -> None:
    class Wrong(Pass):
        @staticmethod
        def stores() -> list[str]:
            return ["rows"]

    with pytest.raises(TopologyError, match=r"stores\(\) of the supplier returned \['rows'\]"):
        Topology().add_source("in", "in").add_processor("p", Wrong, "in")


def test_a_processor_instead_of_a_supplier_is_refused() -> None:
    with pytest.raises(TopologyError, match="a single processor; each task needs its own"):
        Topology().add_source("in", "in").add_processor("p", Pass(), "in")  # type: ignore[arg-type]


def test_no_extractor_is_asked_where_a_global_store_is_filled() -> None:
    times: list[int] = []

    class Noting(Keep):
        def process(self, record: Record[str, str]) -> None:
            times.append(record.timestamp)
            super().process(record)

    topology = Topology()
    topology.add_global_store(rows(), "source", "all", "fill", Noting, key=str, value=str)
    with TopologyTestDriver(
        topology, {"application_id": "a", "default_timestamp_extractor": after_minutes}
    ) as driver:
        driver.create_input_topic("all", key=str, value=str).pipe_input("k", "2", timestamp=1)
        driver.pipe_bytes("all", b"k", b"3", -1, ())
    assert times == [1, 0]


def reading(**source: Any) -> Topology:
    topology = Topology()
    topology.add_read_only_state_store(
        rows(), "rows-in", "rows-topic", "fill", Keep, key=str, value=str, **source
    )
    topology.add_source("in", "in", key=str, value=str).add_processor("look", Look, "in", stores=["rows"])
    return topology.add_sink("out", "out", "look", key=str, value=str)


def test_a_read_only_store_is_filled_from_its_topic_and_has_no_changelog() -> None:
    topology = reading()
    assert "Processor: fill (stores: [rows])" in topology.describe()
    assert topology.nodes["rows-in"].auto_offset_reset == "earliest"  # type: ignore[union-attr]
    built = topology.build("app").subtopologies[0]
    assert built.changelogs == {}
    assert built.source_changelogs == {"rows": "rows-topic"}
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("rows-topic", key=str, value=str).pipe_input("k", "a")
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "?")
        assert driver.create_output_topic("out", value=str).read_value() == "a"
        assert driver.produced_topics == {"out"}


def test_a_processor_sees_settings_metrics_and_a_folder_of_its_own(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    class Curious(Pass):
        def init(self, context: ProcessorContext[str, str]) -> None:
            super().init(context)
            context.metrics.counter("mine", task_id=context.task_id).add(3)
            (context.state_dir / "note").write_text("kept", encoding="utf-8")
            seen.update(application=context.application_id, poll=context.config.poll_ms)
            seen.update(folder=context.state_dir)

    topology = Topology().add_source("in", "in").add_processor("p", Curious, "in")
    with TopologyTestDriver(topology, {"application_id": "curious", "poll_ms": 7}) as driver:
        assert driver.metrics.total("mine") == 3
        assert (seen["folder"] / "note").read_text(encoding="utf-8") == "kept"
    assert (seen["application"], seen["poll"]) == ("curious", 7)


class Rekeying(FixedKeyProcessor[str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_key("other"))


def test_a_fixed_key_processor_cannot_change_the_key() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).process_values(Rekeying).to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        with pytest.raises(ProcessingError, match="changed the key"):
            topic.pipe_input("k", "a")
