"""Records of this process as a source."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pystreams.backfill.exchange.rows import Arrow, record_rows
from pystreams.backfill.sources.last_records import last_record
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.backfill.sources.source import Span, within
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch


@dataclass(frozen=True)
class MemorySource:
    """Records of this process. Offsets of a batch ascend; batches of a partition follow each other."""

    counts: Mapping[str, int]
    batches: Mapping[TopicPartition, Sequence[RecordBatch]] = field(repr=False)

    @property
    def description(self) -> str:
        return "records in memory"

    @property
    def approximate(self) -> bool:
        return False

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

    def missing(self, input: InputRange) -> list[Span]:
        return []

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        found: dict[TopicPartition, LastRecord] = {}
        for partition, end in ends.items():
            for batch in self.batches.get(partition, ()):
                at = bisect_left(batch.offsets, end) - 1
                if at >= 0:
                    found[partition] = last_record(
                        batch.offsets[at], batch.timestamps[at], batch.keys[at], batch.values[at]
                    )
        return found

    def read(self, input: InputRange) -> Iterator[Arrow]:
        for batch in self.batches.get(input.partition, ()):
            yield within(record_rows(batch), input)
