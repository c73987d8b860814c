"""What it takes to be a serde."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pystreams.errors import SerializationError

T = TypeVar("T")


class Serde(Generic[T]):
    """Writes values of one type as bytes and reads them back. None never reaches a serde: it is null on the wire.

    A serde gives *functions*, bound once per topic when a task is built, so that the hot path pays for the codec
    alone. The functions raise ``SerializationError`` (or any exception, which counts as one: ``read_error`` and
    ``write_error`` make it one).
    """

    #: True if values cannot be changed in place, so that a cache may keep the object instead of its bytes.
    immutable: bool = False

    #: Length of the value's bytes without writing them, if that is cheap to know; else None.
    byte_length: Callable[[T], int] | None = None

    def serializer(self, topic: str) -> Callable[[T], bytes]:
        """The function that writes values for ``topic``."""
        raise NotImplementedError

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


def read_error(error: Exception, serde: AnySerde, topic: str, found: bytes) -> SerializationError:
    """``error``, which a deserializer raised, as the ``SerializationError`` to raise from it."""
    if isinstance(error, SerializationError):
        return error
    return SerializationError(
        f"{len(found)} bytes could not be read as {serde!r}",
        where=f"topic {topic}",
        why=f"{type(error).__name__}: {error}",
        hint="check that this is the type the topic was written with",
    )


def write_error(error: Exception, serde: AnySerde, topic: str, found: object) -> SerializationError:
    """``error``, which a serializer raised, as the ``SerializationError`` to raise from it."""
    if isinstance(error, SerializationError):
        return error
    return SerializationError(
        f"a value of type {type(found).__qualname__} could not be written as {serde!r}",
        where=f"topic {topic}",
        why=f"{type(error).__name__}: {error}",
        hint="name the type of the values that arrive here with key= or value=, or map them to this one before",
    )
