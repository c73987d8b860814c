"""Key-value stores: plain, and with the timestamp of each value."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar, cast

from pystreams.record import NO_HEADERS, ContextCell, Headers
from pystreams.serde.base import AnySerde
from pystreams.state.cache import (
    CLEAN_CONTEXT,
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
    ValueAndTimestamp,
    byte_length,
    pack_int64,
    unpack_int64,
)
from pystreams.state.iterators import StoreIterator, merge_cached
from pystreams.state.overlay import Overlay
from pystreams.state.sorted_map import SortedKeys
from pystreams.state.store import Store, StoreContext, after_prefix

K = TypeVar("K")
V = TypeVar("V")

log = logging.getLogger(__name__)

#: Called for each flushed entry with key bytes, new value, old value, timestamp, headers; None where there is no value.
FlushListener = Callable[[bytes, Any, Any, int, Headers], None]

_DELETED: tuple[Any, int] = (None, -1)
_TIMESTAMPED_OVERHEAD_BYTES = ENTRY_OVERHEAD_BYTES + TIMESTAMP_BYTES


def identity(value: Any) -> Any:
    """The value itself: cached bytes are stored as they are."""
    return value


class KeyValueCache(NamedCache):
    """The cache of a key-value store. Items are values (with their timestamps) where those cannot be changed in place,
    else their bytes. What is read from below stays as a clean entry."""

    __slots__ = ("_below", "_cell", "_decode", "_length", "keys")

    def __init__(
        self,
        owner: ThreadCache,
        name: str,
        cell: ContextCell,
        below: Callable[[bytes], bytes | None],
        decode: Callable[[bytes], Any],
        length: Callable[[Any], int],
    ) -> None:
        super().__init__(owner, name)
        self._cell = cell
        self._below = below
        self._decode = decode
        self._length = length
        self.keys: SortedKeys[bytes] = SortedKeys(self.entries)

    def read(self, key: bytes) -> Any:
        """The item of ``key``; None if it is deleted or was never set."""
        entry = self._get(key)
        if entry is None:
            return self._load(key)
        self._touch(key)
        return entry.item

    def _load(self, key: bytes) -> Any:
        raw = self._below(key)
        if raw is None:
            return None
        item = self._decode(raw)
        size = ENTRY_OVERHEAD_BYTES + len(key) + len(raw)
        self.entries[key] = CacheEntry(key, item, CLEAN_CONTEXT, size, 0)
        self.keys.added(key)
        self.size_bytes += size
        owner = self._owner
        owner.size_bytes += size
        if owner.size_bytes > owner.max_bytes:
            self._shrink()
        return item

    def write(self, key: bytes, value: Any, timestamp: int) -> None:
        """Set the item ``(value, timestamp)``. The same as ``put``, written out: this is the hot path of every
        aggregation."""
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
        entry = self._get(key)
        if entry is None:
            entry = self.entries[key] = CacheEntry(key, item, context, size, clock)
            self._dirty.append(entry)
            self.keys.added(key)
            self.size_bytes += size
            owner.size_bytes += size
        else:
            self._touch(key)
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

    def added(self, key: bytes) -> None:
        self.keys.added(key)

    def removed(self, key: bytes) -> None:
        self.keys.removed(key)

    def clear(self) -> None:
        super().clear()
        self.keys.clear()


class _AnyKeyValueStore(Store, Generic[K, V]):
    """Everything but the form of a value, which subclasses know as *item*: a value, or a value with its timestamp."""

    __slots__ = (
        "_cached_objects",
        "_decode_value",
        "_encode_value",
        "_listener",
        "_send_old_values",
        "overlay",
        "read",
    )

    def __init__(self, context: StoreContext, overlay: Overlay) -> None:
        super().__init__(context)
        serde: AnySerde = context.spec.value_serde
        self._encode_value: Callable[[Any], bytes] = serde.serializer(context.topic)
        self._decode_value: Callable[[bytes], Any] = serde.deserializer(context.topic)
        self._listener: FlushListener | None = None
        self._send_old_values = False
        self.overlay = overlay
        self._cached_objects = self.cached and serde.immutable
        #: Item of a serialised key, or None. Bound once, so that a cached object costs one call.
        self.read: Callable[[bytes], Any] = self._read_stored
        if self.cached and context.cache is not None:
            cache = KeyValueCache(
                context.cache,
                context.namespace,
                context.cell,
                overlay.get,
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

    def _write_below(self, key: bytes, raw: bytes | None) -> None:
        """Into the overlay and the changelog."""
        raise NotImplementedError

    def _write_object(self, key: bytes, item: Any) -> None:
        """The same for an item."""
        self._write_below(key, None if item is None else self._encode(item))

    def _forward(self, key: bytes, new: Any, old: Any) -> None:
        """Tell the listener."""
        raise NotImplementedError

    def _public(self, item: Any) -> V:
        raise NotImplementedError

    # Bytes in, items out.

    def _read_stored(self, key: bytes) -> Any:
        raw = self.overlay.get(key)
        return None if raw is None else self._decode(raw)

    def _read_cached_bytes(self, key: bytes) -> Any:
        raw = cast("KeyValueCache", self.cache).read(key)
        return None if raw is None else self._decode(raw)

    def _write_item(self, key: bytes, item: Any) -> None:
        cache = self.cache
        if cache is None:
            self._write_below(key, None if item is None else self._encode(item))
            return
        raw = None if item is None else self._encode(item)
        context = self._cell.record
        size = entry_bytes(len(key), 0 if raw is None else len(raw), context)
        cache.put(key, item if self._cached_objects else raw, context, size, dirty=True)

    def on_flush(self, listener: FlushListener, send_old_values: bool) -> None:
        """Have ``listener`` called for each entry that the cache flushes, the entry's record context in force.

        Old values are looked up only if they are to be sent. A deletion of a key that is not stored below is neither
        written nor told. Source: CachingKeyValueStore.putAndMaybeForward.
        """
        self._listener = listener
        self._send_old_values = send_old_values

    def _flushed(self, batch: list[DirtyEntry]) -> None:
        cell, listener, send_old = self._cell, self._listener, self._send_old_values
        write = self._write_object if self._cached_objects else self._write_below
        as_item = identity if self._cached_objects else self._decode
        in_force = cell.record
        try:
            for key, cached, context in batch:
                cell.record = context
                old_raw = None
                if listener is not None and (send_old or cached is None):
                    old_raw = self.overlay.get(key)
                    if old_raw is None and cached is None:
                        continue
                write(key, cached)
                if listener is not None:
                    new = None if cached is None else as_item(cached)
                    old = self._decode(old_raw) if send_old and old_raw is not None else None
                    self._forward(key, new, old)
        finally:
            cell.record = in_force

    # The store as programs see it.

    def get(self, key: K) -> V | None:
        """The value of ``key``, None if there is none."""
        item = self.read(self._encoded(key))
        return None if item is None else self._public(item)

    def put(self, key: K, value: V | None) -> None:
        """Set the value of ``key``; None deletes it."""
        self._write_item(self._encoded(key), value)

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Set the value of ``key`` if it has none; gives the one it had."""
        key_bytes = self._encoded(key)
        item = self.read(key_bytes)
        if item is not None:
            return self._public(item)
        self._write_item(key_bytes, value)
        return None

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Set several values, in order."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: K) -> V | None:
        """Delete ``key``; gives the value it had."""
        key_bytes = self._encoded(key)
        item = self.read(key_bytes)
        self._write_item(key_bytes, None)
        return None if item is None else self._public(item)

    def range(self, from_key: K | None, to_key: K | None) -> StoreIterator[K, V]:
        """Entries from ``from_key`` to ``to_key``, both included, in the order of the keys' bytes; None: open."""
        return self._scan(self._bound(from_key), self._bound(to_key))

    def reverse_range(self, from_key: K | None, to_key: K | None) -> StoreIterator[K, V]:
        """As ``range``, from the greatest key down."""
        return self._scan(self._bound(from_key), self._bound(to_key), reverse=True)

    def all(self) -> StoreIterator[K, V]:
        """All entries in the order of the keys' bytes."""
        return self._scan(None, None)

    def reverse_all(self) -> StoreIterator[K, V]:
        """All entries from the greatest key down."""
        return self._scan(None, None, reverse=True)

    def prefix_scan(
        self, prefix: Any, serialize: Callable[[Any], bytes] | None = None
    ) -> StoreIterator[K, V]:
        """Entries whose key's bytes begin with those of ``prefix``, which ``serialize`` (default: the key's serde)
        writes."""
        lower = (serialize or self.encode_key)(prefix)
        return self._scan(lower, after_prefix(lower), upper_inclusive=False)

    def approximate_count(self) -> int:
        """Roughly how many entries there are; what is only in the cache is not counted."""
        return self.overlay.approximate_count()

    def _scan(
        self,
        lower: bytes | None,
        upper: bytes | None,
        *,
        upper_inclusive: bool = True,
        reverse: bool = False,
    ) -> StoreIterator[K, V]:
        if lower is not None and upper is not None and lower > upper:
            log.warning(
                "store %s: a range whose first key sorts behind its last is empty; keys sort by their bytes, in which "
                "negative numbers follow the positive ones",
                self.name,
            )
            return self._iterator(iter(()))
        stored = self.overlay.scan(lower, upper, upper_inclusive=upper_inclusive, reverse=reverse)
        cache = self.cache
        if cache is None:
            return self._iterator(stored)
        keys = cast("KeyValueCache", cache).keys.between(lower, upper, upper_inclusive=upper_inclusive)
        if reverse:
            keys.reverse()
        merged = merge_cached(cache.snapshot(keys), stored, identity, identity, reverse=reverse)
        return self._iterator(self._uniform(merged))

    def _uniform(self, merged: Iterator[tuple[bytes, Any, bool]]) -> Iterator[tuple[bytes, Any]]:
        for key, item, from_cache in merged:
            yield (
                key,
                self._encode(item) if from_cache and self._cached_objects and item is not None else item,
            )

    def _iterator(self, pairs: Iterator[tuple[bytes, Any]]) -> StoreIterator[K, V]:
        decode_key = self.decode_key

        def decode(key: bytes, raw: bytes | None) -> tuple[Any, Any]:
            return decode_key(key), None if raw is None else self._public(self._decode(raw))

        return self._tracked(StoreIterator(self.name, pairs, decode))


