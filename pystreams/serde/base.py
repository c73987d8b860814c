"""What it takes to be a serde."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Serde(Generic[T]):
    """Writes values of one type as bytes and reads them back. None never reaches a serde: it is null on the wire.

    A serde gives *functions*, bound once per topic when a task is built, so that the hot path pays for the codec
    alone. The functions raise ``SerializationError`` (or any exception, which counts as one).
    """

    #: True if values cannot be changed in place, so that a cache may keep the object instead of its bytes.
    immutable: bool = False

    def serializer(self, topic: str) -> Callable[[T], bytes]:
        """The function that writes values for ``topic``."""
        raise NotImplementedError

    def key_serializer(self, topic: str) -> Callable[[T], bytes]:
        """The function that writes keys for ``topic``. Equal keys must have equal bytes: stores and partitions know
        keys by them."""
        return self.serializer(topic)

    def deserializer(self, topic: str) -> Callable[[bytes], T]:
        """The function that reads values of ``topic``."""
        raise NotImplementedError

    def partition_bytes(self, topic: str) -> Callable[[T], bytes] | None:
        """For keys whose partition follows from a part of their bytes (windowed keys: the inner key): the function
        that gives that part. None: the whole key decides."""
        return None

    @staticmethod
    def of(
        serialize: Callable[[T], bytes], deserialize: Callable[[bytes], T], *, immutable: bool = False
    ) -> Serde[T]:
        """A serde of two functions. ``immutable``: see the attribute of that name."""
        return _FunctionSerde(serialize, deserialize, immutable)


AnySerde = Serde[Any]


class _FunctionSerde(Serde[T]):
    """Two functions, the same for every topic."""

    def __init__(
        self, serialize: Callable[[T], bytes], deserialize: Callable[[bytes], T], immutable: bool
    ) -> None:
        self._serialize = serialize
        self._deserialize = deserialize
        self.immutable = immutable

    def serializer(self, topic: str) -> Callable[[T], bytes]:
        return self._serialize

    def deserializer(self, topic: str) -> Callable[[bytes], T]:
        return self._deserialize

    def __repr__(self) -> str:
        names = (getattr(f, "__qualname__", repr(f)) for f in (self._serialize, self._deserialize))
        return f"Serde.of({', '.join(names)})"
