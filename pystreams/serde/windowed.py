"""Keys of windowed results, as they stand in topics."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from pystreams.errors import SerializationError
from pystreams.serde.base import Serde
from pystreams.serde.lookup import serde_for
from pystreams.windowed import Windowed

K = TypeVar("K")

_INT64 = struct.Struct(">q")
_SESSION = struct.Struct(">qq")
_INT64_MAX = (1 << 63) - 1


class TimeWindowedSerde(Serde[Windowed[K]]):
    """The inner key's bytes and the window's start (int64, ms); the end follows from ``window_size_ms``.

    ``inner`` is the key's type (``str``, ...) or serde.

    Source: org.apache.kafka.streams.kstream.TimeWindowedSerializer, state.internals.WindowKeySchema.
    """

    def __init__(self, inner: type[K] | Serde[K], window_size_ms: int) -> None:
        self.inner = serde_for(inner)
        self.window_size_ms = window_size_ms
        self.immutable = self.inner.immutable

    def serializer(self, topic: str) -> Callable[[Windowed[K]], bytes]:
        write_key = self.inner.key_serializer(topic)
        pack = _INT64.pack

        def write_windowed(windowed: Windowed[K]) -> bytes:
            key, start, _ = windowed
            return write_key(key) + pack(start)

        return write_windowed

    def deserializer(self, topic: str) -> Callable[[bytes], Windowed[K]]:
        read_key = self.inner.deserializer(topic)
        unpack = _INT64.unpack
        size = self.window_size_ms
        new = tuple.__new__  # A third of the time of Windowed(...).

        def read_windowed(data: bytes) -> Windowed[K]:
            try:
                (start,) = unpack(data[-8:])
            except struct.error:
                raise SerializationError(
                    f"a windowed key has at least 8 bytes, {len(data)} found",
                    where=f"topic {topic}",
                    hint="check that the topic was written by a windowed aggregation",
                ) from None
            end = start + size
            end = min(end, _INT64_MAX)
            return new(Windowed, (read_key(data[:-8]), start, end))

        return read_windowed

    def partition_bytes(self, topic: str) -> Callable[[Windowed[K]], bytes]:
        """Windows of one key share its partition. Source: WindowedStreamPartitioner."""
        write_key = self.inner.key_serializer(topic)
        return lambda windowed: write_key(windowed[0])

    def __repr__(self) -> str:
        return f"TimeWindowedSerde({self.inner!r}, {self.window_size_ms})"


class SessionWindowedSerde(Serde[Windowed[K]]):
    """The inner key's bytes, the session's end, its start (int64, ms), in this order.

    ``inner`` is the key's type (``str``, ...) or serde.

    Source: org.apache.kafka.streams.kstream.SessionWindowedSerializer, state.internals.SessionKeySchema.
    """

    def __init__(self, inner: type[K] | Serde[K]) -> None:
        self.inner = serde_for(inner)
        self.immutable = self.inner.immutable

    def serializer(self, topic: str) -> Callable[[Windowed[K]], bytes]:
        write_key = self.inner.key_serializer(topic)
        pack = _SESSION.pack

        def write_windowed(windowed: Windowed[K]) -> bytes:
            key, start, end = windowed
            return write_key(key) + pack(end, start)

        return write_windowed

    def deserializer(self, topic: str) -> Callable[[bytes], Windowed[K]]:
        read_key = self.inner.deserializer(topic)
        unpack = _SESSION.unpack

        def read_windowed(data: bytes) -> Windowed[K]:
            try:
                end, start = unpack(data[-16:])
            except struct.error:
                raise SerializationError(
                    f"a session's key has at least 16 bytes, {len(data)} found",
                    where=f"topic {topic}",
                    hint="check that the topic was written by an aggregation of sessions",
                ) from None
            return Windowed(read_key(data[:-16]), start, end)

        return read_windowed

    def partition_bytes(self, topic: str) -> Callable[[Windowed[K]], bytes]:
        """Sessions of one key share its partition. Source: WindowedStreamPartitioner."""
        write_key = self.inner.key_serializer(topic)
        return lambda windowed: write_key(windowed[0])

    def __repr__(self) -> str:
        return f"SessionWindowedSerde({self.inner!r})"
