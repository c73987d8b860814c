"""Buffers of held-back changes: the last change of each key, in the order of time.

They are kept in memory. Changes are written to the changelog only at a commit, so a change that is added and removed
between two commits costs nothing there. Source: InMemoryTimeOrderedKeyValueChangeBuffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Any, ClassVar

from pystreams.record import NO_HEADERS, RecordContext
from pystreams.state.layers.layer import AsLogged, Layer
from pystreams.state.overlay import Overlay
from pystreams.state.spec import StoreSpec
from pystreams.state.store import Logged, Store, StoreContext
from pystreams.state.stores.buffer_value import BufferedChange, unpacked
from pystreams.state.stores.java_bytes import BytesSet

#: The first time of an empty buffer: later than all others.
NEVER = 0x7FFFFFFFFFFFFFFF


class BufferLayer(Layer):
    """The entries of a buffer, by the bytes of their keys. An abort reverts the changes since the last commit."""

    __slots__ = ("_before", "_order", "dirty", "entries", "size_bytes")

    content_in_table = False

    def __init__(self, spec: StoreSpec, overlay: Overlay) -> None:
        super().__init__(spec, overlay)
        self.entries: dict[bytes, BufferedChange] = {}
        #: The size of all entries, computed as for the user's limit.
        self.size_bytes = 0
        #: Keys that have changed since the changelog was last written.
        self.dirty = BytesSet()
        #: A heap of (time, key); outdated elements are skipped.
        self._order: list[tuple[int, bytes]] = []
        #: The entries of changed keys at the last commit.
        self._before: dict[bytes, BufferedChange | None] = {}

    def set(self, key: bytes, entry: BufferedChange | None) -> None:
        """Replace an entry; None deletes it."""
        entries = self.entries
        replaced = entries.get(key)
        if key not in self._before:
            self._before[key] = replaced
        self.dirty.add(key)
        self._set(key, entry, replaced)

    def _set(self, key: bytes, entry: BufferedChange | None, replaced: BufferedChange | None) -> None:
        if replaced is not None:
            self.size_bytes -= replaced.size_bytes(key)
        if entry is None:
            self.entries.pop(key, None)
            return
        self.size_bytes += entry.size_bytes(key)
        self.entries[key] = entry
        if replaced is None or replaced.time != entry.time:
            heappush(self._order, (entry.time, key))

    def first(self) -> bytes | None:
        """The key of the earliest entry, at equal times that with the lowest key; None if the buffer is empty."""
        order, entries = self._order, self.entries
        while order:
            time, key = order[0]
            entry = entries.get(key)
            if entry is not None and entry.time == time:
                return key
            heappop(order)
        return None

    def restored(self, records: Iterable[tuple[bytes, bytes | None]]) -> Mapping[Any, bytes | None]:
        for key, value in records:
            self._set(key, None if value is None else unpacked(value), self.entries.get(key))
        return {}

    def as_logged(self, changelog_key: bytes, time: int) -> AsLogged:
        entry = self.entries.get(changelog_key)
        return (None, None, None) if entry is None else (entry.packed(), None, self.spec.changelog_headers)

    def after_commit(self) -> None:
        self._before.clear()

    def abort(self) -> None:
        for key, entry in self._before.items():
            self._set(key, entry, self.entries.get(key))
        self._before.clear()
        self.dirty.clear()


class ChangeBuffer(Store):
    """The buffer of an operator in one task. Nothing else reads it."""

    __slots__ = ("_layer", "_log", "decode_value", "encode_value")

    logs_at_commit: ClassVar[bool] = True

    def __init__(self, context: StoreContext, layer: BufferLayer) -> None:
        super().__init__(context)
        serde = context.spec.value_serde
        #: Serializes and deserializes a value.
        self.encode_value: Callable[[Any], bytes] = serde.serializer(context.topic)
        self.decode_value: Callable[[bytes], Any] = serde.deserializer(context.topic)
        self._layer = layer
        self._log = context.log

    def __len__(self) -> int:
        """The number of keys with a held-back change."""
        return len(self._layer.entries)

    @property
    def size_bytes(self) -> int:
        """The size that is compared with limits: keys, values and record contexts."""
        return self._layer.size_bytes

    @property
    def first_time(self) -> int:
        """The time of the first entry; ``NEVER`` if there is none."""
        key = self._layer.first()
        return NEVER if key is None else self._layer.entries[key].time

    def logged(self) -> Iterator[Logged]:
        return ((key, entry.packed(), None) for key, entry in sorted(self._layer.entries.items()))

    def put(self, key: Any, time: int, new: Any, old: Any, context: RecordContext) -> None:
        """Hold back a change. It replaces a held-back change of the same key, and takes its position."""
        key_bytes, encode = self.encode_key(key), self.encode_value
        new_bytes = None if new is None else encode(new)
        old_bytes = None if old is None else encode(old)
        held = self._layer.entries.get(key_bytes)
        prior = old_bytes if held is None else held.prior
        place = time if held is None else held.time
        self._layer.set(key_bytes, BufferedChange(place, prior, old_bytes, new_bytes, context))

    def first(self) -> tuple[bytes, BufferedChange]:
        """The earliest entry. The buffer must not be empty."""
        key = self._layer.first()
        assert key is not None, "the buffer is empty"
        return key, self._layer.entries[key]

    def remove(self, key: bytes) -> None:
        """Delete the entry of a key."""
        self._layer.set(key, None)

    def held(self, key: Any) -> BufferedChange | None:
        """The held-back change of a key; None if there is none."""
        return self._layer.entries.get(self.encode_key(key))

    def decoded(self, value: bytes | None) -> Any:
        """The deserialized value of an entry."""
        return None if value is None else self.decode_value(value)

    def log_held_changes(self) -> None:
        dirty, entries, log = self._layer.dirty, self._layer.entries, self._log
        if log is not None:
            for key in dirty.in_java_order():
                entry = entries.get(key)
                if entry is None:
                    log(key, None, None, NO_HEADERS)
                else:
                    log(key, entry.packed(), None, self.spec.changelog_headers)
        dirty.clear()
