"""A store's writes since the last commit, over the table with the committed entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pystreams.errors import StateError
from pystreams.state.iterators import override
from pystreams.state.sorted_map import SortedKeys, TimesByKey
from pystreams.state.table import MemoryTable, Split, Table

#: Stands for "no change of this key", where None stands for "deleted".
UNCHANGED: Any = object()

#: Memory per entry in addition to key and value: two objects and a slot of a dictionary.
ENTRY_COST_BYTES = 150


class Overlay:
    """Reads see the changes first, then the table. A commit writes the changes to the table, an abort drops them."""

    __slots__ = ("_keys", "_split", "_times", "changes", "size_bytes", "table")

    def __init__(self, table: Table, split: Split | None = None) -> None:
        self.table = table
        self.changes: dict[Any, bytes | None] = {}
        self.size_bytes = 0
        self._split = split
        self._keys: SortedKeys[Any] = SortedKeys(self.changes)
        self._times = TimesByKey(self.changes, split) if split else None

    def get(self, key: Any) -> bytes | None:
        """The current value, None if there is none."""
        value: bytes | None = self.changes.get(key, UNCHANGED)
        if value is not UNCHANGED:
            return value
        try:
            return self.table.get(key)
        except Exception as error:  # noqa: BLE001 - the table knows what its client raises
            self.table.refuse(error)

    def put(self, key: Any, value: bytes | None) -> None:
        """Set a value; None deletes."""
        changes = self.changes
        before = changes.get(key, UNCHANGED)
        if before is UNCHANGED:
            changes[key] = value
            self._keys.added(key)
            if self._times:
                self._times.added(key)
            self.size_bytes += ENTRY_COST_BYTES + (len(key) if value is None else len(key) + len(value))
        else:
            changes[key] = value
            self.size_bytes += (len(value) if value else 0) - (len(before) if before else 0)

    def clear(self) -> None:
        """Drop the changes: they have been committed, or are aborted."""
        self.changes.clear()
        self.size_bytes = 0
        self._keys.clear()
        if self._times:
            self._times.clear()

    def approximate_count(self) -> int:
        """Roughly the number of entries: a changed key counts as a new one if the table's number is only an
        estimate."""
        changes, table = self.changes, self.table
        count = table.approximate_count()
        if isinstance(table, MemoryTable):
            for key, value in changes.items():
                count += (value is not None) - (table.get(key) is not None)
            return count
        return count + sum(1 if value is not None else -1 for value in changes.values())

    def scan(
        self, lower: Any, upper: Any, *, upper_inclusive: bool = True, reverse: bool = False
    ) -> Iterator[tuple[Any, bytes]]:
        """(key, value) in order, as of the call. None leaves an end open."""
        changes = self.changes
        stored = self.table.scan(lower, upper, upper_inclusive=upper_inclusive, reverse=reverse)
        if not changes:
            return stored
        keys = self._keys.between(lower, upper, upper_inclusive=upper_inclusive)
        if not keys:
            return stored
        if reverse:
            keys.reverse()
        return override([(key, changes[key]) for key in keys], stored, reverse=reverse)

    def walk(self, lower: Any) -> Iterator[tuple[Any, bytes]]:
        """(key, value) in order from a key on, for readers that stop early: unlike ``scan``, it reads no entries in
        advance. Until it ends, no other ordered read is allowed, and only entries that it has passed may change."""
        changes = self.changes
        stored = self.table.walk(lower)
        if not changes:
            return stored
        return override(((key, changes[key]) for key in self._keys.walk(lower)), stored, reverse=False)

    def windows(
        self, key: bytes, lower: Any, upper: Any, span: tuple[int, int], *, reverse: bool
    ) -> Iterator[tuple[Any, bytes]]:
        """Entries of window stores, as ``Table.windows``."""
        changes = self.changes
        stored = self.table.windows(key, lower, upper, span, reverse=reverse)
        if not changes or self._times is None:
            return stored
        found = [(physical, changes[physical]) for _, _, physical in self._times.between(key, *span)]
        if not found:
            return stored
        if reverse:
            found.reverse()
        return override(found, stored, reverse=reverse)


class ReadOnlyOverlay(Overlay):
    """The overlay of a store that is only read: it never has changes."""

    __slots__ = ("_store",)

    def __init__(self, store: str, table: Table, split: Split | None = None) -> None:
        super().__init__(table, split)
        self._store = store

    def put(self, key: Any, value: bytes | None) -> None:
        raise StateError(
            f"store {self._store} can only be read here",
            why="queries see the last commit of its task, which alone writes it",
            hint="write to an input topic of the application instead",
        )
