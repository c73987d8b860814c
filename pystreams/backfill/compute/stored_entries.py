"""Converts the content of a task's stores to the format of their changelogs, and back.

A plain store does not keep the timestamps of its changelog; ``ChangeTimes`` keeps them beside the store. The versions
of a versioned store are converted one by one in the order of time, which is the order of the changelog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pystreams.backfill.exchange.store_entries import StoreEntry, by_time
from pystreams.record import Headers
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import RocksResources, shared_resources
from pystreams.state.formats import pack_int64, unpack_int64
from pystreams.state.spec import TIMED_KINDS, StoreSpec
from pystreams.state.store import LogChange, Store

_DIRECTORY = "change-times"
#: The number of timestamps that are kept in memory.
MEMORY_ENTRIES = 50_000


class ChangeTimes:
    """The timestamp of the last change of each entry of a task's plain stores: in memory as long as they are few, else
    in a database of its own."""

    def __init__(
        self, directory: Path, specs: Sequence[StoreSpec], resources: RocksResources | None = None
    ) -> None:
        self._directory = directory / _DIRECTORY
        self._resources = resources
        #: By store, the times that are not in the database.
        self._changes: dict[str, dict[bytes, bytes | None]] = {
            spec.name: {} for spec in specs if spec.kind not in TIMED_KINDS
        }
        self._database: RocksDatabase | None = None

    def log_of(self, store: str) -> LogChange:
        """The substitute for the changelog of a store."""
        changes = self._changes.get(store)
        if changes is None:
            return _nothing

        def log_change(key: bytes, value: bytes | None, timestamp: int | None, _: Headers) -> None:
            changes[key] = None if value is None or timestamp is None else pack_int64(timestamp)

        return log_change

    def restore(self, store: str, entries: Iterable[tuple[bytes, int]]) -> None:
        """Take over (changelog key, timestamp) from an earlier visit."""
        changes = self._changes.get(store)
        if changes is not None:
            changes.update((key, pack_int64(timestamp)) for key, timestamp in entries)
            self.commit()

    def of(self, store: str, key: bytes) -> int:
        """The timestamp of an entry's last change (ms); 0: it has none."""
        changes = self._changes[store]
        if key in changes:
            packed = changes[key]
        else:
            packed = None if self._database is None else self._database.tables[store].get(key)
        return 0 if packed is None else int(unpack_int64(packed)[0])

    def commit(self) -> None:
        """Write the times that do not fit into memory to the disk."""
        if self._database is None:
            if sum(map(len, self._changes.values())) <= MEMORY_ENTRIES:
                return
            resources = self._resources or shared_resources()
            self._database = RocksDatabase(self._directory, self._changes, resources)
        written = [
            (self._database.tables[name], changes) for name, changes in self._changes.items() if changes
        ]
        if written:
            self._database.write(written)
        for changes in self._changes.values():
            changes.clear()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()


def entries(store: Store, times: ChangeTimes, folder: Path) -> Iterator[StoreEntry]:
    """All entries of a store as its changelog has them; expired windows are left out. Commit before. ``folder`` is for
    temporary files."""
    name = store.name
    found = (
        (key, value, times.of(name, key) if timestamp is None else timestamp)
        for key, value, timestamp in store.logged()
    )
    return by_time(found, folder) if store.spec.kind == "versioned" else found


def _nothing(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
    """The store itself has the times of its changelog."""
