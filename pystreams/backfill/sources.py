"""Where history is read from. Sources are picklable: each worker reads its own partitions."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.manifest import InputRange
from pystreams.backfill.records import RECORD_SCHEMA, Arrow, pc, record_rows
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import Broker
from pystreams.errors import ConfigError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch

#: Rows of a batch, where a source has no batches of its own.
BATCH_ROWS = 10_000

_POLL_MS = 100


class Source(Protocol):
    """Topics with their records."""

    def partitions(self) -> Mapping[str, int]:
        """The number of partitions of every topic."""
        ...

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each."""
        ...

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The end offset (exclusive) of each, as of now."""
        ...

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        """The first offset of each whose record has at least the timestamp; the end if there is none."""
        ...

    def read(self, input: InputRange) -> Iterator[Arrow]:
        """Batches of ``RECORD_SCHEMA`` in order of offsets; ends by position. Raises ``OffsetOutOfRangeError``."""
        ...


@dataclass(frozen=True)
class MemorySource:
    """Records of this process. Offsets of a batch ascend; batches of a partition follow each other."""

    counts: Mapping[str, int]
    batches: Mapping[TopicPartition, Sequence[RecordBatch]]

    def partitions(self) -> Mapping[str, int]:
        return self.counts

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: next((b.offsets[0] for b in self.batches.get(p, ())), 0) for p in partitions}

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: max((b.next_offset for b in self.batches.get(p, ())), default=0) for p in partitions}

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        ends = self.ends(partitions)
        return {
            p: next(
                (
                    offset
                    for batch in self.batches.get(p, ())
                    for offset, timestamp in zip(batch.offsets, batch.timestamps, strict=True)
                    if timestamp >= time_ms
                ),
                ends[p],
            )
            for p in partitions
        }

    def read(self, input: InputRange) -> Iterator[Arrow]:
        for batch in self.batches.get(input.partition, ()):
            yield within(record_rows(batch), input)


@dataclass(frozen=True)
class EmbeddedSource:
    """The topics of an embedded log."""

    path: str

    def partitions(self) -> Mapping[str, int]:
        with closing(EmbeddedBroker(self.path)) as broker, closing(broker.admin()) as admin:
            return {name: topic.partitions for name, topic in admin.describe_topics().items()}

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        with closing(EmbeddedBroker(self.path)) as broker, closing(broker.admin()) as admin:
            return admin.beginning_offsets(partitions)

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        with closing(EmbeddedBroker(self.path)) as broker, closing(broker.admin()) as admin:
            return admin.end_offsets(partitions)

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        with closing(EmbeddedBroker(self.path)) as broker, closing(broker.admin()) as admin:
            return admin.offsets_for_times(dict.fromkeys(partitions, time_ms))

    def read(self, input: InputRange) -> Iterator[Arrow]:
        with closing(EmbeddedBroker(self.path)) as broker:
            yield from read_log(broker, input)


@dataclass(frozen=True)
class ParquetSource:
    """An archive: a folder of Parquet files with the columns of ``RECORD_SCHEMA``, in which each file has the records
    of a partition in order. Files of one partition must not overlap."""

    path: str

    def partitions(self) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for path in self._files():
            found = (
                pq.read_table(path, columns=["topic", "partition"])
                .group_by("topic")
                .aggregate([("partition", "max")])
            )
            for row in found.to_pylist():
                counts[row["topic"]] = max(counts.get(row["topic"], 0), row["partition_max"] + 1)
        return counts

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: next((rows.column("offset")[0].as_py() for rows in self._of(p)), 0) for p in partitions}

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {
            p: max((rows.column("offset")[-1].as_py() + 1 for rows in self._of(p)), default=0)
            for p in partitions
        }

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        ends = self.ends(partitions)
        found: dict[TopicPartition, int] = {}
        for p in partitions:
            late = (rows.filter(pc.greater_equal(rows.column("timestamp"), time_ms)) for rows in self._of(p))
            found[p] = next((rows.column("offset")[0].as_py() for rows in late if rows.num_rows), ends[p])
        return found

    def read(self, input: InputRange) -> Iterator[Arrow]:
        for rows in self._of(input.partition):
            yield within(rows, input)

    def _files(self) -> list[Path]:
        found = sorted(Path(self.path).rglob("*.parquet"))
        if not found:
            raise ConfigError(f"the archive {self.path} holds no Parquet file")
        return found

    def _of(self, partition: TopicPartition) -> Iterator[Arrow]:
        """The rows of one partition, file by file in order of offsets."""
        chosen = (pc.field("topic") == partition.topic) & (pc.field("partition") == partition.partition)
        first: list[tuple[int, Path]] = []
        for path in self._files():
            offsets = pq.read_table(path, columns=["offset"], filters=chosen).column("offset")
            if len(offsets):
                first.append((offsets[0].as_py(), path))
        reached = -1
        for _, path in sorted(first):
            for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS, columns=RECORD_SCHEMA.names):
                rows = pa.Table.from_batches([batch]).filter(chosen).combine_chunks().to_batches()
                for one in rows:
                    offsets = [reached, *one.column("offset").to_pylist()]
                    if any(a >= b for a, b in itertools.pairwise(offsets)):
                        raise ConfigError(
                            f"the archive's records of {partition} are not in order of offsets",
                            where=str(path),
                            hint="write each range of offsets once, one partition after the other",
                        )
                    reached = offsets[-1]
                    yield one.cast(RECORD_SCHEMA)


def read_log(broker: Broker, input: InputRange) -> Iterator[Arrow]:
    """Read a range of a log. Compacted records and transaction markers are holes: the position tells the end."""
    with ExitStack() as stack:
        admin = stack.enter_context(closing(broker.admin()))
        beginning = admin.beginning_offsets([input.partition])[input.partition]
        if input.start < beginning < input.end:
            raise OffsetOutOfRangeError(
                f"records of {input.partition} were deleted after the backfill's cut",
                where=f"offsets {input.start} to {min(beginning, input.end)} (exclusive)",
                hint="read them from an archive, or begin a new backfill with what is left",
            )
        consumer = stack.enter_context(closing(broker.consumer("backfill")))
        consumer.assign({input.partition: input.start})
        while consumer.position(input.partition) < input.end:
            for batch in consumer.poll(_POLL_MS):
                yield within(record_rows(batch), input)


def within(rows: Arrow, input: InputRange) -> Arrow:
    """The rows whose offsets are in the range; they ascend."""
    if not rows.num_rows:
        return rows
    offsets = rows.column("offset")
    if offsets[0].as_py() >= input.start and offsets[-1].as_py() < input.end:
        return rows
    inside = pc.and_(pc.greater_equal(offsets, input.start), pc.less(offsets, input.end))
    return rows.filter(inside)
