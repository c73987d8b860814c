"""Key-value stores in memory that keep a number of entries: those that were read or written last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pystreams.record import NO_HEADERS
from pystreams.state.layer import Layer
from pystreams.state.overlay import Overlay
from pystreams.state.store import StoreContext, no_log


class LruLayer(Layer):
    """Deletes the entry that was not used for longest when there is one too many. The changelog hears of it, unless the
    entries have timestamps: then it keeps more than the map, which is bounded when it is restored, too.

    Which were used last is not known after a restart: then they stand as they were last written.
    Source: MemoryLRUCache, ChangeLoggingKeyValueBytesStore.
    """

    __slots__ = ("_cell", "_log", "_max_entries", "_order")

    def __init__(self, context: StoreContext, overlay: Overlay) -> None:
        super().__init__(context.spec, overlay)
        self._cell = context.cell
        self._max_entries = context.spec.max_entries or 0
        # As in Java, where what keeps the timestamps hides the map from what logs.
        self._log = no_log if self.timestamped else context.log_change
        #: The keys, those used last at the end.
        self._order: dict[bytes, None] = {}

    def get(self, key: bytes) -> bytes | None:
        """The bytes of a key, which is used by that."""
        value = self.overlay.get(key)
        if value is not None:
            self._use(key)
        return value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set bytes; None deletes. May delete another key."""
        self.overlay.put(key, value)
        evicted = self._changed(key, value)
        if evicted is not None:
            self.overlay.put(evicted, None)
            self._log(evicted, None, self._cell.record[3], NO_HEADERS)

    def _use(self, key: bytes) -> None:
        self._order.pop(key, None)
        self._order[key] = None

    def _changed(self, key: bytes, value: bytes | None) -> bytes | None:
        """Note a change; gives the key that has to go for it."""
        if value is None:
            self._order.pop(key, None)
            return None
        self._use(key)
        if len(self._order) <= self._max_entries:
            return None
        eldest = next(iter(self._order))
        del self._order[eldest]
        return eldest

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
        kept = dict(self.overlay.scan(None, None))
        used = [key for key in self._order if key in kept]
        known = set(used)
        self._order = dict.fromkeys([*(key for key in kept if key not in known), *used])
