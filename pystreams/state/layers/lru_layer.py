"""Key-value stores in memory that keep a number of entries: those that were read or written last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cachetools import LRUCache

from pystreams.record import NO_HEADERS
from pystreams.state.layers.layer import Layer
from pystreams.state.overlay import Overlay
from pystreams.state.store import StoreContext, no_log


class LruLayer(Layer):
    """Deletes the entry that was not used for longest when there is one too many. The changelog hears of it, unless the
    entries have timestamps: then it keeps more than the map, which is bounded when it is restored, too.

    Which were used last is not known after a restart: then they stand as they were last written.
    Source: MemoryLRUCache, ChangeLoggingKeyValueBytesStore.
    """

    __slots__ = ("_cell", "_log", "_max_entries", "_used")

    def __init__(self, context: StoreContext, overlay: Overlay) -> None:
        super().__init__(context.spec, overlay)
        self._cell = context.cell
        self._max_entries = context.spec.max_entries or 0
        # As in Java, where what keeps the timestamps hides the map from what logs.
        self._log = no_log if self.form.timestamped else context.log_change
        #: The keys by when they were used. It has no bound of its own: a map of none must let go of its first key.
        self._used: LRUCache[bytes, None] = LRUCache(math.inf)

    def get(self, key: bytes) -> bytes | None:
        """The bytes of a key, which is used by that."""
        value = self.overlay.get(key)
        if value is not None:
            self._used[key] = None
        return value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set bytes; None deletes. May delete another key."""
        self.overlay.put(key, value)
        evicted = self._changed(key, value)
        if evicted is not None:
            self.overlay.put(evicted, None)
            self._log(evicted, None, self._cell.record[3], NO_HEADERS)

    def _changed(self, key: bytes, value: bytes | None) -> bytes | None:
        """Note a change; gives the key that has to go for it."""
        used = self._used
        if value is None:
            used.pop(key, None)
            return None
        used[key] = None
        return used.popitem()[0] if len(used) > self._max_entries else None

    def restored(self, records: Sequence[tuple[bytes, bytes | None]]) -> Mapping[Any, bytes | None]:
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
        # Those that came back, then those that were there all the time.
        for key in (*kept, *(key for key in known if key in kept)):
            used[key] = None
