"""A dictionary that can be walked in the order of its keys."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from sortedcontainers import SortedList

K = TypeVar("K")

#: Where more than one key of so many has changed, merging all in at once beats one by one.
_MERGED_SHARE = 8


class SortedKeys(Generic[K]):
    """What an iterable gives, such as the keys of a mapping, in order: kept only once somebody asks, so that who never
    looks pays one test per new key. From then on a key costs what a binary search does, however many there are.

    The owner calls ``added`` for each key that comes, ``removed`` for each that goes, ``clear`` when all have gone.
    """

    __slots__ = ("_keys", "_pending", "_source")

    def __init__(self, source: Iterable[K]) -> None:
        self._source = source
        self._keys: SortedList | None = None
        #: Keys that came (True) or went (False) since they were last put in order.
        self._pending: dict[Any, bool] = {}

    def added(self, key: K) -> None:
        """``key`` is in the mapping now and was not before."""
        if self._keys is not None and self._pending.pop(key, True):
            self._pending[key] = True

    def removed(self, key: K) -> None:
        """``key`` has left the mapping."""
        if self._keys is not None and not self._pending.pop(key, False):
            self._pending[key] = False

    def clear(self) -> None:
        """The mapping is empty, or quite another."""
        self._keys = None
        self._pending = {}

    def between(self, lower: K | None, upper: K | None, *, upper_inclusive: bool) -> list[Any]:
        """The keys from ``lower`` to ``upper``; None leaves an end open."""
        return list(self._ordered().irange(lower, upper, (True, upper_inclusive)))

    def walk(self, lower: K) -> Iterator[Any]:
        """The keys from ``lower`` on, one by one: who stops soon pays for no more. Nobody else may ask meanwhile."""
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
    """For each record key of a window store, its (start, sequence) in order; built when first asked for.

    ``split`` takes a key of the mapping apart into record key, window start and sequence number; None: not a window.
    """

    __slots__ = ("_source", "_split", "_times")

    def __init__(
        self, source: Mapping[Any, Any], split: Callable[[Any], tuple[bytes, int, int] | None]
    ) -> None:
        self._source = source
        self._split = split
        self._times: dict[bytes, list[tuple[int, int, Any]]] | None = None

    def added(self, physical: Any) -> None:
        """``physical`` is in the mapping now and was not before."""
        if self._times is not None:
            self._insert(self._times, physical)

    def removed(self, physical: Any) -> None:
        """``physical`` has left the mapping."""
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
        """The mapping is empty, or quite another."""
        self._times = None

    def _insert(self, times: dict[bytes, list[tuple[int, int, Any]]], physical: Any) -> None:
        found = self._split(physical)
        if found is None:
            return
        key, start, sequence = found
        insort(times.setdefault(key, []), (start, sequence, physical))

    def between(self, key: bytes, time_from: int, time_to: int) -> list[tuple[int, int, Any]]:
        """(start, sequence, key of the mapping) of the windows of ``key`` that start in a span, both ends included."""
        times = self._times
        if times is None:
            times = self._times = {}
            for physical in self._source:
                self._insert(times, physical)
        entries = times.get(key, [])
        return entries[bisect_left(entries, (time_from,)) : bisect_left(entries, (time_to + 1,))]
