"""A serde for lists in the bytes of Java's list serde. The type ``list[int]``, in contrast, is JSON."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeVar

from pystreams.errors import SerializationError
from pystreams.serde.base import AnySerde, Serde, schema_of
from pystreams.serde.lookup import serde_for
from pystreams.serde.primitives import FloatSerde, IntSerde, UUIDSerde
from pystreams.serde.schemas.finding import Schema

T = TypeVar("T")

_INT32 = struct.Struct(">i")
_CONSTANT, _VARIABLE = 0, 1
_NULL: Final = -1
_UUID_BYTES: Final = 36


class ListSerde(Serde["list[T | None]"]):
    """A list of elements that ``inner`` (a type or serde) serializes; elements may be None.

    Numbers and UUIDs, which have a constant size: ``0 | number of Nones | their positions | size | other elements``.
    Other types: ``1 | size | length and bytes of each element``, with the length -1 for None. Numbers are int32.

    Source: org.apache.kafka.common.serialization.{ListSerializer, ListDeserializer}.
    """

    def __init__(self, inner: type[T] | Serde[T]) -> None:
        self.inner = serde_for(inner)

    def serializer(self, topic: str) -> Callable[[list[T | None]], bytes]:
        return self._writer(self.inner.serializer(topic))

    def key_serializer(self, topic: str) -> Callable[[list[T | None]], bytes]:
        return self._writer(self.inner.key_serializer(topic))

    def _writer(self, write: Callable[[T], bytes]) -> Callable[[list[T | None]], bytes]:
        int32 = _INT32.pack

        def write_constant(values: list[T | None]) -> bytes:
            nulls = [i for i, value in enumerate(values) if value is None]
            elements = [write(value) for value in values if value is not None]
            return b"".join((b"\x00", int32(len(nulls)), *map(int32, nulls), int32(len(values)), *elements))

        def write_variable(values: list[T | None]) -> bytes:
            parts = [b"\x01", int32(len(values))]
            for value in values:
                if value is None:
                    parts.append(int32(_NULL))
                else:
                    data = write(value)
                    parts += (int32(len(data)), data)
            return b"".join(parts)

        return write_variable if _size_of(self.inner) is None else write_constant

    def deserializer(self, topic: str) -> Callable[[bytes], list[T | None]]:
        read, size = self.inner.deserializer(topic), _size_of(self.inner)

        def read_list(data: bytes) -> list[T | None]:
            try:
                if data[0] == _VARIABLE:
                    return _read_variable(data, read)
                if data[0] == _CONSTANT and size is not None:
                    return _read_constant(data, read, size)
            except (struct.error, IndexError):
                raise _malformed(self, topic, f"{len(data)} bytes end too soon") from None
            except _MalformedError as why:
                raise _malformed(self, topic, str(why)) from None
            raise _malformed(
                self,
                topic,
                "its elements have a constant size, but those of the serde have not"
                if data[0] == _CONSTANT
                else "unknown flag",
            )

        return read_list

    def bytes_schema(self) -> Schema:
        return {"format": "list", "of": schema_of(self.inner)}

    def __repr__(self) -> str:
        return f"ListSerde({self.inner!r})"


class _MalformedError(Exception):
    """The bytes are malformed; the text is the reason."""


def _read_variable(data: bytes, read: Callable[[bytes], T]) -> list[T | None]:
    (count,) = _INT32.unpack_from(data, 1)
    _check_count(count, data)
    at = 1 + _INT32.size
    found: list[T | None] = []
    for _ in range(count):
        (length,) = _INT32.unpack_from(data, at)
        at += _INT32.size
        if length == _NULL:
            found.append(None)
            continue
        if length < 0 or at + length > len(data):
            raise _MalformedError(f"an element should have {length} bytes, in {len(data)} bytes")
        found.append(read(data[at : at + length]))
        at += length
    return found


def _read_constant(data: bytes, read: Callable[[bytes], T], size: int) -> list[T | None]:
    (null_count,) = _INT32.unpack_from(data, 1)
    _check_count(null_count, data)
    nulls = set(struct.unpack_from(f">{null_count}i", data, 5))
    at = 5 + null_count * _INT32.size
    (count,) = _INT32.unpack_from(data, at)
    _check_count(count, data)
    at += _INT32.size
    found: list[T | None] = []
    for i in range(count):
        if i in nulls:
            found.append(None)
            continue
        if at + size > len(data):
            raise _MalformedError(f"its {len(data)} bytes end within an element")
        found.append(read(data[at : at + size]))
        at += size
    return found


def _check_count(count: int, data: bytes) -> None:
    if not 0 <= count <= len(data):
        raise _MalformedError(f"it should have {count} elements, in {len(data)} bytes")


def _size_of(inner: AnySerde) -> int | None:
    """The constant size of the elements in bytes; None if it varies. Only serdes in Java's list have one."""
    if isinstance(inner, IntSerde | FloatSerde):
        return inner.size
    return _UUID_BYTES if isinstance(inner, UUIDSerde) else None


def _malformed(serde: AnySerde, topic: str, why: str) -> SerializationError:
    return SerializationError(
        f"the bytes are not {serde!r}",
        where=f"topic {topic}",
        why=why,
        hint="check that Java's list serde or this one wrote the topic, with the same type of elements",
    )
