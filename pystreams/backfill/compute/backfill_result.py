"""The result of a backfill, read from its staging folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pystreams.backfill.application import Application, LoadedApplication
from pystreams.backfill.columns.parts import store_of
from pystreams.backfill.columns.record_columns import RecordColumns
from pystreams.backfill.columns.store_columns import StoreColumns
from pystreams.backfill.compute.executor import Executor, PartitionFunction
from pystreams.backfill.compute.result_tables import EmittedRows, StoreRows
from pystreams.backfill.compute.summary import ResultSummary, Summarised, result_summary
from pystreams.backfill.exchange.rows import (
    Arrow,
    Kind,
    headers_of,
)
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.plan.manifest import Manifest
from pystreams.backfill.plan.slices import BackfillPlan, Slice
from pystreams.backfill.staging.port import Selection, Staged
from pystreams.broker.port import CommittedOffset
from pystreams.engine.offset_metadata import Overflow, encode_committed
from pystreams.errors import StateError, TopicError
from pystreams.ids import TaskId, TopicPartition
from pystreams.nearest import not_among
from pystreams.record import NO_HEADERS, Headers
from pystreams.state.value_forms import headers_apart
from pystreams.stream_time import NO_TIME

#: The kinds of stores with windows or sessions that a program can read.
_WINDOWS: Final = frozenset({"window", "timestamped_window", "session"})


class ChangelogEntry(NamedTuple):
    """The last change of a key, in the bytes of the changelog; of a versioned store any version (None: a deletion)."""

    key: bytes
    value: bytes | None
    timestamp: int
    headers: Headers = NO_HEADERS

    @property
    def place(self) -> tuple[bytes, int]:
        """The sort key of entries; the versions of a versioned store at one place keep their order."""
        return self.key, self.timestamp


class SinkRecord(NamedTuple):
    """A record for a sink, in bytes."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


