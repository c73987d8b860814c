"""The iteration order of a Java set of byte arrays, which determines the order of records in a changelog."""

from __future__ import annotations

_CAPACITY = 16


class BytesSet:
    """A ``java.util.HashSet`` of ``org.apache.kafka.common.utils.Bytes``.

    By bucket, then by insertion; the table grows with the set and never shrinks. (In Java, nine keys in one bucket of a
    small table make the table grow as well. This is not implemented: the order of keys then differs from Java's.)
    """

    __slots__ = ("_capacity", "_keys")

    def __init__(self) -> None:
        self._keys: dict[bytes, None] = {}
        self._capacity = _CAPACITY

    def add(self, key: bytes) -> None:
        self._keys[key] = None

    def clear(self) -> None:
        self._grow()
        self._keys.clear()

    def in_java_order(self) -> list[bytes]:
        """The keys."""
        self._grow()
        if len(self._keys) < 2:
            return list(self._keys)
        last = self._capacity - 1
        return sorted(self._keys, key=lambda key: _spread(_hash(key)) & last)

    def _grow(self) -> None:
        while len(self._keys) > self._capacity * 3 // 4:
            self._capacity *= 2


def _hash(data: bytes) -> int:
    """``Arrays.hashCode``, as an unsigned 32-bit number. In Java, bytes are signed."""
    value = 1
    for byte in data:
        value = (31 * value + byte - (byte >> 7 << 8)) & 0xFFFFFFFF
    return value


def _spread(value: int) -> int:
    return value ^ (value >> 16)
