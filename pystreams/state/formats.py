"""Bytes of values and window keys in stores and changelogs, equal to those of Kafka Streams."""

from __future__ import annotations

from struct import Struct
from typing import Generic, NamedTuple, TypeVar

from pystreams.record import NO_HEADERS, Headers

V = TypeVar("V")

_INT64 = Struct(">q")
_WINDOW_SUFFIX = Struct(">qi")

pack_int64 = _INT64.pack
unpack_int64 = _INT64.unpack_from
pack_window_suffix = _WINDOW_SUFFIX.pack
unpack_window_suffix = _WINDOW_SUFFIX.unpack_from

#: Size of the suffix of a record key in a window store's changelog: int64 window start, int32 sequence number.
WINDOW_SUFFIX_BYTES = 12
TIMESTAMP_BYTES = 8
SEQUENCE_MAX = 0x7FFFFFFF


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """The value of a key in a timestamped store; the timestamp is in milliseconds. Arguments of this type may also be
    plain tuples (value, timestamp)."""

    value: V
    timestamp: int


class ValueTimestampHeaders(NamedTuple, Generic[V]):
    """The value of a key in a timestamped store with headers. Arguments of this type may also be plain tuples, with or
    without headers."""

    value: V
    timestamp: int
    headers: Headers = NO_HEADERS


class AggregationWithHeaders(NamedTuple, Generic[V]):
    """The value of a session in a session store with headers."""

    aggregation: V
    headers: Headers = NO_HEADERS


def split_window_key(key: bytes) -> tuple[bytes, int, int]:
    """Record key, window start and sequence number of a changelog key."""
    start, sequence = unpack_window_suffix(key, len(key) - WINDOW_SUFFIX_BYTES)
    return key[:-WINDOW_SUFFIX_BYTES], start, sequence
