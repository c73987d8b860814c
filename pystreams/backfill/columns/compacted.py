"""The last value of each key of a changelog, on the disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pystreams.backfill.columns.store_columns import StoreRow
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.exchange.store_entries import StoreEntry, entries_of
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import shared_resources
from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64

#: Before the value of a versioned store: there is one, or none.
_VALUE, _DELETED = b"\x01", b"\x00"


class Compacted:
    """The last value of each key, on the disk, so that memory is bounded for any size of the changelog. With
    ``history_ms``, for a versioned store, it is the value with the greatest timestamp."""

    def __init__(self, database: RocksDatabase, history_ms: int | None) -> None:
        self._database = database
        self._table = database.tables["last"]
        self._history_ms = history_ms
        self._observed_ms = -1

    def add(self, rows: Arrow) -> None:
        """Rows of a changelog, in order."""
        entries = [entry for entry in entries_of(rows) if entry[0] is not None]
        changes = self._latest(entries) if self._history_ms is not None else _last(entries)
        if changes:
            self._database.write([(self._table, changes)])

    def _latest(self, entries: list[StoreEntry]) -> dict[bytes, bytes | None]:
        """Deletions are kept, so that late records are recognized as late."""
        assert self._history_ms is not None
        changes: dict[bytes, bytes | None] = {}
        for key, value, timestamp in entries:
            held = changes.get(key) or self._table.get(key)
            late = timestamp < self._observed_ms - self._history_ms
            if not late and (held is None or unpack_int64(held)[0] <= timestamp):
                changes[key] = pack_int64(timestamp) + (_DELETED if value is None else _VALUE + value)
            self._observed_ms = max(self._observed_ms, timestamp)
        return changes

    def entries(self) -> Iterator[StoreRow]:
        """Key, value, timestamp, sorted by key."""
        value_from = TIMESTAMP_BYTES + (0 if self._history_ms is None else len(_VALUE))
        for key, raw in self._table.scan(None, None, upper_inclusive=False, reverse=False):
            if self._history_ms is None or raw[TIMESTAMP_BYTES:] != _DELETED:
                yield key, raw[value_from:], int(unpack_int64(raw)[0])


def _last(entries: list[StoreEntry]) -> dict[bytes, bytes | None]:
    return {
        key: None if value is None else pack_int64(timestamp) + value for key, value, timestamp in entries
    }


@contextmanager
def compacted_in(folder: str | None, history_ms: int | None = None) -> Iterator[Compacted]:
    """A ``Compacted`` in a temporary folder in ``folder`` (None: the machine's)."""
    path = Path(tempfile.mkdtemp(prefix="pystreams-table-", dir=folder))
    try:
        with closing(RocksDatabase(path / "rocksdb", ["last"], shared_resources())) as database:
            yield Compacted(database, history_ms)
    finally:
        shutil.rmtree(path)
