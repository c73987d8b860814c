"""Window stores: with plain values, or with the timestamp of each value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from pystreams.record import Headers
from pystreams.state.cache.indexed_window_cache import IndexedWindowCache
from pystreams.state.cache.window_cache import TimeOrderedWindowCache, Window, WindowCache
from pystreams.state.formats import ValueAndTimestamp
from pystreams.state.iterators import StoreIterator
from pystreams.state.layers.window_layer import WindowLayer
from pystreams.state.store import Logged, Store, StoreContext
from pystreams.state.stores.header_items import TimestampedHeaderItems
from pystreams.state.stores.items import Failed, Items, PlainItems, TimestampedItems, raised
from pystreams.state.window_reads import ReadOf, WindowRead
from pystreams.stream_time import TIME_MAX
from pystreams.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")

#: Called for each flushed window with key bytes, window start, new value, old value, timestamp, headers.
WindowFlushListener = Callable[[bytes, int, Any, Any, int, Headers], None]


class _AnyWindowStore(Store, Generic[K, V]):
    """The common part of window stores. The form of values is up to ``items``."""

    __slots__ = ("_items", "layer", "read")

    def __init__(self, context: StoreContext, layer: WindowLayer, items: Items[tuple[bytes, int]]) -> None:
        super().__init__(context)
        self._items = items
        self.layer = layer
        self.cache = items.cache
        #: Returns the item of (serialized key, window start), or None.
        self.read: Callable[[bytes, int], Any] = _reader(layer, items)

    def peek(self, key: bytes, start: int) -> Any:
        """As ``read``, but the window does not become recently used: for callers that do not write it at once."""
        return self._items.peek((key, start))

    def read_flushed(self, key: bytes, start: int) -> Any:
        """As ``read``, as of the last flush."""
        return self._items.read_flushed((key, start))

    def on_flush(self, listener: WindowFlushListener, send_old_values: bool, failed: Failed = raised) -> None:
        """As ``Items.on_flush``."""

        def flushed(window: tuple[bytes, int], new: Any, old: Any, timestamp: int, headers: Headers) -> None:
            key, start = window
            listener(key, start, new, old, timestamp, headers)

        self._items.on_flush(flushed, send_old_values, failed)

    def windows_of(
        self, key: bytes, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[tuple[int, Any]]:
        """(start, item) of a serialized key's windows that start in a span, both inclusive, read one by one."""
        decode = self._items.decode
        # As Java, which reads a range of keys with a single key. In memory this passes all cached windows.
        pairs = self._pairs(key, time_from, time_to, reverse=reverse, of="range")
        return ((start, decode(raw)) for start, raw in pairs if raw is not None)

    def hold(self, time_ms: int) -> None:
        """Keep windows that start at this time or later when they expire, until the next call."""
        self.layer.hold(time_ms)

    @property
    def first_visible_ms(self) -> int:
        """The earliest visible start: windows that start before have expired, and are hidden."""
        return self.layer.first_visible_ms

    def fetch_held(self, time_from: int, time_to: int) -> StoreIterator[Windowed[K], V]:
        """As ``fetch_all``, including expired, hidden windows that still exist."""
        return self._windows(WindowRead(None, None, time_from, time_to, "all"), held=True)

    def without_headers(self) -> Self:
        return self._with_items(self._items.without_headers()) if self.spec.headers else self

    # The methods for programs. Times are milliseconds since the epoch.

    def put(self, key: K, value: V | None, start: int) -> None:
        """Set the value of the window of ``key`` that starts at ``start``; None deletes it (with duplicates: has no
        effect). A window that is too old is dropped."""
        key_bytes = self._encoded(key)
        self._items.put((key_bytes, self._ms(start)), value, key_bytes)

    @overload
    def fetch(self, key: K, time_from: int) -> V | None: ...
    @overload
    def fetch(self, key: K, time_from: int, time_to: int) -> StoreIterator[int, V]: ...
    def fetch(self, key: K, time_from: int, time_to: int | None = None) -> V | StoreIterator[int, V] | None:
        """With one time: the value of the window that starts then, or None. With two: (start, value) of the windows
        that start between them, both inclusive, the earliest first."""
        if time_to is None:
            return cast("V | None", self._items.get((self._encoded(key), self._ms(time_from))))
        return self._fetch(key, time_from, time_to, reverse=False)

    def backward_fetch(self, key: K, time_from: int, time_to: int) -> StoreIterator[int, V]:
        """As ``fetch`` with two times, the latest window first."""
        return self._fetch(key, time_from, time_to, reverse=True)

    def fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> StoreIterator[Windowed[K], V]:
        """(windowed key, value) of a range of keys (None: open end) and of window starts, all inclusive.

        Persistent stores sort by segment, then key bytes, then time; in-memory stores, and stores of tumbling and
        hopping windows that are emitted on close, by time, then key bytes.
        """
        return self._windows(self._range(key_from, key_to, time_from, time_to))

    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> StoreIterator[Windowed[K], V]:
        """As ``fetch_range``, in reverse order."""
        return self._windows(self._range(key_from, key_to, time_from, time_to, reverse=True))

    def _range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int, *, reverse: bool = False
    ) -> WindowRead:
        return WindowRead(self._bound(key_from), self._bound(key_to), time_from, time_to, "range", reverse)

    def fetch_all(self, time_from: int, time_to: int) -> StoreIterator[Windowed[K], V]:
        """As ``fetch_range``, for all keys."""
        return self._windows(WindowRead(None, None, time_from, time_to, "all"))

    def backward_fetch_all(self, time_from: int, time_to: int) -> StoreIterator[Windowed[K], V]:
        """As ``fetch_all``, in reverse order."""
        return self._windows(WindowRead(None, None, time_from, time_to, "all", reverse=True))

    def all(self) -> StoreIterator[Windowed[K], V]:
        """All windows, in the order of ``fetch_range``."""
        return self._windows(WindowRead(None, None, 0, TIME_MAX, "all"))

    def backward_all(self) -> StoreIterator[Windowed[K], V]:
        """All windows, in reverse order."""
        return self._windows(WindowRead(None, None, 0, TIME_MAX, "all", reverse=True))

    def _fetch(self, key: K, time_from: int, time_to: int, *, reverse: bool) -> StoreIterator[int, V]:
        pairs = self._pairs(self._encoded(key), self._ms(time_from), self._ms(time_to), reverse=reverse)
        value_of = self._items.public_of
        return self._tracked(StoreIterator(self.name, pairs, lambda start, raw: (start, value_of(raw))))

    def _pairs(
        self, key: bytes, time_from: int, time_to: int, *, reverse: bool, of: ReadOf = "key"
    ) -> Iterator[tuple[int, bytes | None]]:
        """(start, bytes) of cached windows merged over stored ones."""
        stored = self.layer.fetch(key, time_from, time_to, reverse=reverse)
        if self.cache is None:
            return stored
        read = WindowRead(key, key, time_from, time_to, of, reverse)
        cached = cast("WindowCache", self.cache).read_windows(read, self.layer.layout.interval_ms)
        return self._items.over_stored(
            ((start, item) for (_, start), item in cached), stored, reverse=reverse
        )

    def _windows(self, read: WindowRead, *, held: bool = False) -> StoreIterator[Windowed[K], V]:
        pairs: Iterator[tuple[Window, Any]]
        layer = self.layer
        for time in (read.time_from, read.time_to):
            self._ms(time)
        if self._reversed_bounds(read.key_from, read.key_to):
            pairs = iter(())
        else:
            pairs = layer.fetch_held(read.time_from, read.time_to) if held else layer.read_windows(read)
            if self.cache is not None:
                cached = cast("WindowCache", self.cache).read_windows(read, layer.layout.interval_ms)
                order = layer.order(read.of)
                pairs = self._items.over_stored(cached, pairs, order=order, reverse=read.reverse)
        size_ms, decode_key, value_of = self.spec.window_size_ms, self.decode_key, self._items.public_of

        def decode(window: Window, raw: bytes | None) -> tuple[Windowed[Any], Any]:
            key, start = window
            # The end is at most the greatest int64: in Java, too, where the sum would overflow.
            windowed = Windowed(decode_key(key), start, min(start + size_ms, TIME_MAX))
            return windowed, value_of(raw)

        return self._tracked(StoreIterator(self.name, pairs, decode))