class KeyValueStore(_AnyKeyValueStore[K, V]):
    """Values by key. Source: KeyValueStore, ChangeLoggingKeyValueBytesStore."""

    __slots__ = ()

    def write(self, key: bytes, value: Any) -> None:
        """Set the value of a serialised key; None deletes it."""
        self._write_item(key, value)

    def _encode(self, item: Any) -> bytes:
        return self._encode_value(item)

    def _decode(self, raw: bytes) -> Any:
        return self._decode_value(raw)

    def _public(self, item: Any) -> V:
        return cast("V", item)

    def _write_below(self, key: bytes, raw: bytes | None) -> None:
        self.overlay.put(key, raw)
        self._log(key, raw, self._cell.record[3], NO_HEADERS)

    def _forward(self, key: bytes, new: Any, old: Any) -> None:
        context = self._cell.record
        cast("FlushListener", self._listener)(key, new, old, context[3], context[4])


class TimestampedKeyValueStore(_AnyKeyValueStore[K, "ValueAndTimestamp[V]"], Generic[K, V]):
    """Values with their timestamps by key; ``read`` gives ``(value, timestamp)``. The changelog has the plain value
    with its timestamp as the record's. Source: ChangeLoggingTimestampedKeyValueBytesStore."""

    __slots__ = ("write",)

    def __init__(self, context: StoreContext, overlay: Overlay) -> None:
        super().__init__(context, overlay)
        #: Set the value (None: delete) and timestamp of a serialised key.
        self.write: Callable[[bytes, Any, int], None]
        if self.cache is None:
            self.write = self._write_through
        elif self._cached_objects:
            self.write = cast("KeyValueCache", self.cache).write
        else:
            self.write = self._write_cached_bytes

    def _write_through(self, key: bytes, value: Any, timestamp: int) -> None:
        if value is None:
            self._write_below(key, None)
            return
        data = self._encode_value(value)
        self.overlay.put(key, pack_int64(timestamp) + data)
        self._log(key, data, timestamp, NO_HEADERS)

    def _write_cached_bytes(self, key: bytes, value: Any, timestamp: int) -> None:
        raw = None if value is None else pack_int64(timestamp) + self._encode_value(value)
        context = self._cell.record
        size = entry_bytes(len(key), 0 if raw is None else len(raw), context)
        cast("KeyValueCache", self.cache).put(key, raw, context, size, dirty=True)

    def _encode(self, item: Any) -> bytes:
        value, timestamp = item
        return pack_int64(timestamp) + self._encode_value(value)

    def _decode(self, raw: bytes) -> Any:
        return self._decode_value(raw[TIMESTAMP_BYTES:]), unpack_int64(raw)[0]

    def _public(self, item: Any) -> ValueAndTimestamp[V]:
        return ValueAndTimestamp(*item)

    def _write_item(self, key: bytes, item: Any) -> None:
        # A None with a timestamp is a deletion, too (ValueAndTimestamp.make).
        super()._write_item(key, None if item is None or item[0] is None else tuple(item))

    def _write_below(self, key: bytes, raw: bytes | None) -> None:
        self.overlay.put(key, raw)
        if raw is None:
            self._log(key, None, self._cell.record[3], NO_HEADERS)
        else:
            self._log(key, raw[TIMESTAMP_BYTES:], unpack_int64(raw)[0], NO_HEADERS)

    def _write_object(self, key: bytes, item: Any) -> None:
        self._write_through(key, *(item or _DELETED))

    def _forward(self, key: bytes, new: Any, old: Any) -> None:
        context = self._cell.record
        value, timestamp = (None, context[3]) if new is None else new
        listener = cast("FlushListener", self._listener)
        listener(key, value, None if old is None else old[0], timestamp, context[4])
