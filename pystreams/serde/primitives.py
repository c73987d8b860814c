"""Serdes of single values, with the bytes of Java's serdes of the same kind.

Source: org.apache.kafka.common.serialization (String, Long, Double, ByteArray, Boolean, UUID).
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Final

import msgspec

from pystreams.errors import SerializationError
from pystreams.serde.base import Serde

_INT64 = struct.Struct(">q")
_FLOAT64 = struct.Struct(">d")
_JAVA_NAN = b"\x7f\xf8\x00\x00\x00\x00\x00\x00"
_BOOLS = {True: b"\x01", False: b"\x00"}


class StrSerde(Serde[str]):
    """UTF-8. Malformed bytes are an error; Java would read replacement characters."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[str], bytes]:
        return str.encode

    def deserializer(self, topic: str) -> Callable[[bytes], str]:
        return bytes.decode

    def __repr__(self) -> str:
        return "str"


class IntSerde(Serde[int]):
    """8 bytes, big-endian, signed: Java's Long."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[int], bytes]:
        return _INT64.pack

    def deserializer(self, topic: str) -> Callable[[bytes], int]:
        unpack = _INT64.unpack

        def read_int(data: bytes) -> int:
            value: int
            try:
                (value,) = unpack(data)
            except struct.error:
                raise _wrong_length("int", 8, data, topic) from None
            return value

        return read_int

    def __repr__(self) -> str:
        return "int"


class FloatSerde(Serde[float]):
    """8 bytes, IEEE 754, big-endian: Java's Double. Every NaN is written as Java's one NaN."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[float], bytes]:
        return _write_float

    def deserializer(self, topic: str) -> Callable[[bytes], float]:
        unpack = _FLOAT64.unpack

        def read_float(data: bytes) -> float:
            value: float
            try:
                (value,) = unpack(data)
            except struct.error:
                raise _wrong_length("float", 8, data, topic) from None
            return value

        return read_float

    def __repr__(self) -> str:
        return "float"


class BytesSerde(Serde[bytes]):
    """The bytes as they are."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[bytes], bytes]:
        return _SAME

    def deserializer(self, topic: str) -> Callable[[bytes], bytes]:
        return _SAME

    def __repr__(self) -> str:
        return "bytes"


class BoolSerde(Serde[bool]):
    """One byte, 0 or 1: Java's Boolean."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[bool], bytes]:
        return _write_bool

    def deserializer(self, topic: str) -> Callable[[bytes], bool]:
        values = {b"\x01": True, b"\x00": False}

        def read_bool(data: bytes) -> bool:
            try:
                return values[data]
            except KeyError:
                if len(data) != 1:
                    raise _wrong_length("bool", 1, data, topic) from None
                raise SerializationError(
                    f"a bool is the byte 0 or 1, found {data[0]}", where=f"topic {topic}"
                ) from None

        return read_bool

    def __repr__(self) -> str:
        return "bool"


class UUIDSerde(Serde[uuid.UUID]):
    """The 36 characters of the text form, as Java writes it."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[uuid.UUID], bytes]:
        return _write_uuid

    def deserializer(self, topic: str) -> Callable[[bytes], uuid.UUID]:
        decode = _JSON_UUID_DECODE

        def read_uuid(data: bytes) -> uuid.UUID:
            try:
                return decode(b'"' + data + b'"')
            except (msgspec.MsgspecError, UnicodeDecodeError):
                raise SerializationError(
                    f"{len(data)} bytes are not the text form of a UUID (36 characters)",
                    where=f"topic {topic}",
                ) from None

        return read_uuid

    def __repr__(self) -> str:
        return "uuid"


#: msgspec reads and writes the text form 3 to 5 times as fast as the standard library.
_JSON_UUID_DECODE = msgspec.json.Decoder(uuid.UUID).decode
_JSON_UUID_ENCODE = msgspec.json.Encoder().encode

#: Gives its argument back, refuses what is no bytes, and costs no Python call.
_SAME = b"".__add__


def _write_float(value: float) -> bytes:
    return _FLOAT64.pack(value) if value == value else _JAVA_NAN  # noqa: PLR0124 - NaN is what differs from itself


def _write_bool(value: bool) -> bytes:
    try:
        return _BOOLS[value]
    except (KeyError, TypeError):
        raise TypeError(f"expected bool, got {type(value).__qualname__}") from None


def _write_uuid(value: uuid.UUID) -> bytes:
    if not isinstance(value, uuid.UUID):
        raise TypeError(f"expected UUID, got {type(value).__qualname__}")
    return _JSON_UUID_ENCODE(value)[1:-1]


def _wrong_length(kind: str, expected: int, data: bytes, topic: str) -> SerializationError:
    return SerializationError(
        f"{expected} byte{'' if expected == 1 else 's'} expected for {kind}, {len(data)} found",
        where=f"topic {topic}",
        hint="check that this is the type the topic was written with",
    )


STR: Final = StrSerde()
INT: Final = IntSerde()
FLOAT: Final = FloatSerde()
BYTES: Final = BytesSerde()
BOOL: Final = BoolSerde()
UUID: Final = UUIDSerde()
