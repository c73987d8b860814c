"""The committed entries of a store: the interface, and the table in memory. rocksdb.py has the persistent one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, Protocol

from pystreams.errors import StateError
from pystreams.state.sorted_map import SortedKeys, TimesByKey

#: Splits a physical key of a window store into record key, window start, sequence number; of a session store into
#: record key, end, and the sort key among equal ends. None: the key belongs to an index.
Split = Callable[[Any], "tuple[bytes, int, int] | None"]


class Table(Protocol):
    """Committed entries of one store, by physical key: bytes, or, for window stores in memory, a tuple that sorts as in
    Kafka Streams' in-memory window store. Only a commit or a restore changes it."""

    def get(self, key: Any) -> bytes | None:
        """The value, None if there is none."""
        ...

    def refuse(self, error: Exception) -> NoReturn:
        """Raise the error for an exception of ``get``."""
        ...

    def scan(
        self, lower: Any, upper: Any, *, upper_inclusive: bool, reverse: bool
    ) -> Iterator[tuple[Any, bytes]]:
        """(key, value) in order, as of the call, unaffected by later writes. None leaves an end open."""
        ...

    def walk(self, lower: Any) -> Iterator[tuple[Any, bytes]]:
        """(key, value) from a key on, for readers that stop before the table changes or is read again."""
        ...

    def windows(
        self, key: bytes, lower: Any, upper: Any, span: tuple[int, int], *, reverse: bool
    ) -> Iterator[tuple[Any, bytes]]:
        """Entries of window stores between two physical keys: all of record key ``key`` whose window start is in
        ``span`` (both inclusive), and perhaps others."""
        ...

    def approximate_count(self) -> int:
        """Roughly how many entries there are."""
        ...


class MemoryTable:
    """A table in a dictionary, which may be that of another table. ``split`` is given for window stores."""

    __slots__ = ("_data", "_keys", "_split", "_times", "_view", "get")

    def __init__(self, split: Split | None = None, data: dict[Any, bytes] | None = None) -> None:
        self._data: dict[Any, bytes] = {} if data is None else data
        self._keys: SortedKeys[Any] = SortedKeys(self._data)
        self._split = split
        self._times = TimesByKey(self._data, split) if split else None
        self._view: MemoryTable | None = None
        self.get: Callable[[Any], bytes | None] = self._data.get

    @property
    def entries(self) -> dict[Any, bytes]:
        """The dictionary of all entries, not a copy."""
        return self._data

    def refuse(self, error: Exception) -> NoReturn:
        raise error

    def view(self) -> MemoryTable:
        """A table with the same entries for readers in other threads. It has its own order of keys, because a read may
        build or update this order. It must not be read while ``apply`` or ``close`` runs."""
        if self._view is None:
            self._view = MemoryTable(self._split, self._data)
        return self._view

    def _will_change(self, changes: Mapping[Any, bytes | None]) -> None:
        """Prepare for these entries, which another table is about to write to the common dictionary."""
        data, keys, times = self._data, self._keys, self._times
        for key, value in changes.items():
            if (key in data) is (value is not None):
                continue
            if value is None:
                keys.removed(key)
                if times:
                    times.removed(key)
            else:
                keys.added(key)
                if times:
                    times.added(key)

    def apply(self, changes: Mapping[Any, bytes | None]) -> None:
        """Write entries; None deletes."""
        if self._view is not None:
            self._view._will_change(changes)
        data, keys, times = self._data, self._keys, self._times
        for key, value in changes.items():
            if value is None:
                if data.pop(key, None) is not None:
                    keys.removed(key)
                    if times:
                        times.removed(key)
            else:
                if key not in data:
                    keys.added(key)
                    if times:
                        times.added(key)
                data[key] = value

    def delete_below(self, upper: Any) -> None:
        """Delete every key that sorts before ``upper``."""
        expired = self._keys.between(None, upper, upper_inclusive=False)
        self.apply(dict.fromkeys(expired))

    def scan(
        self, lower: Any, upper: Any, *, upper_inclusive: bool, reverse: bool
    ) -> Iterator[tuple[Any, bytes]]:
        data = self._data
        keys = self._keys.between(lower, upper, upper_inclusive=upper_inclusive)
        if reverse:
            keys.reverse()
        return iter([(key, data[key]) for key in keys])

    def walk(self, lower: Any) -> Iterator[tuple[Any, bytes]]:
        data = self._data
        return ((key, data[key]) for key in self._keys.walk(lower))

    def windows(
        self, key: bytes, lower: Any, upper: Any, span: tuple[int, int], *, reverse: bool
    ) -> Iterator[tuple[Any, bytes]]:
        assert self._times is not None, "only window stores are read by key and time"
        data = self._data
        found = [(physical, data[physical]) for _, _, physical in self._times.between(key, *span)]
        if reverse:
            found.reverse()
        return iter(found)

    def approximate_count(self) -> int:
        return len(self._data)

    def close(self, store: str) -> None:
        """Release all entries; the dictionary that ``entries`` has returned keeps them. A later ``get`` raises
        ``StateError``."""
        self._data = {}
        self._keys = SortedKeys(self._data)
        self._times = TimesByKey(self._data, self._split) if self._split else None
        self._view = None

        def closed(_: Any) -> bytes | None:
            raise StateError(f"store {store} is closed")

        self.get = closed
