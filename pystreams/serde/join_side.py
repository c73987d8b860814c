"""The serdes of unmatched records in a stream-stream join: timestamp and side with the key, side with the value."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Generic, NamedTuple, TypeVar

from pystreams.serde.base import AnySerde, Serde, schema_of
from pystreams.serde.schemas.finding import Schema

K = TypeVar("K")
V = TypeVar("V")

_TIME_AND_SIDE = Struct(">q?")
_LEFT, _RIGHT = b"\x01", b"\x00"

#: Reads the timestamp, and whether the side is the left one, from the bytes of a ``WaitingKey``.
unpack_time_and_side = _TIME_AND_SIDE.unpack_from


def since(timestamp: int) -> bytes:
    """The lowest bytes of a ``WaitingKey`` with this timestamp: those of earlier ones sort before them."""
    return _TIME_AND_SIDE.pack(timestamp, False)


def record_key_of(waiting_key: bytes) -> bytes:
    """The record key's bytes within the bytes of a ``WaitingKey``."""
    return waiting_key[_TIME_AND_SIDE.size :]


def value_of(side_value: bytes) -> bytes:
    """The value's bytes within the bytes of a ``SideValue``."""
    return side_value[len(_LEFT) :]


class WaitingKey(NamedTuple, Generic[K]):
    """Timestamp, side and key of an unmatched record. Keys and their bytes sort by time. Source:
    TimestampedKeyAndJoinSide."""

    timestamp: int
    left: bool
    key: K


class SideValue(NamedTuple, Generic[V]):
    """The value of a record of the left stream, or of the right one. Source: LeftOrRightValue."""

    left: bool
    value: V


class WaitingKeySerde(Serde[WaitingKey[Any]]):
    """Timestamp (8 bytes), 1 for left or 0 for right, the key. Source: TimestampedKeyAndJoinSideSerializer."""

    def __init__(self, key: AnySerde) -> None:
        self.key = key
        self.immutable = key.immutable

    def __repr__(self) -> str:
        return f"WaitingKeySerde({self.key!r})"

    def bytes_schema(self) -> Schema:
        return {"format": "waiting key of a join", "key": schema_of(self.key)}

    def serializer(self, topic: str) -> Callable[[WaitingKey[Any]], bytes]:
        inner = self.key.key_serializer(topic)

        def serialize(waiting: WaitingKey[Any]) -> bytes:
            timestamp, left, key = waiting
            return _TIME_AND_SIDE.pack(timestamp, left) + inner(key)

        return serialize

    def deserializer(self, topic: str) -> Callable[[bytes], WaitingKey[Any]]:
        inner = self.key.deserializer(topic)

        def deserialize(data: bytes) -> WaitingKey[Any]:
            timestamp, left = _TIME_AND_SIDE.unpack_from(data)
            return WaitingKey(timestamp, left, inner(record_key_of(data)))

        return deserialize


class SideValueSerde(Serde[SideValue[Any]]):
    """1 for left or 0 for right, then the value in that side's serde. Source: LeftOrRightValueSerializer."""

    def __init__(self, left: AnySerde, right: AnySerde) -> None:
        self.left = left
        self.right = right
        self.immutable = left.immutable and right.immutable

    def __repr__(self) -> str:
        return f"SideValueSerde({self.left!r}, {self.right!r})"

    def bytes_schema(self) -> Schema:
        return {
            "format": "waiting value of a join",
            "left": schema_of(self.left),
            "right": schema_of(self.right),
        }

    def serializer(self, topic: str) -> Callable[[SideValue[Any]], bytes]:
        left, right = self.left.serializer(topic), self.right.serializer(topic)

        def serialize(side: SideValue[Any]) -> bytes:
            return _LEFT + left(side.value) if side.left else _RIGHT + right(side.value)

        return serialize

    def deserializer(self, topic: str) -> Callable[[bytes], SideValue[Any]]:
        left, right = self.left.deserializer(topic), self.right.deserializer(topic)

        def deserialize(data: bytes) -> SideValue[Any]:
            is_left = data[:1] == _LEFT
            return SideValue(is_left, (left if is_left else right)(value_of(data)))

        return deserialize
