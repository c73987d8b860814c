"""Write-back cache of a stream thread: one byte budget, one least-recently-used list per store.

Writes stay here until a commit or an eviction flushes them; then each store forwards its dirty entries in the order of
their last update. The weights, evictions and flushes are those of Kafka Streams
(org.apache.kafka.streams.state.internals.ThreadCache, NamedCache), because they determine which results are emitted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from pystreams.record import RecordContext

#: The weight of an entry in addition to its key, value, topic name and headers: three references (24), the dirty flag
#: (1), timestamp and offset (16), partition (4).
ENTRY_OVERHEAD_BYTES = 45

#: Key, item (None: deleted) and record context of an entry that is being flushed.
DirtyEntry: TypeAlias = tuple[Any, Any, RecordContext]

#: The context of an entry that was read from the store below: it has no weight and is never forwarded.
CLEAN_CONTEXT: RecordContext = ("", -1, -1, -1, ())

_by_update = attrgetter("updated")


def header_bytes(context: RecordContext) -> int:
    """The weight of a record's headers in the cache: names in characters, values in bytes."""
    return sum(len(name) + (len(value) if value is not None else 0) for name, value in context[4])


def entry_bytes(key_bytes: int, value_bytes: int, context: RecordContext) -> int:
    """The weight of an entry. Source: NamedCache.LRUNode, LRUCacheEntry, ProcessorRecordContext."""
    return ENTRY_OVERHEAD_BYTES + key_bytes + value_bytes + len(context[0] or "") + header_bytes(context)


class CacheEntry(msgspec.Struct, gc=False, eq=False):
    """A cached item. ``updated`` orders dirty entries by their last update; 0 means clean.

    The garbage collector does not track entries: a cache holds a hundred thousand of them, so a full collection would
    stop all threads for a tenth of a second. This is safe because nothing in an entry refers back to it.
    """

    key: Any
    item: Any
    context: RecordContext
    size: int
    updated: int


