"""Key-value stores in memory with a maximum number of entries: the most recently used ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cachetools import LRUCache

from pystreams.record import NO_HEADERS
from pystreams.state.layers.layer import Layer
from pystreams.state.overlay import Overlay
from pystreams.state.store import StoreContext, no_log


class LruLayer(Layer):
    """Evicts the least recently used entry when there is one too many. The eviction is logged to the changelog,
    except in stores with timestamps: their changelog keeps more entries, which are evicted again at a restore.

    The order of use is lost at a restart: then the order of the last writes counts.
    Source: MemoryLRUCache, ChangeLoggingKeyValueBytesStore.
    """

    __slots__ = ("_cell", "_log", "_max_entries", "_used")

    #: The order of use is not in the table.
    content_in_table = False

    def __init__(self, context: StoreContext, overlay: Overlay) -> None:
        super().__init__(context.spec, overlay)
        self._cell = context.cell
        self._max_entries = context.spec.max_entries or 0
        # As in Java, where the wrapper that adds timestamps hides the map from the logging store.
        self._log = no_log if self.form.timestamped else context.log_change
        #: The keys in the order of use. It has no limit of its own, because with limit 0 it would evict its first key.
        self._used: LRUCache[bytes, None] = LRUCache(math.inf)

    def get(self, key: bytes) -> bytes | None:
        """The bytes of a key, which becomes the most recently used one."""
        value = self.overlay.get(key)
        if value is not None:
            self._used[key] = None
        return value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the bytes of a key; None deletes. May evict another key."""
        self.overlay.put(key, value)
        evicted = self._changed(key, value)
        if evicted is not None:
            self.overlay.put(evicted, None)
            self._log(evicted, None, self._cell.record[3], NO_HEADERS)

    def _changed(self, key: bytes, value: bytes | None) -> bytes | None:
        """Record a change. Returns the key to evict, if there is one."""
        used = self._used
        if value is None:
            used.pop(key, None)
            return None
        used[key] = None
        return used.popitem()[0] if len(used) > self._max_entries else None

    def restored(self, records: Iterable[tuple[bytes, bytes | None]]) -> Mapping[Any, bytes | None]:
        changes: dict[bytes, bytes | None] = {}
        for key, value in records:
            changes[key] = value
            evicted = self._changed(key, value)
            if evicted is not None:
                changes[evicted] = None
        return changes

    def abort(self) -> None:
        super().abort()
        kept, used = dict(self.overlay.scan(None, None)), self._used
        known = [used.popitem()[0] for _ in range(len(used))]
        # First the keys that came back, then those that were never removed.
        for key in (*kept, *(key for key in known if key in kept)):
            used[key] = None
