"""Buffers of stream records that wait for late rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pystreams.record import NO_HEADERS, RecordContext
from pystreams.state.formats import SEQUENCE_MAX, TIMESTAMP_BYTES, pack_int64
from pystreams.state.overlay import Overlay
from pystreams.state.store import Logged, Store, StoreContext, plain_pairs
from pystreams.state.stores.buffer_value import BufferedChange, unpacked
from pystreams.stream_time import Observed

#: The prefix of keys, followed by time, record key, and a number that makes them unique.
_PREFIX = b"\x00"
_KEY_FROM = len(_PREFIX) + TIMESTAMP_BYTES
_SEQUENCE_BYTES = 4


class JoinBuffer(Store):
    """Records in the order of time, then key, then arrival. Every change is logged at once.

    Source: RocksDBTimeOrderedKeyValueBuffer, PrefixedWindowKeySchemas.TimeFirstWindowKeySchema.
    """

    __slots__ = ("_log", "decode_value", "encode_value", "overlay", "sequence", "time")

    def __init__(self, context: StoreContext, overlay: Overlay) -> None:
        super().__init__(context)
        serde = context.spec.value_serde
        #: Serializes and deserializes a value.
        self.encode_value: Callable[[Any], bytes] = serde.serializer(context.topic)
        self.decode_value: Callable[[bytes], Any] = serde.deserializer(context.topic)
        self.overlay = overlay
        self._log = context.log_change
        #: The number of the last record.
        self.sequence = 0
        #: The stream time of the join, which sets it.
        self.time: Observed | None = None

    def logged(self) -> Iterator[Logged]:
        return plain_pairs(self.overlay.scan(None, None))

    def put(self, key: Any, value: Any, context: RecordContext) -> None:
        """Store a record."""
        timestamp = context[3]
        self.sequence += 1
        number = (self.sequence & SEQUENCE_MAX).to_bytes(_SEQUENCE_BYTES, "big")
        place = _PREFIX + pack_int64(timestamp) + self.encode_key(key) + number
        packed = BufferedChange(0, None, None, self.encode_value(value), context).packed()
        self.overlay.put(place, packed)
        self._log(place, packed, None, NO_HEADERS)

    def due(self, since_ms: int, until_ms: int) -> Iterator[tuple[bytes, tuple[bytes, bytes], RecordContext]]:
        """(place, bytes of key and value, context) of the records in a span of time, as of the call. Starting at
        ``since_ms`` avoids earlier, removed records, which RocksDB keeps as deletions for a time."""
        if until_ms < 0:
            return
        upper = _PREFIX + pack_int64(until_ms + 1)
        lower = _PREFIX + pack_int64(since_ms)
        for place, packed in self.overlay.scan(lower, upper, upper_inclusive=False):
            entry = unpacked(packed)
            yield place, (place[_KEY_FROM:-_SEQUENCE_BYTES], entry.new or b""), entry.context

    def remove(self, place: bytes) -> None:
        """Delete a record."""
        self.overlay.put(place, None)
        self._log(place, None, None, NO_HEADERS)
