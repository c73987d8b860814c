"""The forms in which stores keep values: plain, or with timestamps, headers or both, which the changelog has
separately.

Headers come first, after their length; without headers this is a single zero byte.
Source: KIP-258, KIP-1271, HeadersSerializer, ValueTimestampHeadersSerializer, AggregationWithHeadersSerializer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pystreams.errors import StateCorruptedError
from pystreams.record import NO_HEADERS, Headers, RecordBatch
from pystreams.serde.varint import pack_varint, varint_at
from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64

#: Value, timestamp (None if the form has none), headers.
Parts: TypeAlias = tuple[bytes, "int | None", Headers]

#: The length of empty headers.
_NONE: Final = b"\x00"
_NULL_LENGTH: Final = -1


def packed_headers(headers: Headers) -> bytes:
    """Headers, after their length."""
    if not headers:
        return _NONE
    parts = [pack_varint(len(headers))]
    for name, value in headers:
        name_bytes = name.encode()
        parts += (pack_varint(len(name_bytes)), name_bytes)
        parts += (pack_varint(_NULL_LENGTH),) if value is None else (pack_varint(len(value)), value)
    packed = b"".join(parts)
    return pack_varint(len(packed)) + packed


def headers_and_value(headers: Headers, value: bytes) -> bytes:
    """Headers and value as one byte string, for transport of entries of any store."""
    return packed_headers(headers) + value


def headers_apart(both: bytes) -> tuple[Headers, bytes]:
    """Headers and value of the result of ``headers_and_value``."""
    headers, position = headers_before(both)
    return headers, both[position:]


def with_headers_apart(batch: RecordBatch) -> RecordBatch:
    """Entries of a store with headers, converted to records of its changelog."""
    apart = [(NO_HEADERS, None) if value is None else headers_apart(value) for value in batch.values]
    return replace(batch, values=[value for _, value in apart], headers=[headers for headers, _ in apart])


def with_headers_joined(batch: RecordBatch) -> list[bytes | None]:
    """The values of a changelog's records, converted to entries of a store with headers."""
    headers = batch.headers or [NO_HEADERS] * len(batch)
    return [
        None if value is None else headers_and_value(of_value, value)
        for value, of_value in zip(batch.values, headers, strict=True)
    ]


def after_headers(stored: bytes) -> int:
    """The position after the headers in bytes that start with them."""
    if stored[0] == 0:
        return 1
    length, position = varint_at(stored, 0)
    return position + length


def headers_before(stored: bytes) -> tuple[Headers, int]:
    """The headers at the start of the bytes, and the position after them."""
    if stored[0] == 0:
        return NO_HEADERS, 1
    try:
        length, position = varint_at(stored, 0)
        end = position + length
        count, position = varint_at(stored, position)
        headers = []
        for _ in range(count):
            name, position = _sized_at(stored, position)
            value, position = _sized_at(stored, position)
            headers.append(((name or b"").decode(), value))
        if position != end:
            raise ValueError(f"headers end at byte {position}, not {end}")
    except (IndexError, ValueError) as error:
        raise StateCorruptedError("the headers of a stored value cannot be read", why=str(error)) from error
    return tuple(headers), end


def _sized_at(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = varint_at(data, position)
    if length == _NULL_LENGTH:
        return None, position
    end = position + length
    if length < 0 or end > len(data):
        raise ValueError(f"the length {length} is not valid")
    return data[position:end], end


@dataclass(frozen=True, slots=True)
class ValueForm:
    """The form of stored values: ``to_stored`` makes bytes of value, timestamp and headers, ``parts`` is the
    reverse."""

    name: str
    timestamped: bool
    headers: bool
    to_stored: Callable[[bytes, int, Headers], bytes]
    parts: Callable[[bytes], Parts]

    def all_to_stored(
        self,
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers] | None,
    ) -> Sequence[bytes | None]:
        """Columns of a changelog as stored values."""
        if self.headers:
            to_stored = self.to_stored
            return [
                None if value is None else to_stored(value, timestamp, of_record)
                for value, timestamp, of_record in zip(
                    values, timestamps, headers or [NO_HEADERS] * len(values), strict=True
                )
            ]
        if self.timestamped:
            return [
                None if value is None else pack_int64(timestamp) + value
                for value, timestamp in zip(values, timestamps, strict=True)
            ]
        return values

    def logged(self, pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes, int | None]]:
        """(key, stored value) as key, value and timestamp; if the form has headers, they precede the value."""
        logged_value = self.logged_value
        return ((key, *logged_value(stored)) for key, stored in pairs)

    def logged_value(self, stored: bytes) -> tuple[bytes, int | None]:
        """Value and timestamp of a stored value, as ``logged`` returns them."""
        value, timestamp, headers = self.parts(stored)
        return headers_and_value(headers, value) if self.headers else value, timestamp

    def of_logged(self, value: bytes, timestamp: int) -> bytes:
        """The stored value for a logged value: the reverse of ``logged_value``."""
        headers, value = headers_apart(value) if self.headers else (NO_HEADERS, value)
        return self.to_stored(value, timestamp, headers)


def _timestamped_with_headers(stored: bytes) -> Parts:
    headers, position = headers_before(stored)
    return stored[position + TIMESTAMP_BYTES :], unpack_int64(stored, position)[0], headers


def _with_headers(stored: bytes) -> Parts:
    headers, position = headers_before(stored)
    return stored[position:], None, headers


PLAIN: Final = ValueForm(
    "plain",
    False,
    False,
    lambda value, _timestamp, _headers: value,
    lambda stored: (stored, None, NO_HEADERS),
)
TIMESTAMPED: Final = ValueForm(
    "timestamped",
    True,
    False,
    lambda value, timestamp, _headers: pack_int64(timestamp) + value,
    lambda stored: (stored[TIMESTAMP_BYTES:], unpack_int64(stored)[0], NO_HEADERS),
)
WITH_HEADERS: Final = ValueForm(
    "with headers",
    False,
    True,
    lambda value, _timestamp, headers: packed_headers(headers) + value,
    _with_headers,
)
TIMESTAMPED_WITH_HEADERS: Final = ValueForm(
    "timestamped with headers",
    True,
    True,
    lambda value, timestamp, headers: packed_headers(headers) + pack_int64(timestamp) + value,
    _timestamped_with_headers,
)
FORMS: Final = {form.name: form for form in (PLAIN, TIMESTAMPED, WITH_HEADERS, TIMESTAMPED_WITH_HEADERS)}


def form_of(*, timestamped: bool, headers: bool) -> ValueForm:
    """The form with timestamps, headers, or both."""
    if headers:
        return TIMESTAMPED_WITH_HEADERS if timestamped else WITH_HEADERS
    return TIMESTAMPED if timestamped else PLAIN
