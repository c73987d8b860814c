"""What type checkers see of the Processor API and of stores. Run by mypy and pyright, not by pytest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, assert_type

from pystreams import (
    App,
    Change,
    FixedKeyProcessor,
    KStream,
    KTable,
    Processor,
    ProcessorContext,
    ProcessorWrapper,
    PunctuationType,
    Record,
    Stores,
    StreamsConfig,
    Topology,
    ValueTransformer,
)
from pystreams.ids import TaskId
from pystreams.metrics import Metrics
from pystreams.processor import Cancellable, RecordMetadata
from pystreams.state.formats import ValueAndTimestamp
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from pystreams.state.stores.list_store import ListStore
from pystreams.state.stores.session import SessionStore
from pystreams.state.stores.versioned import VersionedRecord, VersionedStore
from pystreams.state.stores.window import TimestampedWindowStore, WindowStore
from pystreams.topology.wrapping import AnySupplier, ProcessorSupplier

counts = Stores.key_value_store("counts", str, int)
latest = Stores.timestamped_key_value_store("latest", str, float)
assert_type(counts, StoreSpec[KeyValueStore[str, int]])
assert_type(latest, StoreSpec[TimestampedKeyValueStore[str, float]])
assert_type(Stores.lru_map("m", str, int, max_entries=5), StoreSpec[KeyValueStore[str, int]])
assert_type(Stores.list_store("l", str, bytes), StoreSpec[ListStore[str, bytes]])
assert_type(Stores.versioned_store("v", str, int, history=10), StoreSpec[VersionedStore[str, int]])
assert_type(Stores.window_store("w", str, int, size=5, retention=10), StoreSpec[WindowStore[str, int]])
assert_type(
    Stores.timestamped_window_store("tw", str, int, size=5, retention=10),
    StoreSpec[TimestampedWindowStore[str, int]],
)
assert_type(Stores.session_store("s", str, int, retention=10), StoreSpec[SessionStore[str, int]])
assert_type(Stores.session_store("sh", str, int, retention=10, headers=True), StoreSpec[Any])


class Counting(Processor[str, float, str, int]):
    """Keeps counts, and tells them now and then."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        self.counts = context.store(counts)
        self.latest = context.store(latest)
        assert_type(self.counts, KeyValueStore[str, int])
        assert_type(context.store("by name"), Any)
        minute = timedelta(minutes=1)
        assert_type(context.schedule(minute, PunctuationType.STREAM_TIME, self.tell), Cancellable)
        noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
        context.schedule(60_000, PunctuationType.WALL_CLOCK_TIME, self.tell, start_time=noon).cancel()
        assert_type(context.application_id, str)
        assert_type(context.task_id, TaskId)
        assert_type(context.config, StreamsConfig)
        assert_type(context.metrics, Metrics)
        assert_type(context.state_dir, Path)
        context.commit()

    def process(self, record: Record[str, float]) -> None:
        assert_type(record.key, str)
        assert_type(record.value, float)
        before = self.counts.get(record.key)
        assert_type(before, int | None)
        self.counts.put(record.key, (before or 0) + 1)
        self.counts.put(record.key, "text")  # type: ignore[arg-type]
        held = self.latest.get(record.key)
        assert_type(held, ValueAndTimestamp[float] | None)
        self.latest.put(record.key, ValueAndTimestamp(record.value, record.timestamp))
        assert_type(self.context, ProcessorContext[str, int])
        assert_type(self.context.record_metadata(), RecordMetadata | None)
        assert_type(self.context.current_stream_time_ms(), int)
        assert_type(self.context.current_system_time_ms(), int)
        assert_type(record.with_key(1), Record[int, float])
        assert_type(record.with_value(b""), Record[str, bytes])
        assert_type(record.with_timestamp(1), Record[str, float])
        assert_type(record.with_headers(()), Record[str, float])
        self.context.forward(record.with_value(3), "child")
        self.context.forward(record.with_value("text"))  # type: ignore[arg-type]

    def tell(self, timestamp: int) -> None:
        with self.counts.all() as entries:
            for key, count in entries:
                assert_type(key, str)
                assert_type(count, int)
                self.context.forward(Record(key, count, timestamp))


class Doubling(FixedKeyProcessor[str, float, int]):
    def process(self, record: Record[str, float]) -> None:
        self.context.forward(record.with_value(int(record.value * 2)))


class Anything(Processor[object, object, str, int]):
    """What takes everything can stand wherever something special comes."""

    def process(self, record: Record[object, object]) -> None:
        self.context.forward(Record(f"{record.key}", 1, record.timestamp))


class Versions(Processor[str, int, str, int]):
    def init(self, context: ProcessorContext[str, int]) -> None:
        versions = context.store(Stores.versioned_store("v", str, int, history=10))
        assert_type(versions.get("a"), VersionedRecord[int] | None)
        windows = context.store(Stores.window_store("w", str, int, size=5, retention=10))
        windows.put("a", 1, 0)
        with windows.fetch("a", 0, 10) as found:
            for start, value in found:
                assert_type(start, int)
                assert_type(value, int)


class Halves(ValueTransformer[str, float, bytes]):
    def transform(self, key: str, value: float | None) -> bytes | None:
        return None if value is None else f"{key}{value / 2}".encode()


app = App("types")
stream = app.stream("in", key=str, value=float)
table = app.table("table", key=str, value=float)
assert_type(stream.process(Counting, stores=[counts, latest]), KStream[str, int])
assert_type(stream.process(Counting, stores="counts", key=str, value=int), KStream[str, int])
assert_type(stream.process(Anything), KStream[str, int])
assert_type(stream.process_values(Doubling, stores=counts), KStream[str, int])
app.stream("ints", key=int, value=int).process(Counting)  # type: ignore[arg-type]
assert_type(table.transform_values(Halves), KTable[str, bytes])
app.add_state_store(counts)
app.add_global_store(Stores.key_value_store("global", str, float), "topic", Counting, key=str, value=float)


class Traced(ProcessorWrapper):
    def wrap_processor_supplier(self, name: str, supplier: ProcessorSupplier) -> AnySupplier:
        assert_type(supplier.stores(), Sequence[StoreSpec])
        return supplier


topology = Topology().add_source("source", "in", key=str, value=float, auto_offset_reset=timedelta(hours=1))
assert_type(topology.add_processor("count", Counting, "source", stores=[counts, "latest"]), Topology)
assert_type(topology.add_state_store(latest, "count"), Topology)
assert_type(topology.connect_processor_and_state_stores("count", "latest"), Topology)
assert_type(topology.add_sink("sink", "out", "count", key=str, value=int), Topology)
assert_type(topology.add_read_only_state_store(counts, "s", "t", "p", Counting), Topology)
assert_type(topology.add_global_store(counts, "s", "t", "p", Counting), Topology)
assert_type(topology.wrapped(Traced), Topology)
assert_type(topology.wrapped(lambda name, supplier: Counting if name else supplier), Topology)
assert_type(topology.describe(), str)
change = Change(1, None)
assert_type(change.new, int | None)
assert_type(change.is_latest, bool)
