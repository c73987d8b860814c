"""Window stores: plain, and with the timestamp of each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar, cast, overload

from pystreams.record import Headers
from pystreams.state.cache import NamedCache
from pystreams.state.formats import WINDOW_SUFFIX_BYTES, ValueAndTimestamp
from pystreams.state.item_cache import ItemCache
from pystreams.state.items import Items, PlainItems, TimestampedItems
from pystreams.state.iterators import StoreIterator
from pystreams.state.sorted_map import SortedKeys, TimesByKey
from pystreams.state.store import Logged, Store, StoreContext, plain_pairs, timestamped_pairs
from pystreams.state.window_layer import TIME_MAX, WindowLayer
from pystreams.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")

#: Called for each flushed window with key bytes, window start, new value, old value, timestamp, headers.
WindowFlushListener = Callable[[bytes, int, Any, Any, int, Headers], None]


def _split_cache_key(key: tuple[bytes, int]) -> tuple[bytes, int, int]:
    return key[0], key[1], 0


class _ByTime:
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
        self.by_time: SortedKeys[tuple[int, bytes]] = SortedKeys(_ByTime(self.entries))

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


class _AnyWindowStore(Store, Generic[K, V]):
    """Everything but the form of a value, which its items know."""

    __slots__ = ("_items", "layer", "read")

    def __init__(self, context: StoreContext, layer: WindowLayer, items: Items[tuple[bytes, int]]) -> None:
        super().__init__(context)
        self._items = items
        self.layer = layer
        self.cache = items.cache
        #: Item of (serialised key, window start), or None.
        self.read: Callable[[bytes, int], Any] = _reader(layer, items)

    def on_flush(self, listener: WindowFlushListener, send_old_values: bool) -> None:
        """As ``Items.on_flush``."""

        def tell(window: tuple[bytes, int], new: Any, old: Any, timestamp: int, headers: Headers) -> None:
            key, start = window
            listener(key, start, new, old, timestamp, headers)

        self._items.on_flush(tell, send_old_values)

    # The store as programs see it. Times are milliseconds since the epoch.

    def put(self, key: K, value: V | None, start: int) -> None:
        """Set the value of the window of ``key`` that starts at ``start``; None deletes it (with duplicates: does
        nothing). Too old a window is dropped."""
        key_bytes = self._encoded(key)
        self._items.put((key_bytes, start), value, key_bytes)

    @overload
    def fetch(self, key: K, time_from: int) -> V | None: ...
    @overload
    def fetch(self, key: K, time_from: int, time_to: int) -> StoreIterator[int, V]: ...
    def fetch(self, key: K, time_from: int, time_to: int | None = None) -> V | StoreIterator[int, V] | None:
        """With one time: the value of the window that starts then, or None. With two: (start, value) of the windows
        that start between them, both included, the earliest first."""
        if time_to is None:
            item = self.read(self._encoded(key), time_from)
            return cast("V | None", self._items.public(item))
        return self._fetch(key, time_from, time_to, reverse=False)

    def backward_fetch(self, key: K, time_from: int, time_to: int) -> StoreIterator[int, V]:
        """As ``fetch`` with two times, the latest window first."""
        return self._fetch(key, time_from, time_to, reverse=True)

    def fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> StoreIterator[Windowed[K], V]:
        """(windowed key, value) of a range of keys (None: open) and window starts, all ends included.

        Persistent stores order by segment, then key bytes, then time; those in memory by time, then key bytes.
        """
        return self._fetch_range(self._bound(key_from), self._bound(key_to), time_from, time_to)

    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> StoreIterator[Windowed[K], V]:
        """As ``fetch_range``, in the opposite order."""
        return self._fetch_range(self._bound(key_from), self._bound(key_to), time_from, time_to, reverse=True)

    def fetch_all(self, time_from: int, time_to: int) -> StoreIterator[Windowed[K], V]:
        """As ``fetch_range`` over all keys."""
        return self._fetch_range(None, None, time_from, time_to)

    def backward_fetch_all(self, time_from: int, time_to: int) -> StoreIterator[Windowed[K], V]:
        """As ``fetch_all``, in the opposite order."""
        return self._fetch_range(None, None, time_from, time_to, reverse=True)

    def all(self) -> StoreIterator[Windowed[K], V]:
        """Every window, in the order of ``fetch_range``."""
        return self._fetch_range(None, None, 0, TIME_MAX)

    def backward_all(self) -> StoreIterator[Windowed[K], V]:
        """Every window, in the opposite order."""
        return self._fetch_range(None, None, 0, TIME_MAX, reverse=True)

    def _fetch(self, key: K, time_from: int, time_to: int, *, reverse: bool) -> StoreIterator[int, V]:
        key_bytes = self._encoded(key)
        pairs: Iterator[tuple[int, Any]] = self.layer.fetch(key_bytes, time_from, time_to, reverse=reverse)
        if self.cache is not None:
            windows = self._cached_windows(
                cast("WindowCache", self.cache), key_bytes, time_from, time_to, reverse=reverse
            )
            cached = ((start, item) for (_, start), item in windows)
            pairs = self._items.over_stored(cached, pairs, reverse=reverse)
        value_of = self._items.public_of
        return self._tracked(StoreIterator(self.name, pairs, lambda start, raw: (start, value_of(raw))))

    def _cached_windows(
        self, cache: WindowCache, key: bytes, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[tuple[tuple[bytes, int], Any]]:
        if self.persistent:
            keys = [cache_key for _, _, cache_key in cache.times.between(key, time_from, time_to)]
        else:
            # Java walks through all keys' windows of the span here, which makes them recently used.
            times = cache.by_time.between((time_from, key), (time_to, key), upper_inclusive=True)
            keys = [(other, start) for start, other in times]
        if reverse:
            keys.reverse()
        return (window for window in cache.snapshot(keys) if window[0][0] == key)

    def _fetch_range(
        self,
        key_from: bytes | None,
        key_to: bytes | None,
        time_from: int,
        time_to: int,
        *,
        reverse: bool = False,
    ) -> StoreIterator[Windowed[K], V]:
        pairs: Iterator[tuple[tuple[bytes, int], Any]]
        if self._reversed_bounds(key_from, key_to):
            pairs = iter(())
        else:
            pairs = self.layer.fetch_range(key_from, key_to, time_from, time_to, reverse=reverse)
            if self.cache is not None:
                pairs = self._over_cached_range(
                    self.cache, pairs, key_from, key_to, time_from, time_to, reverse=reverse
                )
        size_ms, decode_key, value_of = self.spec.window_size_ms, self.decode_key, self._items.public_of

        def decode(window: tuple[bytes, int], raw: bytes | None) -> tuple[Windowed[Any], Any]:
            key, start = window
            # An end past the greatest int64 is that: as Java, whose sum would overflow.
            windowed = Windowed(decode_key(key), start, min(start + size_ms, TIME_MAX))
            return windowed, value_of(raw)

        return self._tracked(StoreIterator(self.name, pairs, decode))

    def _over_cached_range(
        self,
        cache: NamedCache,
        stored: Iterator[tuple[tuple[bytes, int], Any]],
        key_from: bytes | None,
        key_to: bytes | None,
        time_from: int,
        time_to: int,
        *,
        reverse: bool,
    ) -> Iterator[tuple[tuple[bytes, int], Any]]:
        physical = self.layer.layout.physical

        def order(window: tuple[bytes, int]) -> Any:
            return physical(window[0], window[1], 0)

        windows = [
            window
            for window in cache.entries
            if (key_from is None or window[0] >= key_from) and (key_to is None or window[0] <= key_to)
        ]
        windows.sort(key=order, reverse=reverse)
        # As in Java, windows of other times are passed over only after they have become recently used.
        cached = (entry for entry in cache.snapshot(windows) if time_from <= entry[0][1] <= time_to)
        return self._items.over_stored(cached, stored, order=order, reverse=reverse)


def _reader(layer: WindowLayer, items: Items[tuple[bytes, int]]) -> Callable[[bytes, int], Any]:
    """``items.read`` by key and start. Where it would be one call more for little work, it is written out."""
    if items.cached_objects:
        return cast("WindowCache", items.cache).read_window
    if items.cache is not None:
        read = items.read
        return lambda key, start: read((key, start))
    stored, decode = layer.get, items.decode

    def read_stored(key: bytes, start: int) -> Any:
        raw = stored((key, start))
        return None if raw is None else decode(raw)

    return read_stored


class WindowStore(_AnyWindowStore[K, V]):
    """Values by key and window start. Source: WindowStore, ChangeLoggingWindowBytesStore."""

    __slots__ = ()

    def __init__(self, context: StoreContext, layer: WindowLayer) -> None:
        super().__init__(context, layer, PlainItems(context, layer, WindowCache))

    def logged(self) -> Iterator[Logged]:
        return plain_pairs(self.layer.logged())

    def write(self, key: bytes, start: int, value: Any) -> None:
        """Set the value of a serialised key's window; None deletes it."""
        self._items.put((key, start), value, key)


class TimestampedWindowStore(_AnyWindowStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """Values with their timestamps by key and window start; ``read`` gives ``(value, timestamp)``. The changelog has
    the plain value with its timestamp as the record's. Source: ChangeLoggingTimestampedWindowBytesStore."""

    __slots__ = ("write",)

    def __init__(self, context: StoreContext, layer: WindowLayer) -> None:
        items = TimestampedItems(context, layer, WindowCache)
        super().__init__(context, layer, items)
        write = items.write

        def write_window(key: bytes, start: int, value: Any, timestamp: int) -> None:
            write((key, start), value, timestamp, key)

        #: Set the value (None: delete) and timestamp of a serialised key's window.
        self.write: Callable[[bytes, int, Any, int], None] = write_window

    def logged(self) -> Iterator[Logged]:
        return timestamped_pairs(self.layer.logged())
