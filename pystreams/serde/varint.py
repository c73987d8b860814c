"""Zig-zag varints, with seven bits per byte, as in Kafka and in the registry format of Protobuf.

Source: org.apache.kafka.common.utils.ByteUtils.writeVarint, readVarint.
"""

from __future__ import annotations

from typing import Final

#: The positions of the bytes' bits in a number.
_SHIFTS: Final = range(0, 35, 7)


def pack_varint(number: int) -> bytes:
    """The bytes of a varint."""
    rest = number << 1 if number >= 0 else -(number << 1) - 1
    if rest < 0x80:
        return bytes((rest,))
    packed = bytearray()
    while rest > 0x7F:
        packed.append(rest & 0x7F | 0x80)
        rest >>= 7
    packed.append(rest)
    return bytes(packed)


def varint_at(data: bytes, position: int) -> tuple[int, int]:
    """The varint of at most 32 bits at ``position``, and the position after it. Raises ``IndexError`` if ``data`` ends
    within it, ``ValueError`` if it is longer."""
    raw = 0
    for shift in _SHIFTS:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
    raise ValueError("the number has no end")
