"""HyperLogLog: counts distinct values in little memory, with a standard error of 1.6 %.

A sketch is ``bytes`` that depend only on the set of values that were added. Each value has a hash of 64 bits: 12 of
them choose one of 4,096 registers, which keeps the greatest rank of its values: the number of leading zeros of the
other bits, and one. As long as it is shorter, a sketch lists the registers that are not zero, 3 bytes each (number,
rank), in order; then it has a byte for each register.

Source: Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog" (2007); the estimator is the one of Ertl, "New cardinality
estimation algorithms for HyperLogLog sketches" (2017), which needs no table of corrections.
"""

from __future__ import annotations

from math import inf, log, sqrt
from typing import Final

from mmh3 import hash64

EMPTY: Final = b""

_BITS: Final = 12
_REGISTERS: Final = 1 << _BITS
_RANK_MAX: Final = 64 - _BITS + 1
_ENTRY: Final = 3


def added(sketch: bytes, data: bytes) -> bytes:
    """The sketch with one more value; the same object if it does not change."""
    hash_ = hash64(data, signed=False)[0]
    number = hash_ >> (64 - _BITS)
    rest = hash_ & ((1 << (64 - _BITS)) - 1)
    return _raised(sketch, number, _RANK_MAX - rest.bit_length())


def merged(one: bytes, two: bytes) -> bytes:
    """The sketch of the values of both."""
    if not one or not two:
        return one or two
    return _packed(bytes(map(max, _registers(one), _registers(two))))


def estimate(sketch: bytes) -> int:
    """About how many different values were added."""
    ranks = sketch if len(sketch) == _REGISTERS else sketch[2::_ENTRY]
    found = [ranks.count(rank) for rank in range(_RANK_MAX + 1)]
    found[0] = _REGISTERS - sum(found[1:])
    z = _REGISTERS * _tau(1 - found[_RANK_MAX] / _REGISTERS)
    for count in found[_RANK_MAX - 1 : 0 : -1]:
        z = (z + count) / 2
    z += _REGISTERS * _sigma(found[0] / _REGISTERS)
    return round(_REGISTERS * _REGISTERS / (2 * log(2) * z))


def _raised(sketch: bytes, number: int, rank: int) -> bytes:
    """The sketch with a register that is at least ``rank``."""
    if len(sketch) == _REGISTERS:
        if sketch[number] >= rank:
            return sketch
        return sketch[:number] + bytes((rank,)) + sketch[number + 1 :]
    name = number.to_bytes(2, "big")
    place = _place(sketch, name)
    known = sketch[place : place + 2] == name
    if known and sketch[place + 2] >= rank:
        return sketch
    after = sketch[place + _ENTRY :] if known else sketch[place:]
    listed = sketch[:place] + name + bytes((rank,)) + after
    return listed if len(listed) < _REGISTERS else _registers(listed)


def _place(sketch: bytes, name: bytes) -> int:
    """Where the entry of a register is in a list, or would be."""
    low, high = 0, len(sketch) // _ENTRY
    while low < high:
        middle = (low + high) // 2
        if sketch[_ENTRY * middle : _ENTRY * middle + 2] < name:
            low = middle + 1
        else:
            high = middle
    return _ENTRY * low


def _registers(sketch: bytes) -> bytes:
    if len(sketch) == _REGISTERS:
        return sketch
    registers = bytearray(_REGISTERS)
    for place in range(0, len(sketch), _ENTRY):
        registers[int.from_bytes(sketch[place : place + 2], "big")] = sketch[place + 2]
    return bytes(registers)


def _packed(registers: bytes) -> bytes:
    """The sketch with these registers, in the shorter form."""
    if _ENTRY * (_REGISTERS - registers.count(0)) >= _REGISTERS:
        return registers
    return b"".join(
        number.to_bytes(2, "big") + bytes((rank,)) for number, rank in enumerate(registers) if rank
    )


def _sigma(x: float) -> float:
    if x == 1:
        return inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before, z = z, z + x * y
        y += y
    return z


def _tau(x: float) -> float:
    if x in (0, 1):
        return 0.0
    y, z, before = 1.0, 1 - x, -1.0
    while z != before:
        x = sqrt(x)
        y /= 2
        before, z = z, z - (1 - x) ** 2 * y
    return z / 3
