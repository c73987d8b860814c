"""A file for rows that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from pystreams.backfill.exchange.rows import EXCHANGE_SCHEMA, Arrow

#: They are read again in batches of about this size.
_BATCH_BYTES = 1024 * 1024


class Spill:
    """Batches of ``EXCHANGE_SCHEMA``, first in, first out, in a file that exists only while it holds batches."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Arrow | None = None

    def add(self, rows: Arrow) -> None:
        """Raises ``OSError`` if the disk is full."""
        if self._writer is None:
            self._writer = pa.ipc.new_stream(str(self._path), EXCHANGE_SCHEMA)
        step = max(1, rows.num_rows * _BATCH_BYTES // max(1, rows.nbytes))
        for start in range(0, rows.num_rows, step):
            self._writer.write_batch(rows.slice(start, step))

    def take(self) -> Iterator[Arrow]:
        """All batches, which are removed."""
        if self._writer is None:
            return
        self.close()
        with pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as batches:
            yield from batches
        self._path.unlink()

    def close(self) -> None:
        """Close the file without deleting it."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None
