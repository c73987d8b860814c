"""Pieces of an archive: a range of a partition as one Parquet file, written by any process."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.archive.target import RoundFiles
from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow, combined, pc
from pystreams.backfill.sources.archive_log import ArchivedFile
from pystreams.backfill.sources.folder import Folder, hive_folder
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.sources.source import Source
from pystreams.ids import TopicPartition

#: Topic and partition are in the folders' names.
FILE_SCHEMA: Final[Arrow] = pa.schema(
    [column for column in RECORD_SCHEMA if column.name not in ("topic", "partition")]
)
#: Columns with dictionaries. Values have none: readers choose the rows that fit into memory by the sizes in footers,
#: and with dictionaries these would be too small for equal values.
_DICTIONARIES: Final[Any] = ["key", "headers.list.element.name"]
_GROUP_ROWS: Final = 100_000
_GROUP_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class ArchiveJob:
    """The data that a process needs to write pieces; picklable."""

    source: Source
    files: RoundFiles


def file_name(start: int) -> str:
    """A new name for a file whose records begin at an offset. ``OWN_NAME`` recognises it."""
    return f"{start:020}-{uuid4().hex[:8]}.parquet"


@dataclass(frozen=True, slots=True)
class FilesInFolder:
    """Implements ``RoundFiles``: a file is where it will be, in folders for its topic and partition."""

    folder: Folder

    @property
    def schema(self) -> Arrow:
        return FILE_SCHEMA

    def name(self, partition: TopicPartition, start: int) -> str:
        return f"{hive_folder(topic=partition.topic, partition=partition.partition)}/{file_name(start)}"

    def create(self, file: str) -> Arrow:
        return self.folder.create(file)

    def written(self) -> AbstractContextManager[None]:
        return self.folder.written()


def write_piece(job: ArchiveJob, piece: InputRange) -> ArchivedFile:
    """Read a piece and write it to a file of its own; no file if no record lies within."""
    return write_file(job.files, piece, job.source.read(piece))


def write_file(files: RoundFiles, piece: InputRange, batches: Iterable[Arrow]) -> ArchivedFile:
    """Write the records of a piece, batches of ``RECORD_SCHEMA``, to a new file; none if there are no records."""
    name = files.name(piece.partition, piece.start)
    writer = _Writer(files, name)
    try:
        for rows in batches:
            writer.add(rows)
        writer.finish()
    finally:
        writer.close()
    if not writer.rows:
        return ArchivedFile(piece.partition, piece.start, piece.end)
    return ArchivedFile(
        piece.partition,
        piece.start,
        piece.end,
        name,
        writer.rows,
        writer.first_offset,
        writer.last_offset,
        writer.min_timestamp,
        writer.max_timestamp,
        writer.size_bytes,
    )


class _Writer:
    """A file that is being written: created with its first row, written in groups of many rows."""

    def __init__(self, files: RoundFiles, file: str) -> None:
        self._files = files
        self._file = file
        self._opened: Any = None
        self._writer: Any = None
        self._waiting: list[Arrow] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self.rows = 0
        self.first_offset = -1
        self.last_offset = -1
        self.min_timestamp = -1
        self.max_timestamp = -1
        self.size_bytes = 0

    def add(self, rows: Arrow) -> None:
        """Rows of ``RECORD_SCHEMA``, which follow those before."""
        if not rows.num_rows:
            return
        offsets, times = rows.column("offset"), pc.min_max(rows.column("timestamp"))
        least, greatest = times["min"].as_py(), times["max"].as_py()
        if not self.rows:
            self.first_offset, self.min_timestamp, self.max_timestamp = offsets[0].as_py(), least, greatest
        self.last_offset = offsets[-1].as_py()
        self.min_timestamp = min(self.min_timestamp, least)
        self.max_timestamp = max(self.max_timestamp, greatest)
        self.rows += rows.num_rows
        self._waiting.append(rows.select(self._files.schema.names))
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= _GROUP_ROWS or self._waiting_bytes >= _GROUP_BYTES:
            self._flush()

    def finish(self) -> None:
        """All rows are there."""
        self._flush()
        if self._writer is not None:
            with self._files.written():
                self._writer.close()
                self.size_bytes = self._opened.tell()

    def close(self) -> None:
        with self._files.written(), ExitStack() as stack:
            for opened in (self._opened, self._writer):
                if opened is not None:
                    stack.callback(opened.close)

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._opened = self._files.create(self._file)
            self._writer = pq.ParquetWriter(
                self._opened, self._files.schema, compression="zstd", use_dictionary=_DICTIONARIES
            )
        with self._files.written():
            self._writer.write_batch(combined(self._waiting), row_group_size=self._waiting_rows)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0
