"""What a backfill has computed, read from where it is staged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from pystreams.backfill.application import Loaded
from pystreams.backfill.manifest import Manifest
from pystreams.backfill.order import merged
from pystreams.backfill.outcome import Outcome
from pystreams.backfill.plan import Plan, Slice
from pystreams.backfill.records import (
    QUEUE_TIME,
    Arrow,
    Kind,
    exchange_rows,
    headers_column,
    headers_of,
    repeated,
    upstream_id,
)
from pystreams.backfill.sources import BATCH_ROWS
from pystreams.backfill.staging import Staging
from pystreams.broker.port import CommittedOffset
from pystreams.errors import StateError
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import NO_HEADERS, Headers
from pystreams.runtime.offset_metadata import NO_TIME, encode_committed


class ChangelogEntry(NamedTuple):
    """The last change of a key, in the bytes of the changelog."""

    key: bytes
    value: bytes
    timestamp: int


class SinkRecord(NamedTuple):
    """A record for a sink, in bytes."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class BackfillResult:
    """Stores, sinks and offsets of a computed backfill."""

    loaded: Loaded
    plan: Plan
    manifest: Manifest
    staging: Staging

    def changelog(self, store: str) -> dict[int, list[ChangelogEntry]]:
        """The entries of a store by partition, sorted by key: its changelog after compaction, without tombstones."""
        one = self._slice_of(store)
        return {
            task: sorted(
                ChangelogEntry(key, value, timestamp)
                for rows in self.staging.state(one.index, task, store, BATCH_ROWS)
                for key, value, timestamp in zip(
                    *(rows.column(name).to_pylist() for name in ("key", "value", "timestamp")), strict=True
                )
            )
            for task in range(one.tasks)
        }

    def sink(self, topic: str) -> dict[int, list[SinkRecord]]:
        """What was written to a topic, by partition. Where several tasks wrote to one, they follow in order of time."""
        return {
            partition.partition: [
                record for rows in self.sink_rows(partition) for record in _sink_records(rows)
            ]
            for partition in self.written()
            if partition.topic == topic
        }

    def sink_rows(self, partition: TopicPartition) -> Iterator[Arrow]:
        """The same for one partition, as rows of ``EXCHANGE_SCHEMA``."""
        writers: dict[int, list[tuple[int, int]]] = {}
        for one in self.plan.slices:
            for task in range(one.tasks):
                writers.setdefault(upstream_id(one.subtopology, task), []).append((one.index, task))
        queues = []
        for upstream, visits in writers.items():
            rows = [
                batch
                for index, task in visits
                for batch in self.staging.records(index, task, partition, BATCH_ROWS)
            ]
            queues.append(((partition.topic, upstream), rows))
        yield from merged(queues)

    def written(self) -> list[TopicPartition]:
        """The partitions outside of the application that records were written to."""
        own = self.loaded.built.internal_topics
        return sorted(
            {
                partition
                for one in self.plan.slices
                for task in range(one.tasks)
                for partition in self.staging.written(one.index, task)
                if partition.topic not in own
            }
        )

    def offsets(
        self, internal_ends: dict[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """What to commit for every input partition. ``internal_ends`` are the end offsets of the internal topics, which
        a backfill does not fill (default: 0)."""
        committed: dict[TopicPartition, CommittedOffset] = {}
        for one in self.plan.slices:
            if one.final:
                for task in range(one.tasks):
                    committed |= self._offsets_of(TaskId(one.subtopology, task), one, internal_ends or {})
        return committed

    def _offsets_of(
        self, task: TaskId, final: Slice, internal_ends: dict[TopicPartition, int]
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
        return encode_committed(positions, times, outcome.operator_state, {})

    def outcome(self, one: Slice, task: int) -> Outcome:
        """What became of a task. Raises ``StateError`` if it is not staged."""
        outcome = self.staging.outcome(one.index, task)
        if outcome is None:
            raise StateError(
                f"task {one.subtopology}_{task} of slice {one.index} is not staged",
                where=str(self.staging.path),
                hint="run the backfill again with resume",
            )
        return outcome

    def _slice_of(self, store: str) -> Slice:
        for one in self.plan.slices:
            if one.final and store in one.stores:
                return one
        known = sorted(name for one in self.plan.slices for name in one.stores)
        raise StateError(f"there is no store {store}", why=f"the topology has: {', '.join(known) or 'none'}")


def outcome_row(outcome: Outcome, task: int) -> Arrow:
    """An earlier visit's outcome as the first row of a stage's input."""
    columns = (
        pa.array([0], pa.int64()),
        pa.array([b""], pa.binary()),
        pa.array([outcome.to_json()], pa.binary()),
    )
    return exchange_rows(
        Kind.OUTCOME,
        repeated("", pa.string(), 1),
        repeated(task, pa.int32(), 1),
        repeated(QUEUE_TIME[Kind.OUTCOME], pa.int64(), 1),
        -1,
        pa.array([0], pa.int64()),
        (*columns, headers_column(None, 1)),
    )


def _sink_records(rows: Arrow) -> Iterator[SinkRecord]:
    columns: list[list[Any]] = [rows.column(name).to_pylist() for name in ("key", "value", "timestamp")]
    headers = headers_of(rows.column("headers")) or [NO_HEADERS] * rows.num_rows
    return (SinkRecord(*row) for row in zip(*columns, headers, strict=True))
