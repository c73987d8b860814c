"""Records for sinks as Parquet files: an archive, which a ``ParquetSource`` reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.archive.pieces import FILE_SCHEMA
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.folder import Folder, hive_folder


@dataclass(frozen=True, slots=True)
class EmitToFolder:
    """An ``executor.PartitionFunction`` once it has a topic: one file for each partition, there when it is whole."""

    folder: Folder
    backfill_id: str
    topic: str = ""

    def to(self, topic: str) -> EmitToFolder:
        return replace(self, topic=topic)

    def __call__(self, partition: int, batches: Iterator[Arrow]) -> bytes:
        place = hive_folder(topic=self.topic, partition=partition)
        target = f"{place}/{self.backfill_id}.parquet"
        if self.folder.exists(target):
            return str(self._rows_in(target)).encode()
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return b"0"
        # The offsets continue after the records that other backfills have emitted.
        others = [name for name in self.folder.names(place) if name.endswith(".parquet")]
        offset = sum(self._rows_in(f"{place}/{name}") for name in others)
        draft = f"{place}/.{self.backfill_id}-{uuid4().hex}.draft"
        try:
            count = self._write(draft, offset, chain((first,), batches))
            self.folder.move(draft, target)
        except BaseException:
            self.folder.remove(draft)
            raise
        return str(count).encode()

    def _write(self, file: str, offset: int, batches: Iterator[Arrow]) -> int:
        count = 0
        with (
            self.folder.create(file) as stream,
            self.folder.written(),
            pq.ParquetWriter(stream, FILE_SCHEMA) as writer,
        ):
            for batch in batches:
                size = batch.num_rows
                start = offset + count
                columns = [
                    pa.array(range(start, start + size), pa.int64()),
                    *(batch.column(name) for name in ("timestamp", "key", "value", "headers")),
                ]
                writer.write_batch(pa.record_batch(columns, schema=FILE_SCHEMA))
                count += size
        return count

    def _rows_in(self, file: str) -> int:
        with self.folder.open_file(file) as opened:
            return int(pq.read_metadata(opened).num_rows)
