"""Bytes by key: in memory while they are few, else on the disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pystreams.state.disk.rocksdb import RocksDatabase, RocksTable
from pystreams.state.disk.rocksdb_memory import shared_resources

#: The memory that Python needs for an entry beside its bytes.
_ENTRY_BYTES: Final = 200
_TABLE: Final = "entries"


class BoundedMap:
    """Memory is bounded by ``memory_bytes``. Larger content goes to a temporary folder in ``parent`` (None: the
    machine's)."""

    def __init__(self, parent: str | None, memory_bytes: int) -> None:
        self._parent = parent
        self._memory_bytes = memory_bytes
        self._memory: dict[bytes, bytes] = {}
        self._size = 0
        self._folder: Path | None = None
        self._database: RocksDatabase | None = None
        self._table: RocksTable | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: bytes) -> bytes | None:
        return self._memory.get(key) if self._table is None else self._table.get(key)

    def update(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Set a value; None deletes it."""
        if self._database is not None and self._table is not None:
            self._database.write([(self._table, changes)])
            return
        for key, value in changes.items():
            old = self._memory.pop(key, None)
            if old is not None:
                self._size -= _ENTRY_BYTES + len(key) + len(old)
            if value is not None:
                self._memory[key] = value
                self._size += _ENTRY_BYTES + len(key) + len(value)
        if self._size > self._memory_bytes:
            self._go_to_disk()

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values, sorted by key."""
        if self._table is None:
            yield from sorted(self._memory.items())
            return
        yield from self._table.scan(None, None, upper_inclusive=False, reverse=False)

    def __iter__(self) -> Iterator[bytes]:
        """The keys, sorted."""
        return (key for key, _ in self.items())

    def close(self) -> None:
        database, self._database, self._table = self._database, None, None
        if database is not None:
            database.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _go_to_disk(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pystreams-changelog-", dir=self._parent))
        self._database = RocksDatabase(self._folder / "rocksdb", [_TABLE], shared_resources())
        self._table = self._database.tables[_TABLE]
        self._database.write([(self._table, self._memory)])
        self._memory = {}
