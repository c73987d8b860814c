"""The serde for changes of a table's rows in a repartition topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from pystreams.errors import SerializationError
from pystreams.serde.base import Serde, schema_of
from pystreams.serde.schemas.finding import Schema
from pystreams.serde.varint import pack_varint, varint_at

T = TypeVar("T")

#: New value and old value; None stands for no value. At least one is not None.
Change: TypeAlias = "tuple[T | None, T | None]"

_OLD, _NEW, _BOTH = b"\x00", b"\x01", b"\x02"
_WITH_IS_LATEST = {b"\x03": _OLD, b"\x04": _NEW, b"\x05": _BOTH}


class ChangeSerde(Serde["tuple[T | None, T | None]"]):
    """``(new, old)`` as ``new|1``, ``old|0`` or ``length of new (varint)|new|old|2``.

    It also reads flags 3, 4 and 5, which stand for 0, 1 and 2 after an extra byte "is the latest". The byte does not
    matter for tables that are not versioned. Source: org.apache.kafka.streams.kstream.internals.ChangedSerializer,
    ChangedDeserializer.
    """

    def __init__(self, inner: Serde[T]) -> None:
        self.inner = inner
        self.immutable = inner.immutable

    def serializer(self, topic: str) -> Callable[[Change[T]], bytes]:
        write = self.inner.serializer(topic)

        def write_change(change: Change[T]) -> bytes:
            new, old = change
            if old is None:
                if new is None:
                    raise SerializationError(
                        "a change has neither a new nor an old value", where=f"topic {topic}"
                    )
                return write(new) + _NEW
            if new is None:
                return write(old) + _OLD
            new_bytes = write(new)
            return b"".join((pack_varint(len(new_bytes)), new_bytes, write(old), _BOTH))

        return write_change

    def deserializer(self, topic: str) -> Callable[[bytes], Change[T]]:
        read = self.inner.deserializer(topic)

        def read_change(data: bytes) -> Change[T]:
            flag = data[-1:]
            if flag == _NEW:
                return read(data[:-1]), None
            if flag == _OLD:
                return None, read(data[:-1])
            if flag != _BOTH:
                return read_change(_without_is_latest(data, topic))
            try:
                length, start = varint_at(data, 0)
            except (IndexError, ValueError):
                raise _malformed("its length has no end", topic) from None
            end = start + length
            if not start <= end < len(data):
                raise _malformed(f"its new value should have {length} bytes, in {len(data)} bytes", topic)
            return read(data[start:end]), read(data[end:-1])

        return read_change

    def bytes_schema(self) -> Schema:
        return {"format": "change", "of": schema_of(self.inner)}

    def __repr__(self) -> str:
        return f"ChangeSerde({self.inner!r})"


def _without_is_latest(data: bytes, topic: str) -> bytes:
    """The change ``...|is the latest|3, 4 or 5`` without the extra byte, with flag 0, 1 or 2."""
    flag = data[-1:]
    if flag not in _WITH_IS_LATEST:
        raise _malformed(f"it has the unknown flag {flag[0]}" if flag else "it is empty", topic)
    if data[-2:-1] not in {b"\x00", b"\x01"}:
        raise _malformed("the byte before the flag is not 0 or 1", topic)
    return data[:-2] + _WITH_IS_LATEST[flag]


def _malformed(why: str, topic: str) -> SerializationError:
    return SerializationError(
        "the bytes are not a change of a table",
        where=f"topic {topic}",
        why=why,
        hint="only the application itself may write to its repartition topics; reset it if others wrote to them",
    )
