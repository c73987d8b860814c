"""The cache of a window store on disk that is read in the order of time and keeps headers.

In Kafka Streams such a store has an index by key, whose entries are cached, too: each window has two entries in the
cache, and either may be evicted first. A flush forwards the window once. Source: TimeOrderedCachingWindowStore,
RocksDbIndexedTimeOrderedWindowBytesStoreSupplier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pystreams.record import RecordContext
from pystreams.state.cache.thread_cache import ENTRY_OVERHEAD_BYTES, DirtyEntry
from pystreams.state.cache.window_cache import ByTime, TimeOrderedWindowCache, Window
from pystreams.state.sorted_map import SortedKeys, TimesByKey
from pystreams.state.window_reads import WindowRead, place_by_key

#: Follows a window's key and start in the key of its index entry.
_INDEX: Final = True
#: The value of an index entry.
_EMPTY: Final = b""


class _Windows:
    """The keys of a cache without index entries."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[Any]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        return (key for key in self._entries if not is_index(key))


def is_index(key: Any) -> bool:
    """Whether a key of a window store's cache is that of an index entry."""
    return len(key) > 2


def _split(key: Any) -> tuple[bytes, int, int] | None:
    return None if is_index(key) else (key[0], key[1], 0)


class IndexedWindowCache(TimeOrderedWindowCache):
    """Windows by (key, start), their index entries by (key, start, True)."""

    __slots__ = ()

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.times = TimesByKey(self.entries, _split)
        self.by_time = SortedKeys(ByTime(_Windows(self.entries)))

    def put(self, key: Any, item: Any, context: RecordContext, size: int, *, dirty: bool) -> None:
        super().put(key, item, context, size, dirty=dirty)
        index_bytes = ENTRY_OVERHEAD_BYTES + self.address_bytes + len(key[0])
        without_source = ("", *context[1:4], ())
        super().put((*key, _INDEX), _EMPTY, without_source, index_bytes, dirty=dirty)

    def read_windows(self, read: WindowRead, interval_ms: int) -> Iterator[tuple[Window, Any]]:
        if read.of == "all":
            return super().read_windows(read, interval_ms)
        return self._by_index(read, self._walk_index(read, interval_ms))

    def _by_index(self, read: WindowRead, windows: list[Window]) -> Iterator[tuple[Window, Any]]:
        """Each index entry becomes recently used, then the window itself."""
        for window in windows:
            entry = self.get(window) if self.get((*window, _INDEX)) is not None else self._get(window)
            if read.wants(window):
                yield window, self.from_store(window) if entry is None else entry.item

    def _walk_index(self, read: WindowRead, interval_ms: int) -> list[Window]:
        first, last = read.segments(interval_ms, self._newest_ms)
        lower, upper = read.lower, read.upper
        found = []
        for key in self.entries:
            segment = key[1] // interval_ms
            if not is_index(key) or not first <= segment <= last:
                continue
            window = key[:2]
            if read.single:
                floor, ceiling = read.times_in(segment, interval_ms, self._newest_ms)
                passes = window[0] == read.key_from and floor <= window[1] <= ceiling
            else:
                place = place_by_key(window)
                passes = (lower is None or place >= lower) and (upper is None or place <= upper)
            if passes:
                found.append((segment, place_by_key(window), window))
        found.sort(reverse=read.reverse)
        return [window for _, _, window in found]

    def added(self, key: Any) -> None:
        if not is_index(key):
            super().added(key)

    def removed(self, key: Any) -> None:
        if not is_index(key):
            super().removed(key)

    def handed_on(self, batch: list[DirtyEntry]) -> list[DirtyEntry]:
        """Each window once, at the place where it or its index entry comes first; without windows that were evicted,
        and thereby flushed, before."""
        windows: dict[tuple[bytes, int], DirtyEntry] = {}
        for key, item, context in batch:
            window = key[:2]
            if window in windows:
                continue
            if not is_index(key):
                windows[window] = key, item, context
            elif (entry := self.get(window)) is not None:
                windows[window] = window, entry.item, entry.context
        return list(windows.values())
