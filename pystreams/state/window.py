"""Window stores: plain, and with the timestamp of each value."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar, cast, overload

from pystreams.record import NO_HEADERS, ContextCell, Headers
from pystreams.serde.base import AnySerde
from pystreams.state.cache import (
    ENTRY_OVERHEAD_BYTES,
    CacheEntry,
    DirtyEntry,
    NamedCache,
    ThreadCache,
    entry_bytes,
    header_bytes,
)
from pystreams.state.formats import (
    TIMESTAMP_BYTES,
    WINDOW_SUFFIX_BYTES,
    ValueAndTimestamp,
    byte_length,
    pack_int64,
    unpack_int64,
)
from pystreams.state.iterators import StoreIterator, merge_cached
from pystreams.state.key_value import identity
from pystreams.state.sorted_map import SortedKeys, TimesByKey
from pystreams.state.store import Store, StoreContext
from pystreams.state.window_layer import TIME_MAX, WindowLayer
from pystreams.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")

log = logging.getLogger(__name__)

#: Called for each flushed window with key bytes, window start, new value, old value, timestamp, headers.
WindowFlushListener = Callable[[bytes, int, Any, Any, int, Headers], None]

#: A window's cache key has the segment before the store's key (SegmentedCacheFunction).
_CACHE_KEY_OVERHEAD_BYTES = 8 + WINDOW_SUFFIX_BYTES
_DELETED: tuple[Any, int] = (None, -1)
_TIMESTAMPED_OVERHEAD_BYTES = ENTRY_OVERHEAD_BYTES + _CACHE_KEY_OVERHEAD_BYTES + TIMESTAMP_BYTES


def _split_cache_key(key: tuple[bytes, int]) -> tuple[bytes, int, int]:
    return key[0], key[1], 0


class _ByTime:
    """The windows in a cache as (start, key), which sorts as Kafka Streams' store in memory does."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[bytes, int]]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return ((start, key) for key, start in self._entries)


