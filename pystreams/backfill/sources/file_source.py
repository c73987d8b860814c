"""The common part of all archives in files.

A file holds records of any partitions. An index of the files of each partition is made at its first use, and is pickled
with the source, so that only the necessary files are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar, Final

import pyarrow as pa

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow, pc
from pystreams.backfill.locations import absolute, shown
from pystreams.backfill.sources.file_columns import record_columns
from pystreams.backfill.sources.file_index import Found, Index, Piece, index_of, numbered, out_of_order
from pystreams.backfill.sources.folder import Folder, hive_values
from pystreams.backfill.sources.last_records import Spans, before, last_record
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.backfill.sources.source import Span, within
from pystreams.errors import ConfigError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition

#: The number of files that are examined at the same time, because this is mostly waiting for a disk or a network.
LOOKING_THREADS: Final = 8

_EVERYTHING: Final = (-1, 1 << 63)


@dataclass(frozen=True)
class FileSource:
    """A folder of files, or one file, with the columns topic, partition, offset, timestamp, key, value, headers; key,
    value and headers may be missing. Topic and partition may be in the names of folders (``topic=lines/partition=0``).

    ``path`` may be a URI that Arrow knows (``s3://...``). ``topic`` is that of records that do not name one. Each file
    has a partition's records in order of offsets, and files of one partition do not overlap. With ``approximate``
    records are numbered as they are in the files, in the order of the files' names. Offsets in the files are ignored,
    and records without a partition get partition 0.

    The folder is listed once: only a new source sees later files.
    """

    path: str = field(repr=False)
    topic: str | None = None
    approximate: bool = field(default=False, kw_only=True)
    _index: Index | None = field(default=None, init=False, repr=False, compare=False)

    format_name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", absolute(self.path))

    @property
    def description(self) -> str:
        return f"{self.format_name} archive {shown(self.path)}"

    def partitions(self) -> Mapping[str, int]:
        return self.index.counts

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self.index.beginning(partition) for partition in partitions}

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self.index.end(partition) for partition in partitions}

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        return {partition: self._offset_at(partition, time_ms) for partition in partitions}

    def missing(self, input: InputRange) -> list[Span]:
        return self.index.missing(input)

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        return {} if self.approximate else before(ends, self.beginnings(ends), self._last_within)

    def read(self, input: InputRange) -> Iterator[Arrow]:
        missing = self.missing(input)
        if missing:
            raise OffsetOutOfRangeError(
                f"the archive does not hold all records of {input.partition}",
                where=self.description,
                why="missing: "
                + ", ".join(f"offsets {start} to {end} (exclusive)" for start, end in missing),
                hint="restore its files, or begin a new backfill with the remaining records",
            )
        for rows in self.ascending(self.index.within(input), input):
            yield within(rows, input)

    def ascending(self, pieces: Iterable[Piece], input: InputRange) -> Iterator[Arrow]:
        """The rows of pieces, which are in order of their first offsets. Raises ``ConfigError`` if the rows are not."""
        reached = -1
        for piece, rows in self.in_order(pieces, input):
            offsets = rows.column("offset")
            if offsets[0].as_py() <= reached or not all_ascend(offsets):
                raise out_of_order(input.partition, self.where(piece.file))
            reached = offsets[-1].as_py()
            yield rows

    @property
    def index(self) -> Index:
        """The index of the files."""
        if self._index is None:
            object.__setattr__(self, "_index", self._look())
        assert self._index is not None
        return self._index

    @property
    def folder(self) -> Folder:
        return Folder(self.path)

    # Methods that a format implements

    def pieces(self, file: str) -> list[Found]:
        """The pieces in a file, found with as little reading as possible."""
        raise NotImplementedError

    def rows(self, file: str, input: InputRange, *, times_only: bool = False) -> Iterator[Arrow]:
        """The rows of a partition in a file, in its order; those outside of the range may be left out.

        In ``RECORD_SCHEMA``; with ``times_only`` keys, values and headers may be null.
        """
        raise NotImplementedError

    def in_order(
        self, pieces: Iterable[Piece], input: InputRange, *, times_only: bool = False
    ) -> Iterator[tuple[Piece, Arrow]]:
        """The rows of pieces, which are in order of their first offsets. For ``times_only`` see ``rows``."""
        for piece in pieces:
            for rows in self._numbered(piece, self.rows(piece.file, input, times_only=times_only)):
                yield piece, rows

    # For the formats

    def records(self, batch: Arrow, file: str) -> Arrow:
        """A batch as it was read, in ``RECORD_SCHEMA``."""
        return record_columns(self._without_offsets(batch), self._given(file), self.where(file))

    def where(self, file: str) -> str:
        """A file, for people; the path may be that of a file."""
        return f"{self.description}, {file}" if file else self.description

    def _without_offsets(self, batch: Arrow) -> Arrow:
        names = batch.schema.names
        if not self.approximate or "offset" not in names:
            return batch
        return batch.select([name for name in names if name != "offset"])

    def _given(self, file: str) -> dict[str, str]:
        given = {"partition": "0", "offset": "0"} if self.approximate else {}
        if self.topic is not None:
            given["topic"] = self.topic
        return {**given, **hive_values(file)}

    def _look(self) -> Index:
        files = self.folder.files(self.suffixes)
        if not files:
            raise ConfigError(
                f"the archive {shown(self.path)} holds no {self.format_name} file",
                why=f"their names end with {' or '.join(self.suffixes)}",
            )
        with ThreadPoolExecutor(LOOKING_THREADS) as pool:
            found = [one for of_file in pool.map(self.pieces, files) for one in of_file]
        made = numbered if self.approximate else index_of
        return made(found, self.description)

    def _last_within(self, spans: Spans) -> dict[TopicPartition, LastRecord]:
        ranges = [InputRange(partition, *span) for partition, span in spans.items()]
        with ThreadPoolExecutor(LOOKING_THREADS) as pool:
            found = dict(zip(spans, pool.map(self._last_of, ranges), strict=True))
        return {partition: last for partition, last in found.items() if last is not None}

    def _last_of(self, input: InputRange) -> LastRecord | None:
        if self.missing(input):
            return None
        last = None
        for rows in self.read(input):
            if rows.num_rows:
                names = ("offset", "timestamp", "key", "value")
                last = last_record(*(rows.column(name)[-1].as_py() for name in names))
        return last

    def _offset_at(self, partition: TopicPartition, time_ms: int) -> int:
        everything = InputRange(partition, *_EVERYTHING)
        pieces = (piece for piece in self.index.pieces.get(partition, ()) if piece.max_timestamp >= time_ms)
        for _, rows in self.in_order(pieces, everything, times_only=True):
            late = pc.index(pc.greater_equal(rows.column("timestamp"), time_ms), True).as_py()
            if late >= 0:
                return int(rows.column("offset")[late].as_py())
        return self.index.end(partition)

    def _numbered(self, piece: Piece, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        """The batches that hold anything, with the offsets that count."""
        next_offset = piece.first_offset
        for rows in batches:
            if not rows.num_rows:
                continue
            if not self.approximate:
                yield rows
                continue
            offsets = pa.array(range(next_offset, next_offset + rows.num_rows), pa.int64())
            next_offset += rows.num_rows
            place = rows.schema.get_field_index("offset")
            yield rows.set_column(place, RECORD_SCHEMA.field("offset"), offsets)


def of_partition(rows: Arrow, partition: TopicPartition) -> Arrow:
    """The rows of one partition, in ``RECORD_SCHEMA``."""
    chosen = pc.and_(
        pc.equal(rows.column("topic"), partition.topic),
        pc.equal(rows.column("partition"), partition.partition),
    )
    return rows if pc.all(chosen).as_py() else rows.filter(chosen)


def all_ascend(offsets: Arrow) -> bool:
    """Whether each offset is greater than the one before."""
    return bool(pc.all(pc.greater(offsets.slice(1), offsets.slice(0, len(offsets) - 1))).as_py() is not False)
