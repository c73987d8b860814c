"""Encodes named numbers in few bytes: a tenth of the bytes of Java's form.

In alphabetical order, a name shares most of its letters with the next one, and the times of a task are close to each
other. So the format is:

    deflate( n * (varint letters in common with the name before | varint length of the rest, rest)
             | 8 * n bytes: the difference to the last number of the same kind; all first bytes, all second bytes ...)

The kind of a number is the part of its name after the last ``/``.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from pystreams.serde.varint import pack_varint, varint_at

_MARK: Final = b"py\x01"
_COUNT: Final = struct.Struct(">i")
#: Raw deflate without a header, because the mark and the checksum replace it.
_DEFLATE_BITS: Final = -15
#: The characters of step names. A change of this dictionary requires another mark.
_DICTIONARY: Final = (
    b"KTABLE-SUPPRESS-KSTREAM-OUTEROTHER-KSTREAM-OUTERTHIS-KSTREAM-JOINOTHER-KSTREAM-JOINTHIS-KSTREAM-AGGREGATE-"
    b"0000000/first_raised/first_lowered/late_grace_ms/late_ms/late/written/seen/stream_time"
)
_ALL_BITS: Final = (1 << 64) - 1


def pack_numbers(numbers: Mapping[str, int]) -> bytes:
    """The bytes of these numbers (int64)."""
    return _packed(tuple(sorted(numbers.items())))


# The partitions of a task have the same numbers, and are encoded one after the other.
@lru_cache(maxsize=8)
def _packed(numbers: tuple[tuple[str, int], ...]) -> bytes:
    names, previous = bytearray(), b""
    last: dict[bytes, int] = {}
    differences = []
    for name, number in numbers:
        encoded = name.encode()
        common = _common_length(previous, encoded)
        names += pack_varint(common) + pack_varint(len(encoded) - common) + encoded[common:]
        previous, kind = encoded, encoded.rpartition(b"/")[2]
        difference = _int64(number - last.get(kind, 0))
        # Zig-zag, so that small differences begin with zero bytes.
        differences.append(difference << 1 if difference >= 0 else -(difference << 1) - 1)
        last[kind] = number
    rows = struct.pack(f">{len(differences)}Q", *differences)
    data = _COUNT.pack(len(numbers)) + names + b"".join(rows[column::8] for column in range(8))
    deflate = zlib.compressobj(9, zlib.DEFLATED, _DEFLATE_BITS, 9, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)
    packed = deflate.compress(data) + deflate.flush()
    return _MARK + zlib.crc32(packed).to_bytes(4, "big") + packed


def unpack_numbers(data: bytes) -> dict[str, int]:
    """The numbers; none if these are not bytes of ``pack_numbers``."""
    packed = data[len(_MARK) + 4 :]
    if data[: len(_MARK) + 4] != _MARK + zlib.crc32(packed).to_bytes(4, "big"):
        return {}
    inflate = zlib.decompressobj(_DEFLATE_BITS, _DICTIONARY)
    unpacked = inflate.decompress(packed)
    (count,) = _COUNT.unpack_from(unpacked)
    names, position, previous = [], _COUNT.size, b""
    for _ in range(count):
        common, position = varint_at(unpacked, position)
        length, position = varint_at(unpacked, position)
        previous = previous[:common] + unpacked[position : position + length]
        position += length
        names.append(previous)
    columns = unpacked[position:]
    rows = bytes(columns[column * count + row] for row in range(count) for column in range(8))
    return dict(_numbers(names, struct.unpack(f">{count}Q", rows)))


def _numbers(names: Iterable[bytes], differences: Iterable[int]) -> Iterable[tuple[str, int]]:
    last: dict[bytes, int] = {}
    for name, raw in zip(names, differences, strict=True):
        kind = name.rpartition(b"/")[2]
        last[kind] = _int64(last.get(kind, 0) + ((raw >> 1) ^ -(raw & 1)))
        yield name.decode(), last[kind]


def _common_length(one: bytes, other: bytes) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _int64(number: int) -> int:
    """The 64-bit number to which a sum or difference of two such numbers overflows."""
    return (number + (1 << 63) & _ALL_BITS) - (1 << 63)
