"""Histories, backfills over them, and the same through the test driver, to be compared in bytes."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pystreams.app import App
from pystreams.backfill.application import NamedApplication, loaded
from pystreams.backfill.compute.backfill_result import (
    BackfillResult,
    ChangelogEntry,
    SinkRecord,
    changelog_entries,
    sink_records,
)
from pystreams.backfill.compute.driver import Planned, run
from pystreams.backfill.compute.executor import Executor, PartitionFunction
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.plan.cut import Until, cut
from pystreams.backfill.plan.manifest import DEFAULT_COMMIT_RECORDS, Manifest
from pystreams.backfill.plan.slices import BackfillPlan, make_plan
from pystreams.backfill.plan.ways import with_ways
from pystreams.backfill.sources import BATCH_ROWS, MemorySource, Source
from pystreams.backfill.staging.port import Selection
from pystreams.clock import ManualClock
from pystreams.dsl.builder import StreamsBuilder
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from pystreams.record import NO_HEADERS, RecordBatch
from pystreams.serde import serde_for
from pystreams.testing import TopologyTestDriver
from pystreams.testing.producer import MemoryProducer
from pystreams.topology.topology import Topology
from tests.live.support import Line

CUT_TIME_MS = 1_700_000_000_000

Program = App | StreamsBuilder | Topology


#: By topic, its partitions with their records.
History = Mapping[str, Sequence[Sequence[Line]]]


def lines(records: Iterable[tuple[Any, Any, int]], *, key: Any = str, value: Any = int) -> list[Line]:
    """(key, value, timestamp) in bytes."""
    write_key, write_value = serde_for(key).serializer("t"), serde_for(value).serializer("t")
    return [
        Line(None if k is None else write_key(k), None if v is None else write_value(v), time)
        for k, v, time in records
    ]


def memory(history: History, outputs: Mapping[str, int] | None = None) -> MemorySource:
    """A history as a source; ``outputs`` are empty topics beside it."""
    counts = {topic: len(partitions) for topic, partitions in history.items()}
    batches = {
        TopicPartition(topic, number): [_batch(topic, number, records)]
        for topic, partitions in history.items()
        for number, records in enumerate(partitions)
        if records
    }
    return MemorySource({**(outputs or {}), **counts}, batches)


def _batch(topic: str, partition: int, records: Sequence[Line]) -> RecordBatch:
    return RecordBatch(
        topic,
        partition,
        [record.key for record in records],
        [record.value for record in records],
        [record.timestamp for record in records],
        list(range(len(records))),
        [record.headers for record in records],
        len(records),
    )


class Backfill:
    """A backfill of ``source``, planned and cut."""

    def __init__(
        self,
        program: Program | NamedApplication,
        source: Source,
        folder: Path | str,
        *,
        until: Until = None,
        commit_records: int = DEFAULT_COMMIT_RECORDS,
        batch_rows: int = BATCH_ROWS,
        executor: Executor | None = None,
        exact_updates: bool = False,
        **settings: Any,
    ) -> None:
        self.executor = executor or InlineExecutor(batch_rows=batch_rows)
        if isinstance(program, NamedApplication):
            self.application: Any = program
        else:
            self.application = self.executor.application(program, settings)
        self.loaded = self.application.load()
        self.source = source
        self.folder = folder
        self.plan: BackfillPlan = make_plan(self.loaded.built, source.partitions())
        self.manifest: Manifest = cut(
            self.plan,
            self.loaded.config,
            source,
            until,
            commit_records=commit_records,
            clock=ManualClock(CUT_TIME_MS),
        )
        self.manifest = with_ways(self.manifest, self.loaded, self.plan, exact_updates=exact_updates)

    def run(self, *, resume: bool = False, overwrite: bool = False) -> BackfillResult:
        planned = Planned(self.loaded, self.application, self.plan, self.manifest, self.source)
        return run(planned, self.executor, str(self.folder), resume=resume, overwrite=overwrite)


def everything(result: BackfillResult) -> dict[str, Any]:
    """All that E1 compares: changelogs, sinks, offsets with metadata, and what the manifest says of each slice."""
    written = sorted({partition.topic for partition in result.written()})
    with_headers = {spec.name for spec in result.loaded.built.stores if spec.headers}
    changelogs = {
        store: _read(result, result.store_rows(store), partial(_entries, store in with_headers))
        for store in result.stores()
    }
    return {
        "changelogs": {store: dict(enumerate(of_store)) for store, of_store in changelogs.items()},
        "sinks": {topic: _sinks(result, topic) for topic in written},
        "offsets": result.offsets(),
        "slices": result.manifest.slices,
    }


def last_values(sinks: Mapping[str, Any]) -> dict[Any, SinkRecord]:
    """The last record of each key in each partition of ``everything``'s sinks. A key that was deleted (``None`` as
    text) need not have come at all."""
    return {
        (topic, partition, key): record
        for topic, of_topic in sinks.items()
        for partition, of_partition in of_topic.items()
        for key, record in {record.key: record for record in of_partition}.items()
        if record.value != b"None"
    }


def _sinks(result: BackfillResult, topic: str) -> dict[int, list[SinkRecord]]:
    found = _read(result, result.sink_rows(topic), _records)
    return {p.partition: found[p.partition] for p in result.written() if p.topic == topic}


def _read(result: BackfillResult, selection: Selection, function: PartitionFunction) -> list[Any]:
    """By partition, in one go: on Spark a job for each would take most of a test's time."""
    return [pickle.loads(told) for told in result.for_each_partition(selection, function)]


