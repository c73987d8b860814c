"""An index of files: the records of a partition in each file, in order of offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.sources.source import Span
from pystreams.errors import ConfigError
from pystreams.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Piece:
    """A partition's records in one file. Both offsets are those of records."""

    file: str
    rows: int
    first_offset: int
    last_offset: int
    max_timestamp: int


Found = tuple[TopicPartition, Piece]


@dataclass(frozen=True, slots=True)
class Index:
    """``counts`` are the partitions of each topic. ``covered`` are the offsets that the files stand for, with those
    that no record has; spans that touch are one."""

    counts: Mapping[str, int]
    pieces: Mapping[TopicPartition, Sequence[Piece]]
    covered: Mapping[TopicPartition, Sequence[Span]] = field(default_factory=dict)

    def beginning(self, partition: TopicPartition) -> int:
        """The first offset; 0 if there is none."""
        return next((start for start, _ in self._spans(partition)), 0)

    def end(self, partition: TopicPartition) -> int:
        """The end offset (exclusive); 0 if there is none."""
        return max((end for _, end in self._spans(partition)), default=0)

    def missing(self, input: InputRange) -> list[Span]:
        """The holes between the files, and before and behind them, within a range."""
        found: list[Span] = []
        reached = input.start
        for start, end in self._spans(input.partition):
            if reached < min(start, input.end):
                found.append((reached, min(start, input.end)))
            reached = max(reached, end)
        if reached < input.end:
            found.append((reached, input.end))
        return found

    def within(self, input: InputRange) -> Iterator[Piece]:
        """The pieces that have records of the range."""
        for piece in self.pieces.get(input.partition, ()):
            if piece.last_offset >= input.start and piece.first_offset < input.end:
                yield piece

    def _spans(self, partition: TopicPartition) -> Sequence[Span]:
        if partition in self.covered:
            return self.covered[partition]
        pieces = self.pieces.get(partition, ())
        # Without an archive log it is not known whether a gap is due to compaction, so gaps count as covered.
        return [(pieces[0].first_offset, pieces[-1].last_offset + 1)] if pieces else []


def index_of(found: Iterable[Found], where: str) -> Index:
    """The index of pieces in any order. Raises ``ConfigError`` for pieces of a partition that overlap."""
    index = _index(found, where)
    for partition, pieces in index.pieces.items():
        for one, other in pairwise(pieces):
            if other.first_offset <= one.last_offset:
                raise out_of_order(partition, f"{where}: {one.file} and {other.file}")
    return index


def numbered(found: Iterable[Found], where: str) -> Index:
    """The index of pieces with made-up offsets: from 0, in the order of the files' names."""
    reached: dict[TopicPartition, int] = {}
    pieces: list[Found] = []
    for partition, piece in sorted(found, key=lambda one: one[1].file):
        first = reached.get(partition, 0)
        reached[partition] = first + piece.rows
        numbers = replace(piece, first_offset=first, last_offset=first + piece.rows - 1)
        pieces.append((partition, numbers))
    return _index(pieces, where)


def _index(found: Iterable[Found], where: str) -> Index:
    pieces: dict[TopicPartition, list[Piece]] = {}
    counts: dict[str, int] = {}
    for partition, piece in found:
        if partition.partition < 0:
            raise ConfigError(
                f"there are records of partition {partition.partition} of topic {partition.topic}",
                where=f"{where}: {piece.file}",
                hint="partitions count from 0",
            )
        pieces.setdefault(partition, []).append(piece)
        counts[partition.topic] = max(counts.get(partition.topic, 0), partition.partition + 1)
    for of_partition in pieces.values():
        of_partition.sort(key=lambda piece: (piece.first_offset, piece.file))
    return Index(counts, pieces)


def summaries(batches: Iterable[Arrow], file: str) -> list[Found]:
    """The pieces of one file, whose batches have topic, partition, offset and timestamp."""
    found: dict[TopicPartition, Piece] = {}
    for batch in batches:
        grouped = (
            pa.Table.from_batches([batch])
            .group_by(["topic", "partition"])
            .aggregate([("offset", "min"), ("offset", "max"), ("offset", "count"), ("timestamp", "max")])
        )
        for row in grouped.to_pylist():
            partition = TopicPartition(row["topic"], row["partition"])
            piece = Piece(
                file, row["offset_count"], row["offset_min"], row["offset_max"], row["timestamp_max"]
            )
            known = found.get(partition)
            found[partition] = piece if known is None else joined(known, piece)
    return list(found.items())


def joined(one: Piece, other: Piece) -> Piece:
    """Two pieces of one file as one."""
    return Piece(
        one.file,
        one.rows + other.rows,
        min(one.first_offset, other.first_offset),
        max(one.last_offset, other.last_offset),
        max(one.max_timestamp, other.max_timestamp),
    )


def out_of_order(partition: TopicPartition, where: str) -> ConfigError:
    """The error for records of a partition that are not in order of offsets, or occur twice."""
    return ConfigError(
        f"the archive's records of {partition} are not in order of offsets",
        where=where,
        hint="write each range of offsets once, one partition after the other",
    )
