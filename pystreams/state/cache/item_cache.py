"""The cache of a store: the last written items, by address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pystreams.record import ContextCell
from pystreams.serde.primitives import fixed_width
from pystreams.state.cache.thread_cache import (
    ENTRY_OVERHEAD_BYTES,
    CacheEntry,
    NamedCache,
    ThreadCache,
    header_bytes,
)
from pystreams.state.formats import TIMESTAMP_BYTES


class ItemCache(NamedCache):
    """Items by address (see ``Items``): objects if they are immutable, else their bytes.

    Subclasses keep the indexes for scans of their kind of store.
    """

    #: The weight of an address in addition to its record key.
    address_bytes = 0

    __slots__ = (
        "_below",
        "_cell",
        "_decode",
        "_fixed_bytes",
        "_fixed_type",
        "_least",
        "_most",
        "_overhead_bytes",
        "_serialize",
    )

    def __init__(
        self,
        owner: ThreadCache,
        name: str,
        cell: ContextCell,
        below: Callable[[Any], bytes | None],
        decode: Callable[[bytes], Any],
        serialize: Callable[[Any], bytes],
    ) -> None:
        super().__init__(owner, name)
        self._cell = cell
        self._below = below
        self._decode = decode
        self._serialize = serialize
        self._overhead_bytes = ENTRY_OVERHEAD_BYTES + self.address_bytes
        fixed = fixed_width(serialize)
        #: Values whose size is known without serializing them: their type, their bounds, the bytes of an item.
        self._fixed_type: Any = None if fixed is None else fixed.type
        self._least, self._most = (0.0, 0.0) if fixed is None else (fixed.least, fixed.most)
        self._fixed_bytes = 0 if fixed is None else TIMESTAMP_BYTES + fixed.width

    def read(self, address: Any) -> Any:
        """The item at ``address``; None if it was deleted or never set."""
        entry = self._get(address)
        if entry is None:
            return self._load(address)
        self._touch(address)
        return entry.item

    def _load(self, address: Any) -> Any:
        self.misses += 1
        raw = self._below(address)
        return None if raw is None else self._decode(raw)

    def walk_over(self, addresses: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """(address, item) of cached entries, read one by one; an item becomes recently used when it is read."""
        for address in addresses:
            entry = self.get(address)
            yield address, self.from_store(address) if entry is None else entry.item

    def from_store(self, address: Any) -> Any:
        """The item of an entry that writes of the reader have evicted, or flushed and deleted, since its walk began.
        The walk through the store below, which began at the same time, does not have it."""
        raw = self._below(address)
        return None if raw is None else self._decode(raw)

    def write(self, address: Any, value: Any, timestamp: int, key: bytes | None = None) -> None:
        """Set the item ``(value, timestamp)``; ``key`` is the record key, if the address is not the record key itself.

        It repeats the code of ``put``: this is the hot path of every aggregation, and a call would cost 10 %.
        """
        context = self._cell.record
        topic = context[0]
        size = self._overhead_bytes + len(address if key is None else key)
        if topic:
            size += len(topic)
        if context[4]:
            size += header_bytes(context)
        item = None
        if value is not None:
            item = (value, timestamp)
            kind = self._fixed_type
            if kind is not None and type(value) is kind and self._least <= value <= self._most:
                size += self._fixed_bytes
            else:
                # Serialized only to get the size. So a value that cannot be serialized is refused here, and not only
                # at the flush.
                size += TIMESTAMP_BYTES + len(self._serialize(value))
        clock = self._clock = self._clock + 1
        owner = self._owner
        entry = self._get(address)
        if entry is None:
            entry = self.entries[address] = CacheEntry(address, item, context, size, clock)
            self._dirty.append(entry)
            self.added(address)
            self.size_bytes += size
            owner.size_bytes += size
        else:
            self._touch(address)
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