def _entries(with_headers: bool, partition: int, batches: Iterator[Any]) -> bytes:
    entries = changelog_entries(batches, headers=with_headers)
    return pickle.dumps(sorted(entries, key=lambda entry: entry.place))


def _records(partition: int, batches: Iterator[Any]) -> bytes:
    return pickle.dumps(list(sink_records(batches)))


def sent(
    producer: MemoryProducer, partition_count: Callable[[str], int], keyless: Callable[[int], int]
) -> dict[TopicPartition, list[Line]]:
    """What a task has given a producer, by partition; ``keyless`` chooses one of so many for a record without key."""
    found: dict[TopicPartition, list[Line]] = defaultdict(list)
    for topic, partition, key, value, timestamp, headers in producer.records:
        if partition is None:
            count = partition_count(topic)
            partition = keyless(count) if key is None else partition_for_key(key, count)
        found[TopicPartition(topic, partition)].append(Line(key, value, timestamp or 0, headers))
    return dict(found)


def merged(history: History) -> list[tuple[str, Line]]:
    """A history of single partitions in the order in which one task takes it: least head first, ties by topic."""
    waiting = {topic: list(partitions[0]) for topic, partitions in sorted(history.items())}
    order: list[tuple[str, Line]] = []
    while any(waiting.values()):
        topic = min((topic for topic in waiting if waiting[topic]), key=lambda t: waiting[t][0].timestamp)
        order.append((topic, waiting[topic].pop(0)))
    return order


class Driven(NamedTuple):
    """What the test driver made of a history: sinks as sequences, changelogs compacted, both in bytes."""

    sinks: dict[str, list[SinkRecord]]
    changelogs: dict[str, list[ChangelogEntry]]
    dropped: int


def driven(program: Program, history: History, **settings: Any) -> Driven:
    """Run a history of single partitions through the test driver."""
    built = loaded(program, settings)
    changelogs = {
        topic: store for sub in built.built.subtopologies for store, topic in sub.changelogs.items()
    }
    internal = built.built.internal_topics
    with TopologyTestDriver(program, built.config, initial_wall_clock=CUT_TIME_MS) as driver:
        for topic, line in merged(history):
            driver.pipe_bytes(topic, *line)
        produced = {topic: driver.read_raw(topic) for topic in driver.produced_topics}
        dropped = driver.dropped_records
    with_headers = {spec.name for spec in built.built.stores if spec.headers}
    compacted: dict[str, dict[bytes, ChangelogEntry]] = {store: {} for store in changelogs.values()}
    for topic, store in changelogs.items():
        for record in produced.pop(topic, []):
            assert record.key is not None
            compacted[store].pop(record.key, None)
            if record.value is not None:
                headers = record.headers if store in with_headers else NO_HEADERS
                compacted[store][record.key] = ChangelogEntry(
                    record.key, record.value, record.timestamp or 0, headers
                )
    sinks = {
        topic: [SinkRecord(r.key, r.value, r.timestamp or 0, r.headers) for r in records]
        for topic, records in produced.items()
        if topic not in internal
    }
    return Driven(sinks, {store: sorted(of_store.values()) for store, of_store in compacted.items()}, dropped)


def single(result: BackfillResult) -> Driven:
    """A backfill of single partitions, as ``driven`` tells it."""
    found = everything(result)
    return Driven(
        {topic: of_topic[0] for topic, of_topic in found["sinks"].items()},
        {store: of_store.get(0, []) for store, of_store in found["changelogs"].items()},
        sum(one.dropped for one in result.manifest.slices.values()),
    )
