"""Serdes of single values, with the bytes of the corresponding serdes in Java.

Source: org.apache.kafka.common.serialization (String, Long, Integer, Short, Double, Float, Bytes, ByteArray,
ByteBuffer, Boolean, UUID, Void).
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, NoReturn

import msgspec

from pystreams.errors import SerializationError
from pystreams.plural import counted
from pystreams.serde.base import WRITTEN_AS, Serde
from pystreams.serde.schemas.finding import Schema

_INTS = {8: struct.Struct(">q"), 4: struct.Struct(">i"), 2: struct.Struct(">h")}
_WRITE_INTS = {size: ints.pack for size, ints in _INTS.items()}
_FLOAT64, _FLOAT32 = struct.Struct(">d"), struct.Struct(">f")
_JAVA_NAN, _JAVA_FLOAT_NAN = bytes.fromhex("7ff8000000000000"), bytes.fromhex("7fc00000")
_BOOLS = {True: b"\x01", False: b"\x00"}


class StrSerde(Serde[str]):
    """UTF-8. Malformed bytes are an error; Java reads them as replacement characters."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[str], bytes]:
        return str.encode

    def deserializer(self, topic: str) -> Callable[[bytes], str]:
        return bytes.decode

    def bytes_schema(self) -> Schema:
        return {"format": "text"}

    def __repr__(self) -> str:
        return "str"


class IntSerde(Serde[int]):
    """Signed, big-endian, in 8 bytes (Java's Long), 4 (Integer) or 2 (Short)."""

    immutable = True

    def __init__(self, size: Literal[8, 4, 2] = 8) -> None:
        self.size = size

    def serializer(self, topic: str) -> Callable[[int], bytes]:
        return _WRITE_INTS[self.size]

    def deserializer(self, topic: str) -> Callable[[bytes], int]:
        unpack = _INTS[self.size].unpack

        def read_int(data: bytes) -> int:
            value: int
            try:
                (value,) = unpack(data)
            except struct.error:
                raise _wrong_length(repr(self), self.size, data, topic) from None
            return value

        return read_int

    def bytes_schema(self) -> Schema:
        return {"format": "int", "size": self.size}

    def __repr__(self) -> str:
        return "int" if self.size == 8 else f"int{8 * self.size}"


class FloatSerde(Serde[float]):
    """IEEE 754, big-endian, in 8 bytes (Java's Double) or 4 (Float). Every NaN is written as Java's canonical NaN.

    In 4 bytes a value is rounded; a value that is too large is an error (Java: infinity).
    """

    def __init__(self, size: Literal[8, 4] = 8) -> None:
        self.size = size
        # A 4-byte float is rounded when it is written: a value from the cache must not differ from one from its bytes.
        self.immutable = size == 8

    def serializer(self, topic: str) -> Callable[[float], bytes]:
        return _write_float if self.size == 8 else _write_float32

    def deserializer(self, topic: str) -> Callable[[bytes], float]:
        unpack = _FLOAT64.unpack if self.size == 8 else _FLOAT32.unpack

        def read_float(data: bytes) -> float:
            value: float
            try:
                (value,) = unpack(data)
            except struct.error:
                raise _wrong_length(repr(self), self.size, data, topic) from None
            return value

        return read_float

    def bytes_schema(self) -> Schema:
        return {"format": "float", "size": self.size}

    def __repr__(self) -> str:
        return "float" if self.size == 8 else "float32"


class BytesSerde(Serde[bytes]):
    """The bytes unchanged: Java's Bytes, ByteArray and ByteBuffer."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[bytes], bytes]:
        return _SAME

    def deserializer(self, topic: str) -> Callable[[bytes], bytes]:
        return _SAME

    def bytes_schema(self) -> Schema:
        return {"format": "bytes"}

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
                    f"a bool must be the byte 0 or 1, but is {data[0]}", where=f"topic {topic}"
                ) from None

        return read_bool

    def bytes_schema(self) -> Schema:
        return {"format": "bool"}

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

    def bytes_schema(self) -> Schema:
        return {"format": "uuid"}

    def __repr__(self) -> str:
        return "uuid"


class VoidSerde(Serde[None]):
    """Always null: Java's Void. A serde never receives None, so any value is an error."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[None], bytes]:
        def write_void(value: object) -> NoReturn:
            raise SerializationError(
                f"None expected for void, {type(value).__qualname__} found", where=f"topic {topic}"
            )

        return write_void

    def deserializer(self, topic: str) -> Callable[[bytes], None]:
        def read_void(data: bytes) -> NoReturn:
            raise _wrong_length("void", 0, data, topic)

        return read_void

    def bytes_schema(self) -> Schema:
        return {"format": "void"}

    def __repr__(self) -> str:
        return "void"


#: msgspec reads and writes the text form 3 to 5 times as fast as the standard library.
_JSON_UUID_DECODE = msgspec.json.Decoder(uuid.UUID).decode
_JSON_UUID_ENCODE = msgspec.json.Encoder().encode

#: Returns its argument, raises for anything but bytes, and costs no call of a Python function.
_SAME = b"".__add__


def _write_float(value: float) -> bytes:
    return _FLOAT64.pack(value) if value == value else _JAVA_NAN  # noqa: PLR0124 - NaN is what differs from itself


def _write_float32(value: float) -> bytes:
    return _FLOAT32.pack(value) if value == value else _JAVA_FLOAT_NAN  # noqa: PLR0124 - as above


def _write_bool(value: bool) -> bytes:
    try:
        return _BOOLS[value]
    except (KeyError, TypeError):
        raise TypeError(f"expected bool, got {type(value).__qualname__}") from None


def _write_uuid(value: uuid.UUID) -> bytes:
    if not isinstance(value, uuid.UUID):
        raise TypeError(f"expected UUID, got {type(value).__qualname__}")
    return _JSON_UUID_ENCODE(value)[1:-1]


class FixedWidth(NamedTuple):
    """Values of exactly this type, from ``least`` to ``most``, can be written, and take ``width`` bytes."""

    type: type
    least: float
    most: float
    width: int


#: By the function that writes values, for those of which the width is known without writing them.
_FIXED_WIDTHS: Final = (
    *(
        (write, FixedWidth(int, -(1 << 8 * size - 1), (1 << 8 * size - 1) - 1, size))
        for size, write in _WRITE_INTS.items()
    ),
    (_write_float, FixedWidth(float, -math.inf, math.inf, 8)),
)


def fixed_width(serialize: Callable[[Any], bytes]) -> FixedWidth | None:
    """The width of what ``serialize`` writes; None if it differs from value to value."""
    return next((fixed for write, fixed in _FIXED_WIDTHS if write is serialize), None)


def _wrong_length(kind: str, expected: int, data: bytes, topic: str) -> SerializationError:
    return SerializationError(
        f"{counted(expected, 'byte')} expected for {kind}, {len(data)} found",
        where=f"topic {topic}",
        hint=WRITTEN_AS,
    )


#: The type of the values of each serde.
VALUE_TYPES: Final[Mapping[type[Serde[Any]], type]] = {
    StrSerde: str,
    IntSerde: int,
    FloatSerde: float,
    BytesSerde: bytes,
    BoolSerde: bool,
    UUIDSerde: uuid.UUID,
}

STR: Final = StrSerde()
INT: Final = IntSerde()
INT32: Final = IntSerde(4)
INT16: Final = IntSerde(2)
FLOAT: Final = FloatSerde()
FLOAT32: Final = FloatSerde(4)
BYTES: Final = BytesSerde()
BOOL: Final = BoolSerde()
UUID: Final = UUIDSerde()
VOID: Final = VoidSerde()