class ThreadCache:
    """The byte budget that all stores of one thread share. Only that thread uses it.

    A store evicts only its own entries: the store whose write exceeds the budget pays for it.
    """

    __slots__ = ("_caches", "loads", "max_bytes", "size_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size_bytes = 0
        #: Whether entries that are read from the store below are cached.
        self.loads = True
        self._caches: dict[str, NamedCache] = {}

    def named(self, namespace: str) -> NamedCache:
        """The cache of one store of one task; created at the first call."""
        cache = self._caches.get(namespace)
        if cache is None:
            cache = NamedCache(self, namespace)
        return cache

    @contextmanager
    def without_loading(self) -> Iterator[None]:
        """A context in which reads do not fill caches, and so do not evict or flush: for readers outside the topology.
        Source: CachingKeyValueStore.getInternal."""
        self.loads = False
        try:
            yield
        finally:
            self.loads = True

    def resize(self, max_bytes: int) -> None:
        """Change the budget. If it shrinks, the stores evict one entry each in turn, until the rest fits."""
        self.max_bytes = max_bytes
        while self.size_bytes > max_bytes and any(self._caches.values()):
            for cache in list(self._caches.values()):
                if self.size_bytes <= max_bytes:
                    return
                cache.evict()

    def add(self, cache: NamedCache) -> None:
        """Register ``cache``. Called by its constructor."""
        if cache.name in self._caches:
            raise ValueError(f"two stores named {cache.name} in one thread")
        self._caches[cache.name] = cache

    def remove(self, cache: NamedCache) -> None:
        """Unregister ``cache``, which is empty. Called when it closes."""
        self._caches.pop(cache.name, None)


class NamedCache:
    """The entries of one store, least recently used first.

    ``listener`` gets the dirty entries of a flush as one list, in order; it may read and write the cache again.
    Subclasses add the reads and writes per record of a kind of store, without further calls.
    """

    __slots__ = (
        "_clock",
        "_dirty",
        "_get",
        "_owner",
        "_touch",
        "entries",
        "listener",
        "misses",
        "name",
        "reads",
        "size_bytes",
    )

    def __init__(self, owner: ThreadCache, name: str) -> None:
        self.name = name
        self.size_bytes = 0
        #: The number of items that had to be read from the store below. Hits are not counted, because that alone would
        #: cost 2 % of the instructions of a count aggregation.
        self.misses = 0
        #: The number of reads of single entries; None: they are not counted, because counting costs time.
        self.reads: int | None = None
        self.entries: OrderedDict[Any, CacheEntry] = OrderedDict()
        self.listener: Callable[[list[DirtyEntry]], None] | None = None
        self._owner = owner
        self._dirty: list[CacheEntry] = []
        self._clock = 0
        self._get = self.entries.get
        self._touch = self.entries.move_to_end
        owner.add(self)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def dirty(self) -> bool:
        """Whether a flush would pass entries to the listener."""
        return bool(self._dirty)

    def get(self, key: Any) -> CacheEntry | None:
        """The entry of ``key``, which becomes the most recently used one."""
        entry = self._get(key)
        if entry is not None:
            self._touch(key)
        return entry

    def put(self, key: Any, item: Any, context: RecordContext, size: int, *, dirty: bool) -> None:
        """Set an entry of ``size`` bytes (see ``entry_bytes``). Evicts entries of this store beyond the budget."""
        entry = self._get(key)
        if entry is None:
            entry = self.entries[key] = CacheEntry(key, item, context, size, 0)
            delta = size
            self.added(key)
        else:
            if entry.updated and not dirty:
                raise ValueError(f"{self.name}: a clean entry must not replace the dirty one of {key!r}")
            self._touch(key)
            delta = size - entry.size
            entry.item, entry.context, entry.size = item, context, size
        if dirty:
            self._mark_dirty(entry)
        owner = self._owner
        self.size_bytes += delta
        owner.size_bytes += delta
        if owner.size_bytes > owner.max_bytes:
            self._shrink()

    def _mark_dirty(self, entry: CacheEntry) -> None:
        if not entry.updated:
            self._dirty.append(entry)
        self._clock = entry.updated = self._clock + 1

    @property
    def writes(self) -> int:
        """How often an item was written."""
        return self._clock

    def added(self, key: Any) -> None:
        """Called when a key is added to the cache; for subclasses with an index."""

    def removed(self, key: Any) -> None:
        """Called when a key is removed from the cache; for subclasses with an index."""

    def _shrink(self) -> None:
        owner, entries = self._owner, self.entries
        # A flush may fill other stores' caches. When this one is empty, it has nothing more to evict.
        while owner.size_bytes > owner.max_bytes and entries:
            key, entry = entries.popitem(last=False)
            self.removed(key)
            size = entry.size
            self.size_bytes -= size
            if entry.updated:
                self._flush(entry)
            # The size is subtracted only after the flush, so entries that it adds to other caches count on top of it.
            owner.size_bytes -= size

    def evict(self) -> None:
        """Remove the least recently used entry. If it is dirty, all dirty entries are flushed, this one first."""
        if self.entries:
            key, entry = self.entries.popitem(last=False)
            self.removed(key)
            self.size_bytes -= entry.size
            if entry.updated:
                self._flush(entry)
            self._owner.size_bytes -= entry.size

    def flush(self) -> None:
        """Pass all dirty entries to the listener in the order of their last update, and remove the tombstones among
        them."""
        if self._dirty:
            self._flush(None)

    def _flush(self, evicted: CacheEntry | None) -> None:
        if self.listener is None:
            raise ValueError(f"{self.name}: its cache has no listener for a flush")
        dirty = self._dirty
        dirty.sort(key=_by_update)
        if evicted is not None:
            dirty.remove(evicted)
            dirty.insert(0, evicted)
        # The listener may write to this cache again. So it gets an empty list, and the flushed batch does not change.
        self._dirty = []
        batch = [(entry.key, entry.item, entry.context) for entry in dirty]
        for entry in dirty:
            entry.updated = 0
        self.listener(self.handed_on(batch))
        for entry in dirty:
            if entry.item is None and not entry.updated and self._get(entry.key) is entry:
                del self.entries[entry.key]
                self.removed(entry.key)
                self.size_bytes -= entry.size
                self._owner.size_bytes -= entry.size

    def handed_on(self, batch: list[DirtyEntry]) -> list[DirtyEntry]:
        """The entries of a batch that the listener gets; for subclasses that also cache other entries."""
        return batch

    def clear(self) -> None:
        """Remove all entries, dirty or not: they belong to an aborted transaction."""
        self._owner.size_bytes -= self.size_bytes
        self.size_bytes = 0
        self.entries.clear()
        self._dirty = []

    def close(self) -> None:
        """Remove all entries and unregister from the thread's cache."""
        self.clear()
        self._owner.remove(self)
