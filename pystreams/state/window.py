"""Window stores: plain, and with the timestamp of each value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Self, TypeVar, cast, overload

from pystreams.record import Headers
from pystreams.state.cache import NamedCache
from pystreams.state.formats import ValueAndTimestamp
from pystreams.state.header_items import TimestampedHeaderItems
from pystreams.state.indexed_window_cache import IndexedWindowCache, is_index
from pystreams.state.items import Failed, Items, PlainItems, TimestampedItems, raised
from pystreams.state.iterators import StoreIterator
from pystreams.state.store import Logged, Store, StoreContext
from pystreams.state.window_cache import TimeOrderedWindowCache, WindowCache
from pystreams.state.window_layer import TIME_MAX, WindowLayer
from pystreams.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")

#: Called for each flushed window with key bytes, window start, new value, old value, timestamp, headers.
WindowFlushListener = Callable[[bytes, int, Any, Any, int, Headers], None]


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

    def read_flushed(self, key: bytes, start: int) -> Any:
        """As ``read``, as of the last flush."""
        return self._items.read_flushed((key, start))

    def on_flush(self, listener: WindowFlushListener, send_old_values: bool, failed: Failed = raised) -> None:
        """As ``Items.on_flush``."""

        def tell(window: tuple[bytes, int], new: Any, old: Any, timestamp: int, headers: Headers) -> None:
            key, start = window
            listener(key, start, new, old, timestamp, headers)

        self._items.on_flush(tell, send_old_values, failed)

    def windows_of(
        self, key: bytes, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[tuple[int, Any]]:
        """(start, item) of a serialised key's windows that start in a span, both ends included, read one by one."""
        decode = self._items.decode
        pairs = self._pairs(key, time_from, time_to, reverse=reverse, as_range=True)
        return ((start, decode(raw)) for start, raw in pairs if raw is not None)

    def hold(self, time_ms: int) -> None:
        """Windows that start at this time or later are not deleted when they expire, until told otherwise."""
        self.layer.hold(time_ms)

    @property
    def first_visible_ms(self) -> int:
        """Windows that start before are hidden: they have expired."""
        return self.layer.first_visible_ms

    def fetch_held(self, time_from: int, time_to: int) -> StoreIterator[Windowed[K], V]:
        """As ``fetch_all``, with windows that are hidden because they have expired, as long as they are there."""
        return self._fetch_range(None, None, time_from, time_to, held=True)

    def without_headers(self) -> Self:
        return self._with_items(self._items.without_headers()) if self.spec.headers else self

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
            return cast("V | None", self._items.get((self._encoded(key), time_from)))
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
        pairs = self._pairs(self._encoded(key), time_from, time_to, reverse=reverse)
        value_of = self._items.public_of
        return self._tracked(StoreIterator(self.name, pairs, lambda start, raw: (start, value_of(raw))))

    def _pairs(
        self, key: bytes, time_from: int, time_to: int, *, reverse: bool, as_range: bool = False
    ) -> Iterator[tuple[int, bytes | None]]:
        """(start, bytes) of cached windows over stored ones. ``as_range``: as Java reads a range of keys with one key
        in it."""
        stored = self.layer.fetch(key, time_from, time_to, reverse=reverse)
        if self.cache is None:
            return stored
        windows = self._cached_windows(
            cast("WindowCache", self.cache), key, time_from, time_to, reverse=reverse, as_range=as_range
        )
        cached = ((start, item) for (_, start), item in windows)
        return self._items.over_stored(cached, stored, reverse=reverse)

    def _cached_windows(
        self, cache: WindowCache, key: bytes, time_from: int, time_to: int, *, reverse: bool, as_range: bool
    ) -> Iterator[tuple[tuple[bytes, int], Any]]:
        # Java walks through more windows than those that are asked for, which makes them recently used: backwards the
        # whole segment of the first one, in memory those of all keys.
        first = time_from
        if self.persistent:
            if reverse:
                first -= time_from % self.layer.layout.interval_ms
            keys = [cache_key for _, _, cache_key in cache.times.between(key, first, time_to)]
        else:
            if as_range:
                first = 0
            times = cache.by_time.between((first, key), (time_to, key), upper_inclusive=True)
            keys = [(other, start) for start, other in times]
        if reverse:
            keys.reverse()
        return (
            window
            for window in cache.snapshot(keys)
            if window[0][0] == key and time_from <= window[0][1] <= time_to
        )

    def _fetch_range(
        self,
        key_from: bytes | None,
        key_to: bytes | None,
        time_from: int,
        time_to: int,
        *,
        reverse: bool = False,
        held: bool = False,
    ) -> StoreIterator[Windowed[K], V]:
        pairs: Iterator[tuple[tuple[bytes, int], Any]]
        if self._reversed_bounds(key_from, key_to):
            pairs = iter(())
        else:
            if held:
                pairs = self.layer.fetch_held(time_from, time_to)
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
        by_key = key_from is not None or key_to is not None
        order = self.layer.order(by_key=by_key)
        if isinstance(cache, TimeOrderedWindowCache) and not by_key:
            windows = cache.of_span(time_from, time_to, self.layer.layout.interval_ms)
        else:
            windows = [
                window
                for window in cache.entries
                if (key_from is None or window[0] >= key_from)
                and (key_to is None or window[0] <= key_to)
                and not is_index(window)
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

    def __init__(
        self,
        context: StoreContext,
        layer: WindowLayer,
        items: type[Items[tuple[bytes, int]]] = PlainItems,
    ) -> None:
        super().__init__(context, layer, items(context, layer, WindowCache))

    def logged(self) -> Iterator[Logged]:
        # Of the records of a join, too, which have headers in memory.
        return self.spec.form.logged(self.layer.logged())

    def write(self, key: bytes, start: int, value: Any) -> None:
        """Set the value of a serialised key's window; None deletes it."""
        self._items.put((key, start), value, key)


class TimestampedWindowStore(_AnyWindowStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """Values with their timestamps by key and window start; ``read`` gives ``(value, timestamp)``. The changelog has
    the plain value with its timestamp as the record's. With headers: ``TimestampedHeaderItems``.
    Source: ChangeLoggingTimestampedWindowBytesStore."""

    __slots__ = ("write",)

    def __init__(self, context: StoreContext, layer: WindowLayer) -> None:
        spec = context.spec
        by_time = spec.by_time and spec.persistent
        kept = TimestampedHeaderItems if spec.headers else TimestampedItems
        ordered = IndexedWindowCache if spec.headers else TimeOrderedWindowCache
        items = kept(context, layer, ordered if by_time else WindowCache)
        super().__init__(context, layer, items)
        write = items.write

        def write_window(key: bytes, start: int, value: Any, timestamp: int) -> None:
            write((key, start), value, timestamp, key)

        #: Set the value (None: delete) and timestamp of a serialised key's window.
        self.write: Callable[[bytes, int, Any, int], None] = write_window

    def logged(self) -> Iterator[Logged]:
        return self.spec.form.logged(self.layer.logged())
