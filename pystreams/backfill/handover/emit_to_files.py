"""Records for sinks as Parquet files: an archive, which a ``ParquetSource`` reads, or a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.archive.pieces import FILE_SCHEMA
from pystreams.backfill.compute.result_tables import EmittedRows
from pystreams.backfill.exchange.rows import Arrow, combined, counted
from pystreams.backfill.sources.folder import Folder, hive_folder
from pystreams.errors import StateError

#: A file's rows are written in groups of about this size, because readers are slow with small groups.
_GROUP_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EmitToFolder:
    """An ``executor.PartitionFunction`` when it has a topic: one file for each partition, which appears when it is
    complete."""

    folder: Folder
    backfill_id: str
    topic: str = ""

    def to(self, topic: str) -> EmitToFolder:
        return replace(self, topic=topic)

    def __call__(self, partition: int, batches: Iterator[Arrow]) -> bytes:
        place = hive_folder(topic=self.topic, partition=partition)
        rows = self._rows(place, batches)
        return b"%d" % write_once(self.folder, f"{place}/{self.backfill_id}.parquet", FILE_SCHEMA, rows)

    def _rows(self, place: str, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        # The offsets continue after the records that other backfills have emitted.
        others = [name for name in self.folder.names(place) if name.endswith(".parquet")]
        offset = sum(_rows_in(self.folder, f"{place}/{name}") for name in others)
        for batch in batches:
            columns = [batch.column(name) for name in ("timestamp", "key", "value", "headers")]
            yield pa.record_batch([counted(offset, batch.num_rows), *columns], schema=FILE_SCHEMA)
            offset += batch.num_rows


@dataclass(frozen=True, slots=True)
class AppendToFolder:
    """An ``executor.PartitionFunction``: the rows of a table, one file for each partition, there when it is whole.
    ``batch`` names the files."""

    folder: Folder
    batch: str
    rows: EmittedRows

    def __call__(self, partition: int, batches: Iterator[Arrow]) -> bytes:
        file = f"{self.batch}-{partition:05}.parquet"
        return b"%d" % write_once(self.folder, file, self.rows.schema, self.rows(batches))


def write_once(folder: Folder, file: str, schema: Arrow, batches: Iterator[Arrow]) -> int:
    """Write batches to a Parquet file, which appears when it is complete, and return the number of its rows. An
    existing file stays as it is; without rows there is no file. Raises ``StateError`` if it cannot be written, or if
    the existing file is damaged."""
    if folder.exists(file):
        return _rows_in(folder, file)
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return 0
    place, slash, name = file.rpartition("/")
    draft = f"{place}{slash}.{name}-{uuid4().hex}.draft"
    try:
        count = _write(folder, draft, schema, chain((first,), batches))
        folder.sync(draft)
        folder.move(draft, file)
    except BaseException:
        folder.remove(draft)
        raise
    return count


def _write(folder: Folder, file: str, schema: Arrow, batches: Iterator[Arrow]) -> int:
    count = 0
    with folder.create(file) as stream, folder.written(), pq.ParquetWriter(stream, schema) as writer:
        for group in _groups(batches):
            writer.write_batch(group)
            count += group.num_rows
    return count


def _groups(batches: Iterator[Arrow]) -> Iterator[Arrow]:
    waiting: list[Arrow] = []
    waiting_bytes = 0
    for batch in batches:
        waiting.append(batch)
        waiting_bytes += batch.nbytes
        if waiting_bytes >= _GROUP_BYTES:
            yield combined(waiting)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield combined(waiting)


def _rows_in(folder: Folder, file: str) -> int:
    try:
        with folder.open_file(file) as opened:
            return int(pq.read_metadata(opened).num_rows)
    except pa.ArrowInvalid as error:
        raise StateError(
            f"an emitted file in {folder.shown} is not a Parquet file, or is damaged",
            where=file,
            why=str(error).splitlines()[0],
            hint="bring it back from a copy, or delete it if it is of this backfill; then emit the records again "
            "(--resume)",
        ) from None
