"""Key-value stores: with plain values, or with the timestamp of each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from pystreams.record import Headers
from pystreams.state.cache.item_cache import ItemCache
from pystreams.state.cache.thread_cache import CLEAN_CONTEXT, ENTRY_OVERHEAD_BYTES, CacheEntry
from pystreams.state.formats import ValueAndTimestamp
from pystreams.state.iterators import StoreIterator
from pystreams.state.overlay import Overlay
from pystreams.state.sorted_map import SortedKeys
from pystreams.state.store import (
    Logged,
    Store,
    StoreContext,
    after_prefix,
    plain_pairs,
)
from pystreams.state.stores.header_items import TimestampedHeaderItems
from pystreams.state.stores.items import Below, Failed, Items, PlainItems, TimestampedItems, raised

K = TypeVar("K")
V = TypeVar("V")

#: Called for each flushed entry with key bytes, new value, old value, timestamp, headers; None stands for no value.
FlushListener = Callable[[bytes, Any, Any, int, Headers], None]


class KeyValueCache(ItemCache):
    """The cache of a key-value store. Entries read from the store below are cached as clean entries."""

    __slots__ = ("keys",)

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.keys: SortedKeys[bytes] = SortedKeys(self.entries)

    def _load(self, address: bytes) -> Any:
        self.misses += 1
        raw = self._below(address)
        if raw is None:
            return None
        item = self._decode(raw)
        owner = self._owner
        if not owner.loads:
            return item
        size = ENTRY_OVERHEAD_BYTES + len(address) + len(raw)
        self.entries[address] = CacheEntry(address, item, CLEAN_CONTEXT, size, 0)
        self.keys.added(address)
        self.size_bytes += size
        owner.size_bytes += size
        if owner.size_bytes > owner.max_bytes:
            self._shrink()
        return item

    def added(self, key: bytes) -> None:
        self.keys.added(key)

    def removed(self, key: bytes) -> None:
        self.keys.removed(key)

    def clear(self) -> None:
        super().clear()
        self.keys.clear()


class _AnyKeyValueStore(Store, Generic[K, V]):
    """The common part of key-value stores. The form of values is up to ``items``."""

    __slots__ = ("_items", "overlay", "read", "read_flushed")

    def __init__(self, context: StoreContext, overlay: Overlay, items: Items[bytes]) -> None:
        super().__init__(context)
        self._items = items
        self.overlay = overlay
        self.cache = items.cache
        #: Returns the item of a serialized key, or None.
        self.read: Callable[[bytes], Any] = items.read
        #: Returns the item of a serialized key as of the last flush, or None.
        self.read_flushed: Callable[[bytes], Any] = items.read_flushed

    def on_flush(self, listener: FlushListener, send_old_values: bool, failed: Failed = raised) -> None:
        """As ``Items.on_flush``."""
        self._items.on_flush(listener, send_old_values, failed)

    def without_headers(self) -> Self:
        return self._with_items(self._items.without_headers()) if self.spec.headers else self

    # The methods for programs.

    def get(self, key: K) -> V | None:
        """The value of ``key``, or None."""
        return cast("V | None", self._items.get(self._encoded(key)))

    def put(self, key: K, value: V | None) -> None:
        """Set the value of ``key``; None deletes it."""
        self._items.put(self._encoded(key), value)

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Set the value of ``key`` if it has none. Returns the existing value."""
        key_bytes = self._encoded(key)
        found: V | None = self._items.get(key_bytes)
        if found is None:
            self._items.put(key_bytes, value)
        return found

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Set several values, in order."""
        for entry in entries:
            if not isinstance(entry, tuple | list):
                raise TypeError(
                    f"put_all of store {self.name} takes pairs (key, value); for a dict give its items()"
                )
            key, value = entry
            self.put(key, value)

    def delete(self, key: K) -> V | None:
        """Delete ``key``. Returns its old value."""
        key_bytes = self._encoded(key)
        found: V | None = self._items.get(key_bytes)
        self._items.put(key_bytes, None)
        return found

    def range(self, from_key: K | None, to_key: K | None) -> StoreIterator[K, V]:
        """Entries from ``from_key`` to ``to_key``, both inclusive, in the order of the keys' bytes; None: open end."""
        return self._scan(self._bound(from_key), self._bound(to_key))

    def reverse_range(self, from_key: K | None, to_key: K | None) -> StoreIterator[K, V]:
        """As ``range``, in descending order."""
        return self._scan(self._bound(from_key), self._bound(to_key), reverse=True)

    def all(self) -> StoreIterator[K, V]:
        """All entries in the order of the keys' bytes."""
        return self._scan(None, None)

    def reverse_all(self) -> StoreIterator[K, V]:
        """All entries, in descending order."""
        return self._scan(None, None, reverse=True)

    def prefix_scan(
        self, prefix: Any, serialize: Callable[[Any], bytes] | None = None
    ) -> StoreIterator[K, V]:
        """Entries whose key's bytes start with the bytes of ``prefix``, which ``serialize`` (default: the key's serde)
        returns."""
        lower = (serialize or self._encoded)(prefix)
        return self._scan(lower, after_prefix(lower), upper_inclusive=False)

    def approximate_count(self) -> int:
        """Roughly the number of entries; entries that are only in the cache are not counted."""
        return self.overlay.approximate_count()

    def _scan(
        self,
        lower: bytes | None,
        upper: bytes | None,
        *,
        upper_inclusive: bool = True,
        reverse: bool = False,
    ) -> StoreIterator[K, V]:
        if self._reversed_bounds(lower, upper):
            return self._iterator(iter(()))
        stored = self.overlay.scan(lower, upper, upper_inclusive=upper_inclusive, reverse=reverse)
        if self.cache is None:
            return self._iterator(stored)
        cache = cast("KeyValueCache", self.cache)
        keys = cache.keys.between(lower, upper, upper_inclusive=upper_inclusive)
        if reverse:
            keys.reverse()
        merged = self._items.over_stored(cache.walk_over(keys), stored, reverse=reverse)
        return self._iterator(merged)

    def _iterator(self, pairs: Iterator[tuple[bytes, Any]]) -> StoreIterator[K, V]:
        decode_key, value_of = self.decode_key, self._items.public_of
        return self._tracked(
            StoreIterator(self.name, pairs, lambda key, raw: (decode_key(key), value_of(raw)))
        )


