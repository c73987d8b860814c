"""What a task's stores hold, in the format of their changelogs; and back.

A plain store does not keep the timestamp that its changelog has: ``ChangeTimes`` does, beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pystreams.record import Headers
from pystreams.state.formats import pack_int64, unpack_int64
from pystreams.state.resources import RocksResources, shared_resources
from pystreams.state.rocksdb import RocksDatabase
from pystreams.state.spec import TIMESTAMPED_KINDS, StoreSpec
from pystreams.state.store import LogChange, Store

#: Changelog key, value, timestamp.
Entry = tuple[bytes, bytes, int]

_DIRECTORY = "change-times"


class ChangeTimes:
    """The timestamp of the last change of each entry of a task's plain stores, in a database of its own."""

    def __init__(
        self, directory: Path, specs: Sequence[StoreSpec], resources: RocksResources | None = None
    ) -> None:
        plain = [spec.name for spec in specs if spec.kind not in TIMESTAMPED_KINDS]
        self._changes: dict[str, dict[bytes, bytes | None]] = {name: {} for name in plain}
        self._database = (
            RocksDatabase(directory / _DIRECTORY, plain, resources or shared_resources()) if plain else None
        )

    def log_change(self, store: str) -> LogChange:
        """What stands in for the changelog of a store."""
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
        """The timestamp of an entry's last change (ms), as of the last commit."""
        assert self._database is not None, "only plain stores are asked for"
        packed = self._database.tables[store].get(key)
        return 0 if packed is None else int(unpack_int64(packed)[0])

    def commit(self) -> None:
        """Write the changes since the last commit; keeps memory bounded."""
        if self._database is None:
            return
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


def entries(store: Store, times: ChangeTimes) -> Iterator[Entry]:
    """All entries of a store as its changelog has them; expired windows are left out. Commit before."""
    name = store.name
    return (
        (key, value, times.of(name, key) if timestamp is None else timestamp)
        for key, value, timestamp in store.logged()
    )


def _nothing(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
    """A timestamped store has the time of its changelog in its value."""