class WindowCache(NamedCache):
    """The cache of a window store, by (key, window start). Unlike a key-value store's it holds only what was written:
    what is read from below is not kept. Source: CachingWindowStore."""

    __slots__ = ("_below", "_cell", "_decode", "_length", "by_time", "times")

    def __init__(
        self,
        owner: ThreadCache,
        name: str,
        cell: ContextCell,
        below: Callable[[bytes, int], bytes | None],
        decode: Callable[[bytes], Any],
        length: Callable[[Any], int],
    ) -> None:
        super().__init__(owner, name)
        self._cell = cell
        self._below = below
        self._decode = decode
        self._length = length
        self.times = TimesByKey(self.entries, _split_cache_key)
        self.by_time: SortedKeys[tuple[int, bytes]] = SortedKeys(_ByTime(self.entries))

    def read(self, key: bytes, start: int) -> Any:
        """The item of a window; None if it is deleted or was never set."""
        cache_key = (key, start)
        entry = self._get(cache_key)
        if entry is not None:
            self._touch(cache_key)
            return entry.item
        raw = self._below(key, start)
        return None if raw is None else self._decode(raw)

    def write(self, key: bytes, start: int, value: Any, timestamp: int) -> None:
        """Set the item ``(value, timestamp)``. The same as ``put``, written out for windowed aggregations."""
        context = self._cell.record
        if value is not None:
            item = (value, timestamp)
            size = _TIMESTAMPED_OVERHEAD_BYTES + len(key) + self._length(value)
        else:
            item = None
            size = _TIMESTAMPED_OVERHEAD_BYTES - TIMESTAMP_BYTES + len(key)
        if context[0]:
            size += len(context[0])
        if context[4]:
            size += header_bytes(context)
        clock = self._clock = self._clock + 1
        owner = self._owner
        cache_key = (key, start)
        entry = self._get(cache_key)
        if entry is None:
            entry = self.entries[cache_key] = CacheEntry(cache_key, item, context, size, clock)
            self._dirty.append(entry)
            self.added(cache_key)
            self.size_bytes += size
            owner.size_bytes += size
        else:
            self._touch(cache_key)
            entry.item = item
            entry.context = context
            if not entry.updated:
                self._dirty.append(entry)
            entry.updated = clock
            if size != entry.size:
                delta = size - entry.size
                entry.size = size
                self.size_bytes += delta
                owner.size_bytes += delta
        if owner.size_bytes > owner.max_bytes:
            self._shrink()

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
    """Everything but the form of a value, which subclasses know as *item*: a value, or a value with its timestamp."""

    __slots__ = (
        "_cached_objects",
        "_decode_value",
        "_encode_value",
        "_listener",
        "_send_old_values",
        "layer",
        "read",
    )

    def __init__(self, context: StoreContext, layer: WindowLayer) -> None:
        super().__init__(context)
        serde: AnySerde = context.spec.value_serde
        self._encode_value: Callable[[Any], bytes] = serde.serializer(context.topic)
        self._decode_value: Callable[[bytes], Any] = serde.deserializer(context.topic)
        self._listener: WindowFlushListener | None = None
        self._send_old_values = False
        self.layer = layer
        # A cache holds one value per window; with duplicates there are several.
        self.cached = self.cached and not context.spec.retain_duplicates
        self._cached_objects = self.cached and serde.immutable
        #: Item of (serialised key, window start), or None.
        self.read: Callable[[bytes, int], Any] = self._read_stored
        if self.cached and context.cache is not None:
            cache = WindowCache(
                context.cache,
                context.namespace,
                context.cell,
                layer.get,
                self._decode if self._cached_objects else identity,
                byte_length(serde, self._encode_value),
            )
            cache.listener = self._flushed
            self.cache = cache
            self.read = cache.read if self._cached_objects else self._read_cached_bytes

    # What an item is, in subclasses.

    def _encode(self, item: Any) -> bytes:
        raise NotImplementedError

    def _decode(self, raw: bytes) -> Any:
        raise NotImplementedError

    def _write_below(self, key: bytes, start: int, raw: bytes | None) -> None:
        """Into the overlay and the changelog."""
        raise NotImplementedError

    def _write_object(self, key: bytes, start: int, item: Any) -> None:
        """The same for an item."""
        self._write_below(key, start, None if item is None else self._encode(item))

    def _forward(self, key: bytes, start: int, new: Any, old: Any) -> None:
        """Tell the listener."""
        raise NotImplementedError

    def _public(self, item: Any) -> V:
        raise NotImplementedError

    # Bytes in, items out.

    def _read_stored(self, key: bytes, start: int) -> Any:
        raw = self.layer.get(key, start)
        return None if raw is None else self._decode(raw)

    def _read_cached_bytes(self, key: bytes, start: int) -> Any:
        raw = cast("WindowCache", self.cache).read(key, start)
        return None if raw is None else self._decode(raw)

    def _write_item(self, key: bytes, start: int, item: Any) -> None:
        raw = None if item is None else self._encode(item)
        cache = self.cache
        if cache is None:
            self._write_below(key, start, raw)
            return
        context = self._cell.record
        size = entry_bytes(_CACHE_KEY_OVERHEAD_BYTES + len(key), 0 if raw is None else len(raw), context)
        cache.put((key, start), item if self._cached_objects else raw, context, size, dirty=True)

    def on_flush(self, listener: WindowFlushListener, send_old_values: bool) -> None:
        """Have ``listener`` called for each window that the cache flushes, the entry's record context in force.

        Old values are looked up only if they are to be sent. A deletion of a window that is not stored below is
        neither written nor told. Source: CachingWindowStore.putAndMaybeForward.
        """
        self._listener = listener
        self._send_old_values = send_old_values

    def _flushed(self, batch: list[DirtyEntry]) -> None:
        cell, listener, send_old = self._cell, self._listener, self._send_old_values
        write = self._write_object if self._cached_objects else self._write_below
        as_item = identity if self._cached_objects else self._decode
        in_force = cell.record
        try:
            for (key, start), cached, context in batch:
                cell.record = context
                old_raw = None
                if listener is not None and (send_old or cached is None):
                    old_raw = self.layer.get(key, start)
                    if old_raw is None and cached is None:
                        continue
                write(key, start, cached)
                if listener is not None:
                    new = None if cached is None else as_item(cached)
                    old = self._decode(old_raw) if send_old and old_raw is not None else None
                    self._forward(key, start, new, old)
        finally:
            cell.record = in_force

    # The store as programs see it. Times are milliseconds since the epoch.

    def put(self, key: K, value: V | None, start: int) -> None:
        """Set the value of the window of ``key`` that starts at ``start``; None deletes it (with duplicates: does
        nothing). Too old a window is dropped."""
        self._write_item(self._encoded(key), start, value)

    @overload
    def fetch(self, key: K, time_from: int) -> V | None: ...
    @overload
    def fetch(self, key: K, time_from: int, time_to: int) -> StoreIterator[int, V]: ...
    def fetch(self, key: K, time_from: int, time_to: int | None = None) -> V | StoreIterator[int, V] | None:
        """With one time: the value of the window that starts then, or None. With two: (start, value) of the windows
        that start between them, both included, the earliest first."""
        if time_to is None:
            item = self.read(self._encoded(key), time_from)
            return None if item is None else self._public(item)
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
        cache = self.cache
        if cache is not None:
            cached = self._cached_windows(
                cast("WindowCache", cache), key_bytes, time_from, time_to, reverse=reverse
            )
            merged = merge_cached(cached, pairs, _start_of, identity, reverse=reverse)
            pairs = (
                (key[1] if from_cache else key, self._as_raw(item) if from_cache else item)
                for key, item, from_cache in merged
            )

        def decode(start: int, raw: bytes | None) -> tuple[int, Any]:
            return start, None if raw is None else self._public(self._decode(raw))

        return self._tracked(StoreIterator(self.name, pairs, decode))

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
        if key_from is not None and key_to is not None and key_from > key_to:
            log.warning(
                "store %s: a range whose first key sorts behind its last is empty; keys sort by their bytes, in which "
                "negative numbers follow the positive ones",
                self.name,
            )
            pairs = iter(())
        else:
            pairs = self.layer.fetch_range(key_from, key_to, time_from, time_to, reverse=reverse)
            if self.cache is not None:
                pairs = self._over_cached_range(
                    self.cache, pairs, key_from, key_to, time_from, time_to, reverse=reverse
                )
        size_ms, decode_key = self.spec.window_size_ms, self.decode_key

        def decode(window: tuple[bytes, int], raw: bytes | None) -> tuple[Windowed[Any], Any]:
            key, start = window
            # An end past the greatest int64 is that: as Java, whose sum would overflow.
            windowed = Windowed(decode_key(key), start, min(start + size_ms, TIME_MAX))
            return windowed, None if raw is None else self._public(self._decode(raw))

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
        merged = merge_cached(cached, stored, order, order, reverse=reverse)
        return ((key, self._as_raw(item) if from_cache else item) for key, item, from_cache in merged)

    def _as_raw(self, item: Any) -> Any:
        return self._encode(item) if self._cached_objects and item is not None else item


