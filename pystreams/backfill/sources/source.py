"""The interface of a source of history. Sources are picklable: each worker reads its own partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol

from pystreams.backfill.exchange.rows import Arrow, pc
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.ids import TopicPartition

#: Rows of a batch, where a source has no batches of its own.
BATCH_ROWS: Final = 10_000

#: Offsets from the first to before the second.
Span = tuple[int, int]


class Reader(Protocol):
    """The part of a source that tasks need."""

    @property
    def description(self) -> str:
        """For people: ``Kafka at localhost:9092``, ``Parquet archive archive/``."""
        ...

    def read(self, input: InputRange) -> Iterator[Arrow]:
        """Batches of ``RECORD_SCHEMA`` in order of offsets; ends by position. Raises ``OffsetOutOfRangeError``."""
        ...


class Source(Reader, Protocol):
    """Topics with their records."""

    @property
    def approximate(self) -> bool:
        """True if the offsets are made up, so that a live application cannot go on at them."""
        ...

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

    def missing(self, input: InputRange) -> list[Span]:
        """Offsets in the range that the source knows to have existed, and does not hold. Offsets that compaction or a
        transaction's marker took are not among it."""
        ...

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        """The last record before each offset, where it is found without reading much."""
        ...


def within(rows: Arrow, input: InputRange) -> Arrow:
    """The rows whose offsets are in the range; they ascend."""
    if not rows.num_rows:
        return rows
    offsets = rows.column("offset")
    if offsets[0].as_py() >= input.start and offsets[-1].as_py() < input.end:
        return rows
    inside = pc.and_(pc.greater_equal(offsets, input.start), pc.less(offsets, input.end))
    return rows.filter(inside)
