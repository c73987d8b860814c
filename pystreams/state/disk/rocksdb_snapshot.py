"""A store on disk as it was at one moment, for readers in other threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from pystreams.errors import StateError
from pystreams.state.disk.rocksdb import RocksTable

#: The message of rocksdict for a key that a snapshot does not have.
_NOT_FOUND: Final = "key not found"
#: How many entries a scan reads at once: few at first, because many scans end early.
_FEW, _MANY = 16, 1_024


class RocksSnapshot:
    """A table as of the time of creation, unaffected by later writes. Create it while nothing writes. Any number of
    threads may read it. It keeps the database open, and thereby locked, until it is closed.

    Single keys are read from a snapshot of RocksDB. Iterators over such a snapshot would show the present state
    (rocksdict 0.3 ignores the snapshot there), but an iterator over the table shows it as of the iterator's creation.
    So there is one iterator over the table, which all scans share.
    """

    def __init__(self, table: RocksTable) -> None:
        self.name = table.name
        self._table = table
        self._snapshot: Any = table.family.snapshot()
        self._cursor: Any = table.family.iter()
        self._mutex = threading.Lock()

    def get(self, key: bytes) -> bytes | None:
        try:
            value: bytes = self._snapshot[key]
        except Exception as error:
            if str(error) != _NOT_FOUND:
                raise
            return None
        return value

    def refuse(self, error: Exception) -> NoReturn:
        """Raise the error for a failed read."""
        self._table.refuse(error)

    def scan(
        self, lower: bytes | None, upper: bytes | None, *, upper_inclusive: bool, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        entries = self._between(upper, lower, reverse=True) if reverse else self._between(lower, upper)
        return entries if upper_inclusive else (entry for entry in entries if entry[0] != upper)

    def walk(self, lower: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._between(lower, None)

    def windows(
        self, key: bytes, lower: bytes, upper: bytes, span: tuple[int, int], *, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        return self.scan(lower, upper, upper_inclusive=True, reverse=reverse)

    def approximate_count(self) -> int:
        """Roughly the present number of entries, because RocksDB cannot estimate it for a snapshot."""
        return self._table.approximate_count()

    def _between(
        self, first: bytes | None, last: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries from the first to the last key in the direction of the scan, both included."""
        count, begun = _FEW, False
        while True:
            some = self._some(first, last, count, begun=begun, reverse=reverse)
            yield from some
            if len(some) < count:
                return
            first, count, begun = some[-1][0], _MANY, True

    def _some(
        self, first: bytes | None, last: bytes | None, count: int, *, begun: bool, reverse: bool
    ) -> list[tuple[bytes, bytes]]:
        """The next entries of a scan; ``begun``: behind the first key."""
        found: list[tuple[bytes, bytes]] = []
        with self._mutex:
            cursor = self._cursor
            if cursor is None:
                raise StateError(f"store {self.name} is closed")
            go_on = cursor.prev if reverse else cursor.next
            try:
                _seek(cursor, first, reverse=reverse)
                if begun and cursor.valid() and cursor.key() == first:
                    go_on()
                while len(found) < count and cursor.valid():
                    key = cursor.key()
                    if last is not None and (key < last if reverse else key > last):
                        return found
                    found.append((key, cursor.value()))
                    go_on()
                if not cursor.valid():
                    # An iterator ends at a damaged block as if it were the end of the table, so check its status.
                    cursor.status()
            except Exception as error:  # noqa: BLE001 rocksdict raises nothing more precise
                self.refuse(error)
        return found

    def close(self) -> None:
        """Release the database. The snapshot must not be read any more."""
        with self._mutex:
            self._snapshot = self._cursor = None


def _seek(cursor: Any, key: bytes | None, *, reverse: bool) -> None:
    if key is None:
        cursor.seek_to_last() if reverse else cursor.seek_to_first()
    elif reverse:
        cursor.seek_for_prev(key)
    else:
        cursor.seek(key)