@dataclass(frozen=True, slots=True, repr=False)
class BackfillResult(Summarised):
    """Stores, sinks and offsets of a computed backfill, and the executor that can work on them. A notebook shows it as
    a table of what was computed."""

    #: As the executor's processes get it.
    application: Application
    loaded: LoadedApplication
    plan: BackfillPlan
    manifest: Manifest
    staging: Staged
    executor: Executor
    #: The outcomes of tasks, by slice.
    outcomes: Mapping[int, Sequence[TaskOutcome]]

    def _summary(self) -> ResultSummary:
        entries = {name: store.entries for name, store in self.manifest.final_stores(self.plan).items()}
        written: Counter[str] = Counter()
        for partition, count in self.written().items():
            written[partition.topic] += count
        return result_summary(self.manifest, entries, written, self._windows_from(entries))

    def _windows_from(self, stores: Collection[str]) -> dict[str, int]:
        """By windowed store that a program can read, the time (ms) from which on all partitions still have windows (by
        their start) or sessions (by their end). Stores in which none can have expired are left out."""
        found: dict[str, int] = {}
        for spec in self.loaded.built.stores:
            if spec.name in stores and spec.kind in _WINDOWS and spec.retention_ms > 0:
                time_ms = max(self.store_times(spec.name), default=NO_TIME) - spec.retention_ms + 1
                if time_ms > 0:
                    found[spec.name] = time_ms
        return found

    def table(self, store: str) -> Any:
        """A store as a table with typed columns, ``StoreColumns`` without bytes: a DataFrame of Spark, or a
        ``pyarrow.Table`` if the backfill ran in this process. Of a versioned store it has the latest versions.

        A DataFrame reads the staging folder each time that it is computed: keep the folder as long. Raises
        ``StateError`` if there is no such store; reading raises ``SerializationError`` for bytes that are not of the
        store's type.
        """
        selection = self.store_rows(store)
        spec = store_of(self.loaded, store)
        columns = StoreColumns.of(self.application, store, raw=False)
        rows = StoreRows(store, columns, spec.headers, spec.kind == "versioned")
        return self.executor.table(self.staging, selection, rows)

    def emitted(self, topic: str) -> Any:
        """The records that were written to a topic as a table with typed columns, ``RecordColumns``; as ``table``.

        Raises ``TopicError`` if the application does not write to the topic.
        """
        return self.executor.table(self.staging, self.sink_rows(topic), self.emitted_rows(topic))

    def emitted_rows(self, topic: str) -> EmittedRows:
        """How the rows that were written to a topic become those of a table. Raises ``TopicError`` if the application
        does not write to the topic."""
        known = {
            *(topic for one in self.plan.slices for topic in one.sinks),
            *(at.topic for at in self.written()),
        }
        if topic not in known:
            raise TopicError(
                f"the backfill has no records for topic {topic}", **not_among(topic, known, "it wrote to")
            )
        return EmittedRows(topic, RecordColumns.of(self.application, topic))

    def stores(self) -> dict[str, str | None]:
        """The application's stores by name, each with its changelog topic (None: it has none)."""
        return {name: topic for one in self.plan.slices if one.final for name, topic in one.stores.items()}

    def store_rows(self, store: str) -> Selection:
        """The entries of a store. Raises ``StateError`` if there is no such store."""
        one = self._slice_of(store)
        return Selection(Kind.STATE, store, (one.index,), one.tasks)

    def store_times(self, store: str) -> tuple[int, ...]:
        """The stream time (ms) of each partition of a store, -1 if it has none. Raises ``StateError`` if there is no
        such store."""
        one = self._slice_of(store)
        return tuple(self.outcome(one, task).store_times.get(store, NO_TIME) for task in range(one.tasks))

    def sink_rows(self, topic: str) -> Selection:
        """The rows that were written to a topic."""
        slices = tuple(one.index for one in self.plan.slices)
        written = [partition.partition for partition in self.written() if partition.topic == topic]
        return Selection(Kind.RECORD, topic, slices, max(written, default=-1) + 1)

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        """Staged rows of one partition, in order, read by this process: batches of ``EXCHANGE_SCHEMA``."""
        return self.staging.rows(selection, partition)

    def for_each_partition(self, selection: Selection, function: PartitionFunction) -> list[bytes]:
        """Call ``function`` for every partition where the executor runs; see ``executor.Executor``."""
        return self.executor.for_each_partition(self.staging, selection, function)

    def changelog(self, store: str) -> dict[int, list[ChangelogEntry]]:
        """The entries of a store by partition, sorted by key: its changelog after compaction, without tombstones. A
        versioned store has all versions of a key, by time."""
        selection = self.store_rows(store)
        has_headers = any(spec.headers for spec in self.loaded.built.stores if spec.name == store)
        found = {}
        for task in range(selection.partitions):
            entries = changelog_entries(self.rows(selection, task), headers=has_headers)
            found[task] = sorted(entries, key=lambda one: one.place)
        return found

    def sink(self, topic: str) -> dict[int, list[SinkRecord]]:
        """The records that were written to a topic, by partition. Records of several tasks in one partition are in
        order of time."""
        selection = self.sink_rows(topic)
        return {
            partition.partition: list(sink_records(self.rows(selection, partition.partition)))
            for partition in self.written()
            if partition.topic == topic
        }

    def written(self) -> dict[TopicPartition, int]:
        """The partitions outside of the application that records were written to, sorted, with their number."""
        own = self.loaded.built.internal_topics
        counts: dict[TopicPartition, int] = {}
        for outcomes in self.outcomes.values():
            for outcome in outcomes:
                for partition, count in outcome.written.items():
                    if partition.topic not in own:
                        counts[partition] = counts.get(partition, 0) + count
        return dict(sorted(counts.items()))

    def offsets(
        self,
        internal_ends: dict[TopicPartition, int] | None = None,
        overflow_of: Callable[[TaskId, int], Overflow] | None = None,
    ) -> dict[TopicPartition, CommittedOffset]:
        """The offsets to commit for every input partition. ``internal_ends`` are the end offsets of the internal
        topics, which a backfill does not fill (default: 0). ``overflow_of`` a task, of so many in its sub-topology,
        writes what does not fit beside its offsets."""
        committed: dict[TopicPartition, CommittedOffset] = {}
        for one in self.plan.slices:
            if one.final:
                for task in range(one.tasks):
                    task_id = TaskId(one.subtopology, task)
                    overflow = None if overflow_of is None else overflow_of(task_id, one.tasks)
                    committed |= self._offsets_of(task_id, one, internal_ends or {}, overflow)
        return committed

    def _offsets_of(
        self, task: TaskId, final: Slice, internal_ends: dict[TopicPartition, int], overflow: Overflow | None
    ) -> dict[TopicPartition, CommittedOffset]:
        outcome = self.outcome(final, task.partition)
        positions: dict[TopicPartition, int] = {}
        times: dict[TopicPartition, int] = {}
        for one in self.plan.slices:
            for input in one.topics_of(task.partition) if one.subtopology == task.subtopology else ():
                partition = TopicPartition(input.topic, task.partition)
                end = internal_ends.get(partition, 0) if input.internal else self.manifest.end_of(partition)
                positions[partition] = end
                times[partition] = outcome.partition_times.get(input.topic, NO_TIME)
        return encode_committed(positions, times, outcome.operator_state, {}, overflow)

    def outcome(self, one: Slice, task: int) -> TaskOutcome:
        """The outcome of a task."""
        return self.outcomes[one.index][task]

    def _slice_of(self, store: str) -> Slice:
        for one in self.plan.slices:
            if one.final and store in one.stores:
                return one
        known = {name for one in self.plan.slices for name in one.stores}
        raise StateError(f"there is no store {store}", **not_among(store, known, "the topology has"))


def changelog_entries(batches: Iterable[Arrow], *, headers: bool = False) -> Iterator[ChangelogEntry]:
    """Rows of a store as objects. ``headers``: it keeps them, and they stand before the values."""
    for rows in batches:
        columns: list[list[Any]] = [rows.column(name).to_pylist() for name in ("key", "value", "timestamp")]
        if headers:
            for key, both, timestamp in zip(*columns, strict=True):
                of_value, value = headers_apart(both)
                yield ChangelogEntry(key, value, timestamp, of_value)
        else:
            yield from map(ChangelogEntry, *columns)


def sink_records(batches: Iterable[Arrow]) -> Iterator[SinkRecord]:
    """Rows of a sink as objects."""
    for rows in batches:
        columns: list[list[Any]] = [rows.column(name).to_pylist() for name in ("key", "value", "timestamp")]
        headers = headers_of(rows.column("headers")) or [NO_HEADERS] * rows.num_rows
        yield from map(SinkRecord, *columns, headers)
