"""One batch of records as bytes: a msgpack array of parallel columns, 0.1 µs per record in either direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from pystreams.record import Headers

#: The maximum number of records in a batch, which limits a reader's smallest step.
BATCH_RECORDS_MAX = 500

#: A batch of several records is split when its bytes exceed this.
BATCH_BYTES_MAX = 1 << 20


class Columns(NamedTuple):
    """Parallel columns; timestamps in ms. Offsets None: consecutive from the batch's base. Headers None: no record has
    headers."""

    keys: list[bytes | None]
    values: list[bytes | None]
    timestamps: list[int]
    offsets: list[int] | None
    headers: list[Headers] | None


class EncodedBatch(NamedTuple):
    """Columns as bytes, with the metadata that the log stores in columns of its own."""

    record_count: int
    max_timestamp: int
    data: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Columns).decode
_decode_keys = msgspec.msgpack.Decoder(
    tuple[list[bytes | None], msgspec.Raw, msgspec.Raw, list[int] | None, msgspec.Raw]
).decode


def decode(data: bytes) -> Columns:
    return _decode(data)


def decode_keys(data: bytes, base_offset: int) -> tuple[list[bytes | None], Sequence[int]]:
    """The keys of a batch and their offsets; values are skipped."""
    keys, _, _, offsets, _ = _decode_keys(data)
    return keys, range(base_offset, base_offset + len(keys)) if offsets is None else offsets


def encode(columns: Columns) -> Iterator[EncodedBatch]:
    """Cut columns into batches of bounded size, in order."""
    for start in range(0, len(columns.values), BATCH_RECORDS_MAX):
        yield from _encode_bounded(cut(columns, start, start + BATCH_RECORDS_MAX))


def cut(columns: Columns, start: int, end: int) -> Columns:
    """Records ``start`` (inclusive) to ``end`` (exclusive) of the columns, by index."""
    if start <= 0 and end >= len(columns.values):
        return columns
    keys, values, timestamps, offsets, headers = columns
    return Columns(
        keys[start:end],
        values[start:end],
        timestamps[start:end],
        None if offsets is None else offsets[start:end],
        None if headers is None else headers[start:end],
    )


def _encode_bounded(columns: Columns) -> Iterator[EncodedBatch]:
    count = len(columns.values)
    data = _encode(columns)
    if len(data) <= BATCH_BYTES_MAX or count == 1:
        yield EncodedBatch(count, max(columns.timestamps), data)
    else:
        yield from _encode_bounded(cut(columns, 0, count // 2))
        yield from _encode_bounded(cut(columns, count // 2, count))
