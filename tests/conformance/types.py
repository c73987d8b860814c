"""The static types of scenarios, their serdes, and how keys, values and bytes are shown in results."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pystreams.record import Headers
from pystreams.serde import INT, SessionWindowedSerde, TimeWindowedSerde
from pystreams.serde.base import AnySerde, Serde
from pystreams.serde.join_side import WaitingKey
from pystreams.serde.subscriptions import Subscription
from pystreams.windowed import Windowed
from tests.conformance.vocabulary import render

Json = Any


class TextSerde(Serde[Any]):
    """UTF-8 of whatever a value is rendered as."""

    immutable = True

    def serializer(self, topic: str) -> Callable[[Any], bytes]:
        return _write_text

    def deserializer(self, topic: str) -> Callable[[bytes], Any]:
        return _read_text


def _write_text(value: Any) -> bytes:
    return render(value).encode()


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


TEXT = TextSerde()


def value_serde(value_type: str) -> AnySerde:
    """Of ``str`` or ``int``."""
    return INT if value_type == "int" else TEXT


@dataclass(frozen=True)
class KeyType:
    """Text, or a window of size ``size_ms`` (None: a session) around an inner key."""

    inner: KeyType | None = None
    size_ms: int | None = None

    @property
    def serde(self) -> AnySerde:
        if self.inner is None:
            return TEXT
        if self.size_ms is None:
            return SessionWindowedSerde(self.inner.serde)
        return TimeWindowedSerde(self.inner.serde, self.size_ms)

    def windowed(self, size_ms: int | None) -> KeyType:
        return KeyType(self, size_ms)


STR_KEY = KeyType()


def show_key(key: Any) -> Json:
    """A windowed key as an object, anything else as text."""
    if isinstance(key, Windowed):
        return {"key": show_key(key.key), "start": key.start, "end": key.end}
    if isinstance(key, bytes):
        return show_bytes(key)
    if isinstance(key, WaitingKey):
        return {"key": show_key(key.key), "ts": key.timestamp, "side": "left" if key.left else "right"}
    return None if key is None else render(key)


def show_value(value: Any) -> Json:
    """Integers stay integers. Subscriptions of foreign-key joins have their parts."""
    if isinstance(value, Subscription):
        return {
            "instruction": value.instruction.name,
            "hash": value.hash and [f"{n:x}" for n in struct.unpack(">QQ", value.hash)],
            "primary_key": show_bytes(value.primary_key),
            "version": value.version,
            "primary_partition": value.primary_partition,
        }
    return value if value is None or isinstance(value, int) else render(value)


def show_bytes(data: bytes | None) -> str | None:
    r"""Printable ASCII as it is, a backslash doubled, any other byte as ``\xNN``."""
    if data is None:
        return None
    return "".join(
        "\\\\" if byte == 0x5C else chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in data
    )


def show_headers(headers: Headers) -> Json:
    return [[name, show_bytes(value)] for name, value in headers]