def _reader(layer: WindowLayer, items: Items[tuple[bytes, int]]) -> Callable[[bytes, int], Any]:
    """``items.read`` by key and start. Its code is repeated here, where a further call would be expensive."""
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
        # This includes join windows, which have headers if they are in memory.
        return self.spec.form.logged(self.layer.logged())

    def write(self, key: bytes, start: int, value: Any) -> None:
        """Set the value of a serialized key's window; None deletes it."""
        self._items.put((key, start), value, key)


class TimestampedWindowStore(_AnyWindowStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """Values with their timestamps by key and window start; ``read`` returns ``(value, timestamp)``. In the changelog
    the value is plain, and the timestamp is the record's. With headers: ``TimestampedHeaderItems``.
    Source: ChangeLoggingTimestampedWindowBytesStore."""

    __slots__ = ("encoded", "write", "write_encoded", "write_past_cache")

    def __init__(self, context: StoreContext, layer: WindowLayer) -> None:
        spec = context.spec
        by_time = spec.by_time and spec.persistent
        kept = TimestampedHeaderItems if spec.headers else TimestampedItems
        ordered = IndexedWindowCache if spec.headers else TimeOrderedWindowCache
        items = kept(context, layer, ordered if by_time else WindowCache)
        super().__init__(context, layer, items)
        write, put_encoded = items.write, items.put_encoded

        def write_window(key: bytes, start: int, value: Any, timestamp: int) -> None:
            write((key, start), value, timestamp, key)

        def write_encoded(key: bytes, start: int, value: Any, timestamp: int, raw: bytes | None) -> None:
            put_encoded((key, start), None if value is None else (value, timestamp), raw, key)

        #: Sets the value (None: delete) and timestamp of a serialized key's window.
        self.write: Callable[[bytes, int, Any, int], None] = write_window

        #: Serializes a value and its timestamp, for ``write_encoded``.
        self.encoded: Callable[[Any, int], bytes | None] = items.encoded
        #: As ``write``, with the bytes of both, so that serialization cannot fail.
        self.write_encoded: Callable[[bytes, int, Any, int, bytes | None], None] = write_encoded
        #: As ``TimestampedItems.write_past_cache``.
        self.write_past_cache = items.write_past_cache

    if TYPE_CHECKING:  # A plain tuple is accepted, too.

        def put(self, key: K, value: tuple[V | None, int] | None, start: int) -> None: ...

    def logged(self) -> Iterator[Logged]:
        return self.spec.form.logged(self.layer.logged())
