"""Caches of window stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pystreams.state.cache.item_cache import ItemCache
from pystreams.state.formats import WINDOW_SUFFIX_BYTES
from pystreams.state.sorted_map import SortedKeys, TimesByKey
from pystreams.state.window_reads import SEQUENCE_END, WindowRead, place_by_key, place_by_time

Window = tuple[bytes, int]


def _split_cache_key(key: Window) -> tuple[bytes, int, int]:
    return key[0], key[1], 0


class ByTime:
    """The windows in a cache as (start, key), sorted as in Kafka Streams' in-memory store."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[Window]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return ((start, key) for key, start in self._entries)


class WindowCache(ItemCache):
    """The cache of a window store, by (key, window start). Unlike a key-value store's cache it contains only written
    entries: entries read from the store below are not cached. Source: CachingWindowStore."""

    #: The segment before the store's key (SegmentedCacheFunction) counts.
    address_bytes = 8 + WINDOW_SUFFIX_BYTES

    __slots__ = ("_newest_ms", "by_time", "times")

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.times = TimesByKey(self.entries, _split_cache_key)
        self.by_time: SortedKeys[tuple[int, bytes]] = SortedKeys(ByTime(self.entries))
        #: The latest window start ever cached.
        self._newest_ms = -1

    def read_window(self, key: bytes, start: int) -> Any:
        """As ``read``, but repeats its code: a call would cost a windowed aggregation 5 %."""
        window = (key, start)
        entry = self._get(window)
        if entry is None:
            return self._load(window)
        self._touch(window)
        return entry.item

    def read_windows(self, read: WindowRead, interval_ms: int) -> Iterator[tuple[Window, Any]]:
        """((key, start), item) of the wanted windows, read one by one. All windows that the walk passes become recently
        used. ``interval_ms``: the length of a segment of the store, 1 in memory."""
        # Repeats the code of ``walk_over``, because a walk may be long.
        get, touch, from_store = self._get, self._touch, self.from_store
        key_from, key_to, time_from, time_to, *_ = read
        for window in self.walk(read, interval_ms):
            entry = get(window)
            if entry is None:
                item = from_store(window)
            else:
                touch(window)
                item = entry.item
            key, start = window
            if (
                time_from <= start <= time_to
                and (key_from is None or key >= key_from)
                and (key_to is None or key <= key_to)
            ):
                yield window, item

    def walk(self, read: WindowRead, interval_ms: int) -> list[Window]:
        """The windows that Kafka Streams passes in its walk, in its order."""
        if read.of == "all":
            windows = self._of_all(interval_ms)
        elif read.single and (interval_ms > 1 or read.of == "key"):
            windows = self._of_key(read, interval_ms)
        else:
            windows = self._of_range(read, interval_ms)
        if read.reverse:
            windows.reverse()
        return windows

    def _of_all(self, interval_ms: int) -> list[Window]:
        if interval_ms > 1:
            return sorted(self.entries, key=lambda window: (window[1] // interval_ms, place_by_key(window)))
        # In the order of the in-memory store, which compares only keys. Java's cache also compares the bytes that
        # follow them, so its order differs if one key is a prefix of another; merging the two would give windows twice.
        return [(key, start) for start, key in self.by_time.between(None, None, upper_inclusive=True)]

    def _of_key(self, read: WindowRead, interval_ms: int) -> list[Window]:
        key = read.key_from
        assert key is not None
        if interval_ms > 1:
            first = read.time_from
            if read.reverse:
                # To the start of its segment.
                first = read.segments(interval_ms, self._newest_ms)[0] * interval_ms
            return [window for _, _, window in self.times.between(key, first, read.time_to)]
        times = self.by_time.between((read.time_from, key), (read.time_to, key), upper_inclusive=True)
        return [(other, start) for start, other in times]

    def _of_range(self, read: WindowRead, interval_ms: int) -> list[Window]:
        if interval_ms == 1:
            return self._of_times(read)
        lower, upper = read.lower, read.upper
        first, last = read.segments(interval_ms, self._newest_ms)
        if lower is not None and upper is not None:
            return self._of_keys(read, lower, upper, interval_ms)
        # With an open end, all between the two ends, in any segment.
        found = []
        for start, key in self.by_time.between(
            None if lower is None else (first * interval_ms, b""),
            None if upper is None else ((last + 1) * interval_ms, b""),
            upper_inclusive=False,
        ):
            place = (start // interval_ms, place_by_key((key, start)))
            if (lower is None or place >= (first, lower)) and (
                upper is None or place <= (last, upper) or read.wants((key, start))
            ):
                found.append((place, (key, start)))
        found.sort()
        return [window for _, window in found]

    def _of_keys(self, read: WindowRead, lower: bytes, upper: bytes, interval_ms: int) -> list[Window]:
        """The windows between two places of each segment."""
        first, last = read.segments(interval_ms, self._newest_ms)
        key_from, key_to, kept = read.key_from or b"", read.key_to or b"", upper[:-WINDOW_SUFFIX_BYTES]
        times = self.by_time.between(
            (first * interval_ms, b""), ((last + 1) * interval_ms, b""), upper_inclusive=False
        )
        found = [
            (start // interval_ms, place_by_key((key, start)), (key, start))
            for start, key in times
            # Most keys are far from the range: this comparison is all that they cost.
            if (key >= key_from or key_from.startswith(key)) and (key <= key_to or key.startswith(kept))
        ]
        found.sort()
        return [
            window for _, place, window in found if lower <= place and (place <= upper or read.wants(window))
        ]

    def _of_times(self, read: WindowRead) -> list[Window]:
        """In memory: all windows from the first key at the earliest time to the last key at the end of the span."""
        lower, upper, time_to = read.lower, read.upper, read.time_to
        return [
            (key, start)
            for start, key in self.by_time.between(
                None if lower is None else (0, b""),
                None if upper is None else (time_to + 1, b""),
                upper_inclusive=False,
            )
            if (lower is None or start or place_by_key((key, start)) >= lower)
            and (
                upper is None
                or start != time_to
                or place_by_key((key, start)) <= upper
                or read.wants((key, start))
            )
        ]

    def added(self, key: Any) -> None:
        start = key[1]
        self._newest_ms = max(self._newest_ms, start)
        self.times.added(key)
        self.by_time.added((start, key[0]))

    def removed(self, key: Any) -> None:
        self.times.removed(key)
        self.by_time.removed((key[1], key[0]))

    def clear(self) -> None:
        super().clear()
        self.times.clear()
        self.by_time.clear()
        self._newest_ms = -1


class TimeOrderedWindowCache(WindowCache):
    """The cache of a window store that is also read in the order of time. Source: TimeOrderedCachingWindowStore."""

    #: A byte before the store's key counts.
    address_bytes = WindowCache.address_bytes + 1

    __slots__ = ()

    def walk(self, read: WindowRead, interval_ms: int) -> list[Window]:
        if read.reverse:
            return self._backwards(read, interval_ms)
        behind = (read.time_to + 1, b"")
        times = self.by_time.between((read.time_from, b""), behind, upper_inclusive=False)
        if read.key_to is None:
            # The window that ends the walk becomes recently used, too, if it is in the last segment.
            after = next(self.by_time.walk(behind), None)
            if after is not None and after[0] // interval_ms == read.time_to // interval_ms:
                times.append(after)
        found = [(key, start) for start, key in times]
        if read.key_from is None and read.key_to is None:
            return found
        # Keys matter only at the beginning and the end of a segment or of the span.
        edges, ends = (read.time_from, read.time_to), (0, interval_ms - 1)
        return [
            window
            for window in found
            if (window[1] not in edges and window[1] % interval_ms not in ends)
            or self._passes(read, window, interval_ms)
        ]

    def _backwards(self, read: WindowRead, interval_ms: int) -> list[Window]:
        first, last = read.segments(interval_ms, self._newest_ms)
        found = []
        for start, key in reversed(
            self.by_time.between(
                (first * interval_ms, b""), ((last + 1) * interval_ms, b""), upper_inclusive=False
            )
        ):
            if self._passes(read, (key, start), interval_ms):
                found.append((key, start))
                if start < read.time_from:
                    break
        return found

    def _passes(self, read: WindowRead, window: Window, interval_ms: int) -> bool:
        """Whether a walk through the window's segment passes the window."""
        place, key_to = place_by_time(window), read.key_to
        floor, ceiling = read.times_in(window[1] // interval_ms, interval_ms, self._newest_ms)
        if place < (floor, read.key_from or b""):
            return False
        if key_to is None:
            return True
        if read.single:
            return place <= (ceiling, key_to + SEQUENCE_END)
        return place <= (read.time_to, b"\xff" * len(key_to) + SEQUENCE_END)
