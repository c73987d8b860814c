"""Caches of window stores."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from pystreams.state.formats import WINDOW_SUFFIX_BYTES
from pystreams.state.item_cache import ItemCache
from pystreams.state.sorted_map import SortedKeys, TimesByKey


def _split_cache_key(key: tuple[bytes, int]) -> tuple[bytes, int, int]:
    return key[0], key[1], 0


class ByTime:
    """The windows in a cache as (start, key), which sorts as Kafka Streams' store in memory does."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[bytes, int]]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return ((start, key) for key, start in self._entries)


class WindowCache(ItemCache):
    """The cache of a window store, by (key, window start). Unlike a key-value store's it holds only what was written:
    what is read from below is not kept. Source: CachingWindowStore."""

    #: The segment is before the store's key (SegmentedCacheFunction).
    address_bytes = 8 + WINDOW_SUFFIX_BYTES

    __slots__ = ("by_time", "times")

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.times = TimesByKey(self.entries, _split_cache_key)
        self.by_time: SortedKeys[tuple[int, bytes]] = SortedKeys(ByTime(self.entries))

    def read_window(self, key: bytes, start: int) -> Any:
        """``read``, written out: the call would add 5 % to a windowed aggregation."""
        window = (key, start)
        entry = self._get(window)
        if entry is None:
            return self._load(window)
        self._touch(window)
        return entry.item

    def added(self, key: Any) -> None:
        self.times.added(key)
        self.by_time.added((key[1], key[0]))

    def removed(self, key: Any) -> None:
        self.times.removed(key)
        self.by_time.removed((key[1], key[0]))

    def clear(self) -> None:
        super().clear()
        self.times.clear()
        self.by_time.clear()


class TimeOrderedWindowCache(WindowCache):
    """The cache of a window store that is also read in the order of time. Source: TimeOrderedCachingWindowStore."""

    #: A byte stands before the store's key.
    address_bytes = WindowCache.address_bytes + 1

    __slots__ = ()

    def of_span(self, time_from: int, time_to: int, interval_ms: int) -> list[tuple[bytes, int]]:
        """The windows that start in a span of time, by start and key, and the one behind them, if it is in the last
        one's segment: Java's iterator looks at it, too."""
        times = self.by_time.ordered()
        first = bisect_left(times, (time_from, b""))
        behind = bisect_left(times, (time_to + 1, b""), first)
        if behind < len(times) and times[behind][0] // interval_ms == time_to // interval_ms:
            behind += 1
        return [(key, start) for start, key in times[first:behind]]
