"""The store of one side of a stream-stream join: every record, by key and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from pystreams.state.formats import SEQUENCE_MAX
from pystreams.state.layers.window_layer import WindowLayer
from pystreams.state.store import StoreContext
from pystreams.state.stores.header_items import TimestampedHeaderItems
from pystreams.state.stores.items import Decode, PlainItems
from pystreams.state.stores.window import WindowStore

K = TypeVar("K")
V = TypeVar("V")


class _JoinItems(PlainItems[tuple[bytes, int]]):
    """Values whose changelog records have the headers of the original records. Source:
    ChangeLoggingTimestampedWindowBytesStoreWithHeaders over PlainToHeadersWindowStoreAdapter."""

    __slots__ = ()

    def _write_bytes(self, address: tuple[bytes, int], raw: bytes | None) -> None:
        context = self._cell.record
        self._log(self._put_below(address, raw), raw, context[3], context[4])


class _JoinHeaderItems(TimestampedHeaderItems[tuple[bytes, int]]):
    """Values whose headers and timestamps are both in the store and in the changelog."""

    __slots__ = ()

    def put(self, address: tuple[bytes, int], item: Any, key: bytes | None = None) -> None:
        kept = None if item is None else (item, address[1], self._cell.record[4])
        super().put(address, kept, key)


def _nothing(_: int) -> None:
    """Ignore hidden records: no listener is called for them."""


class JoinWindowStore(WindowStore[K, V], Generic[K, V]):
    """A window store with duplicates: each record is a window that starts at its timestamp."""

    __slots__ = ("_retention_ms", "_value_of", "on_hidden")

    def __init__(self, context: StoreContext, layer: WindowLayer) -> None:
        with_headers = context.spec.headers
        super().__init__(context, layer, _JoinHeaderItems if with_headers else _JoinItems)
        self._retention_ms = context.spec.retention_ms
        #: Called if the retention hides a part of the span of ``between``, with the length (ms) of this part.
        self.on_hidden: Callable[[int], None] = _nothing
        decode = self._items.decode
        #: Deserializes a record's value.
        self._value_of: Decode = (lambda raw: decode(raw)[0]) if with_headers else decode

    @property
    def sequence(self) -> int:
        """The sequence number of the last record that was written."""
        return self.layer.sequence

    @property
    def stream_time(self) -> int:
        """The greatest timestamp that was written."""
        return self.layer.time.ms

    def keeps(self, time: int) -> bool:
        """Whether a record with this time would be kept, and not dropped as too old."""
        now = self.stream_time
        return time > now - self._retention_ms or not self.layer.layout.expired(time, now)

    def go_on(self, written: int, stream_time: int) -> None:
        """Continue after this many records and at this stream time, which may be beyond the restored contents."""
        self.layer.sequence = written & SEQUENCE_MAX
        self.layer.time.go_on(stream_time)

    def between(self, key: bytes, time_from: int, time_to: int) -> Iterator[tuple[int, V]]:
        """(timestamp, value) of a serialized key's records in a span of time, both inclusive, in the order of time."""
        first = self.layer.time.ms - self._retention_ms + 1
        if time_from < first:
            self.on_hidden(first - time_from)
            if time_to < first:
                return
            time_from = first
        value_of = self._value_of
        for start, raw in self.layer.fetch_visible(key, time_from, time_to):
            yield start, value_of(raw)
