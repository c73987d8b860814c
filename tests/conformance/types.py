"""The static types of scenarios, their serdes, and how keys, values and bytes are shown in results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pystreams.record import Headers
from pystreams.serde import INT, TimeWindowedSerde
from pystreams.serde.base import AnySerde, Serde
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
    """Text, or a window of size ``size_ms`` around an inner key."""

    inner: KeyType | None = None
    size_ms: int = 0

    @property
    def serde(self) -> AnySerde:
        return TEXT if self.inner is None else TimeWindowedSerde(self.inner.serde, self.size_ms)

    def windowed(self, size_ms: int) -> KeyType:
        return KeyType(self, size_ms)


STR_KEY = KeyType()


def show_key(key: Any) -> Json:
    """A windowed key as an object, anything else as text."""
    if isinstance(key, Windowed):
        return {"key": show_key(key.key), "start": key.start, "end": key.end}
    return None if key is None else render(key)


def show_value(value: Any) -> Json:
    """Integers stay integers."""
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