class KeyValueStore(_AnyKeyValueStore[K, V]):
    """Values by key. Source: KeyValueStore, ChangeLoggingKeyValueBytesStore."""

    __slots__ = ("write",)

    def __init__(self, context: StoreContext, overlay: Overlay, below: Below[bytes]) -> None:
        items = PlainItems(context, below, KeyValueCache)
        super().__init__(context, overlay, items)
        #: Sets the value of a serialized key; None deletes it.
        self.write: Callable[[bytes, Any], None] = items.put

    def logged(self) -> Iterator[Logged]:
        return plain_pairs(self.overlay.scan(None, None))


class TimestampedKeyValueStore(_AnyKeyValueStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """Values with their timestamps by key; ``read`` returns ``(value, timestamp)``. In the changelog the value is
    plain, and the timestamp is the record's. With headers: ``TimestampedHeaderItems``."""

    __slots__ = ("write", "write_past_cache")

    def __init__(self, context: StoreContext, overlay: Overlay, below: Below[bytes]) -> None:
        kept = TimestampedHeaderItems if context.spec.headers else TimestampedItems
        items = kept(context, below, KeyValueCache)
        super().__init__(context, overlay, items)
        #: Sets the value (None: delete) and timestamp of a serialized key.
        self.write: Callable[[bytes, Any, int], None] = items.write
        #: As ``TimestampedItems.write_past_cache``.
        self.write_past_cache = items.write_past_cache

    if TYPE_CHECKING:  # A plain tuple is accepted, too.

        def put(self, key: K, value: tuple[V | None, int] | None) -> None: ...

        def put_if_absent(
            self, key: K, value: tuple[V | None, int] | None
        ) -> ValueAndTimestamp[V] | None: ...

        def put_all(self, entries: Iterable[tuple[K, tuple[V | None, int] | None]]) -> None: ...

    def logged(self) -> Iterator[Logged]:
        return self.spec.form.logged(self.overlay.scan(None, None))
