"""A dictionary whose keys can be read in order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from sortedcontainers import SortedList

K = TypeVar("K")

#: If more than one of this many keys has changed, merging all changes at once is faster than one by one.
_MERGED_SHARE = 8


class SortedKeys(Generic[K]):
    """The elements of an iterable, such as the keys of a mapping, in order. The order is built at the first read, so
    that without reads a new key costs only one test. From then on a key costs a binary search.

    The owner calls ``added`` for each new key, ``removed`` for each removed one, ``clear`` when all are removed.
    """

    __slots__ = ("_keys", "_pending", "_source")

    def __init__(self, source: Iterable[K]) -> None:
        self._source = source
        self._keys: SortedList | None = None
        #: Keys that were added (True) or removed (False) since the order was last updated.
        self._pending: dict[Any, bool] = {}

    def added(self, key: K) -> None:
        """Called when ``key`` was added to the mapping."""
        if self._keys is not None and self._pending.pop(key, True):
            self._pending[key] = True

    def removed(self, key: K) -> None:
        """Called when ``key`` was removed from the mapping."""
        if self._keys is not None and not self._pending.pop(key, False):
            self._pending[key] = False

    def clear(self) -> None:
        """Called when the mapping was emptied or replaced."""
        self._keys = None
        self._pending = {}

    def between(self, lower: K | None, upper: K | None, *, upper_inclusive: bool) -> list[Any]:
        """The keys from ``lower`` to ``upper``; None leaves an end open."""
        return list(self._ordered().irange(lower, upper, (True, upper_inclusive)))

    def walk(self, lower: K) -> Iterator[Any]:
        """The keys from ``lower`` on, one by one, for readers that stop early. No other read is allowed meanwhile."""
        keys: Iterator[Any] = self._ordered().irange(lower)
        return keys

    def _ordered(self) -> SortedList:
        keys, pending = self._keys, self._pending
        if keys is None:
            keys = self._keys = SortedList(self._source)
        elif len(pending) > len(keys) // _MERGED_SHARE:
            left = [key for key in keys if key not in pending]
            left.extend(sorted(key for key, present in pending.items() if present))
            keys = self._keys = SortedList(left)
            self._pending = {}
        elif pending:
            for key, present in pending.items():
                if present:
                    keys.add(key)
                else:
                    keys.remove(key)
            self._pending = {}
        return keys


class TimesByKey:
    """For each record key of a window store, its (start, sequence) in order; built at the first read.

    ``split`` splits a key of the mapping into record key, window start and sequence number; None: not a window.
    """

    __slots__ = ("_source", "_split", "_times")

    def __init__(
        self, source: Mapping[Any, Any], split: Callable[[Any], tuple[bytes, int, int] | None]
    ) -> None:
        self._source = source
        self._split = split
        self._times: dict[bytes, list[tuple[int, int, Any]]] | None = None

    def added(self, physical: Any) -> None:
        """Called when ``physical`` was added to the mapping."""
        if self._times is not None:
            self._insert(self._times, physical)

    def removed(self, physical: Any) -> None:
        """Called when ``physical`` was removed from the mapping."""
        if self._times is not None:
            found = self._split(physical)
            if found is None:
                return
            key, start, sequence = found
            times = self._times[key]
            del times[bisect_left(times, (start, sequence))]
            if not times:
                del self._times[key]

    def clear(self) -> None:
        """Called when the mapping was emptied or replaced."""
        self._times = None

    def _insert(self, times: dict[bytes, list[tuple[int, int, Any]]], physical: Any) -> None:
        found = self._split(physical)
        if found is None:
            return
        key, start, sequence = found
        insort(times.setdefault(key, []), (start, sequence, physical))

    def between(self, key: bytes, time_from: int, time_to: int) -> list[tuple[int, int, Any]]:
        """(start, sequence, key of the mapping) of the windows of ``key`` that start in a span, both inclusive."""
        times = self._times
        if times is None:
            times = self._times = {}
            for physical in self._source:
                self._insert(times, physical)
        entries = times.get(key, [])
        return entries[bisect_left(entries, (time_from,)) : bisect_left(entries, (time_to + 1,))]