def _start_of(cache_key: tuple[bytes, int]) -> int:
    return cache_key[1]


class WindowStore(_AnyWindowStore[K, V]):
    """Values by key and window start. Source: WindowStore, ChangeLoggingWindowBytesStore."""

    __slots__ = ()

    def write(self, key: bytes, start: int, value: Any) -> None:
        """Set the value of a serialised key's window; None deletes it."""
        self._write_item(key, start, value)

    def _encode(self, item: Any) -> bytes:
        return self._encode_value(item)

    def _decode(self, raw: bytes) -> Any:
        return self._decode_value(raw)

    def _public(self, item: Any) -> V:
        return cast("V", item)

    def _write_below(self, key: bytes, start: int, raw: bytes | None) -> None:
        self._log(self.layer.put(key, start, raw), raw, self._cell.record[3], NO_HEADERS)

    def _forward(self, key: bytes, start: int, new: Any, old: Any) -> None:
        context = self._cell.record
        cast("WindowFlushListener", self._listener)(key, start, new, old, context[3], context[4])


class TimestampedWindowStore(_AnyWindowStore[K, "ValueAndTimestamp[V]"], Generic[K, V]):
    """Values with their timestamps by key and window start; ``read`` gives ``(value, timestamp)``. The changelog has
    the plain value with its timestamp as the record's. Source: ChangeLoggingTimestampedWindowBytesStore."""

    __slots__ = ("write",)

    def __init__(self, context: StoreContext, layer: WindowLayer) -> None:
        super().__init__(context, layer)
        #: Set the value (None: delete) and timestamp of a serialised key's window.
        self.write: Callable[[bytes, int, Any, int], None]
        if self._cached_objects:
            self.write = cast("WindowCache", self.cache).write
        elif self.cached:
            self.write = self._write_cached_bytes
        else:
            self.write = self._write_through

    def _write_through(self, key: bytes, start: int, value: Any, timestamp: int) -> None:
        if value is None:
            self._write_below(key, start, None)
            return
        data = self._encode_value(value)
        self._log(self.layer.put(key, start, pack_int64(timestamp) + data), data, timestamp, NO_HEADERS)

    def _write_cached_bytes(self, key: bytes, start: int, value: Any, timestamp: int) -> None:
        super()._write_item(key, start, None if value is None else (value, timestamp))

    def _encode(self, item: Any) -> bytes:
        value, timestamp = item
        return pack_int64(timestamp) + self._encode_value(value)

    def _decode(self, raw: bytes) -> Any:
        return self._decode_value(raw[TIMESTAMP_BYTES:]), unpack_int64(raw)[0]

    def _public(self, item: Any) -> ValueAndTimestamp[V]:
        return ValueAndTimestamp(*item)

    def _write_item(self, key: bytes, start: int, item: Any) -> None:
        # A None with a timestamp is a deletion, too (ValueAndTimestamp.make).
        super()._write_item(key, start, None if item is None or item[0] is None else tuple(item))

    def _write_below(self, key: bytes, start: int, raw: bytes | None) -> None:
        changelog_key = self.layer.put(key, start, raw)
        if raw is None:
            self._log(changelog_key, None, self._cell.record[3], NO_HEADERS)
        else:
            self._log(changelog_key, raw[TIMESTAMP_BYTES:], unpack_int64(raw)[0], NO_HEADERS)

    def _write_object(self, key: bytes, start: int, item: Any) -> None:
        self._write_through(key, start, *(item or _DELETED))

    def _forward(self, key: bytes, start: int, new: Any, old: Any) -> None:
        context = self._cell.record
        value, timestamp = (None, context[3]) if new is None else new
        listener = cast("WindowFlushListener", self._listener)
        listener(key, start, value, None if old is None else old[0], timestamp, context[4])
