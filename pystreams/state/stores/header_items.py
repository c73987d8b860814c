"""Items with the headers of their records. Programs see tuples with headers, DSL steps see no headers, and the cache
has bytes.

A value is logged with its headers, a deletion with those of the current record. Source: KIP-1271,
MeteredTimestampedKeyValueStoreWithHeaders, MeteredSessionStoreWithHeaders, ChangeLogging...BytesStoreWithHeaders.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from pystreams.record import NO_HEADERS
from pystreams.state.cache.item_cache import ItemCache
from pystreams.state.formats import (
    TIMESTAMP_BYTES,
    AggregationWithHeaders,
    ValueAndTimestamp,
    ValueTimestampHeaders,
    pack_int64,
    unpack_int64,
)
from pystreams.state.store import StoreContext
from pystreams.state.stores.items import Below, Decode, Encode, Listener, PlainItems, TimestampedItems
from pystreams.state.value_forms import after_headers, headers_before, packed_headers

A = TypeVar("A")


class TimestampedHeaderItems(TimestampedItems[A]):
    """Items ``(value, timestamp)``, shown as ``ValueTimestampHeaders``; as bytes headers, timestamp and value.

    A write of a DSL step has no headers, or those of the current record if the spec ``logs_headers``.
    """

    form: ClassVar[str] = "(value, timestamp, headers)"

    __slots__ = ("_of_record",)

    caches_objects: ClassVar[bool] = False

    def __init__(self, context: StoreContext, below: Below[A], cache: type[ItemCache]) -> None:
        super().__init__(context, below, cache)
        self._of_record = context.spec.logs_headers

    def _codec(self, encode_value: Encode, decode_value: Decode) -> tuple[Encode, Decode]:
        self._encode_value = encode_value

        def encode(item: tuple[Any, ...]) -> bytes:
            value, timestamp, *headers = item
            return packed_headers(*headers or (NO_HEADERS,)) + pack_int64(timestamp) + encode_value(value)

        def decode(raw: bytes) -> tuple[Any, int]:
            position = after_headers(raw)
            return decode_value(raw[position + TIMESTAMP_BYTES :]), unpack_int64(raw, position)[0]

        return encode, decode

    def get(self, address: A) -> Any:
        return self.public_of(self._raw(address))

    def public_of(self, raw: bytes | None) -> Any:
        if raw is None:
            return None
        value, timestamp = self.decode(raw)
        if self._shows_headers:
            return ValueTimestampHeaders(value, timestamp, headers_before(raw)[0])
        return ValueAndTimestamp(value, timestamp)

    def encoded(self, value: Any, timestamp: int) -> bytes | None:
        return None if value is None else self._packed(value, timestamp)

    def _packed(self, value: Any, timestamp: int) -> bytes:
        headers = self._cell.record[4] if self._of_record else NO_HEADERS
        return packed_headers(headers) + pack_int64(timestamp) + self._encode_value(value)

    def _write_through(self, address: A, value: Any, timestamp: int, key: bytes | None = None) -> None:
        self._write_bytes(address, self.encoded(value, timestamp))

    def _write_cached_bytes(self, address: A, value: Any, timestamp: int, key: bytes | None = None) -> None:
        assert self.cache is not None
        raw = self.encoded(value, timestamp)
        self._put_cached(self.cache, address, raw, raw, key)

    def _write_bytes(self, address: A, raw: bytes | None) -> None:
        changelog_key = self._put_below(address, raw) or address
        if raw is None:
            context = self._cell.record
            self._log(changelog_key, None, context[3], context[4])
        else:
            headers, position = headers_before(raw)
            value = raw[position + TIMESTAMP_BYTES :]
            self._log(changelog_key, value, unpack_int64(raw, position)[0], headers)


class PlainHeaderItems(PlainItems[A]):
    """Values, shown as ``AggregationWithHeaders``; as bytes headers and value."""

    form: ClassVar[str] = "AggregationWithHeaders(aggregation, headers)"

    __slots__ = ()

    caches_objects: ClassVar[bool] = False

    def __init__(self, context: StoreContext, below: Below[A], cache: type[ItemCache]) -> None:
        super().__init__(context, below, cache)
        self._decode_flushed = self._with_headers

    def _codec(self, encode_value: Encode, decode_value: Decode) -> tuple[Encode, Decode]:
        def encode(item: object) -> bytes:
            if not isinstance(item, AggregationWithHeaders):
                raise TypeError("the headers are missing")
            return packed_headers(item.headers) + encode_value(item.aggregation)

        return encode, lambda raw: decode_value(raw[after_headers(raw) :])

    def get(self, address: A) -> Any:
        return self.public_of(self._raw(address))

    def public_of(self, raw: bytes | None) -> Any:
        if raw is None:
            return None
        return self._with_headers(raw) if self._shows_headers else self.decode(raw)

    def put(self, address: A, item: Any, key: bytes | None = None) -> None:
        deletes = item is None or (isinstance(item, AggregationWithHeaders) and item.aggregation is None)
        super().put(address, None if deletes else item, key)

    def encode_value(self, value: Any) -> bytes:
        """The bytes of a value without headers, for ``put_encoded``."""
        return self.encode(AggregationWithHeaders(value, NO_HEADERS))

    def _with_headers(self, raw: bytes) -> AggregationWithHeaders[Any]:
        return AggregationWithHeaders(self.decode(raw), headers_before(raw)[0])

    def _write_bytes(self, address: A, raw: bytes | None) -> None:
        changelog_key = self._put_below(address, raw) or address
        context = self._cell.record
        if raw is None:
            self._log(changelog_key, None, context[3], context[4])
        else:
            headers, position = headers_before(raw)
            self._log(changelog_key, raw[position:], context[3], headers)

    def _forward(
        self, listener: Listener[A], address: A, new: AggregationWithHeaders[Any] | None, old: Any
    ) -> None:
        # Unlike elsewhere, a forwarded change has the headers of its value, and none if it is a deletion.
        value, headers = (None, NO_HEADERS) if new is None else new
        listener(address, value, old, self._cell.record[3], headers)
