"""What it takes to be a serde."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Generic, TypeAlias, TypeVar

from pystreams.errors import TopologyError
from pystreams.serde.schemas.finding import Schema

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

    def header_deserializer(self, topic: str, part: str) -> tuple[str, Callable[[bytes, bytes], T]] | None:
        """For topics whose records may say in a header how their keys or values (``part``) are to be read: the header's
        name, and the function of the bytes and of what it says. It goes no further than the source, as what is written
        then is written in another way. None: no header says anything about it."""
        return None

    def partition_bytes(self, topic: str) -> Callable[[T], bytes] | None:
        """For keys whose partition follows from a part of their bytes (windowed keys: the inner key): the function
        that gives that part. None: the whole key decides."""
        return None

    def configured(self, settings: Mapping[str, str]) -> Serde[T]:
        """The serde as an application with these settings uses it (``schema.registry.url``, ...): this one, or a copy.

        A serde that holds others as attributes has them configured.
        """
        holds = getattr(self, "__dict__", {})
        inner = {name: part.configured(settings) for name, part in holds.items() if isinstance(part, Serde)}
        if all(part is holds[name] for name, part in inner.items()):
            return self
        configured = copy(self)
        vars(configured).update(inner)
        return configured

    def bytes_schema(self) -> Schema:
        """What the bytes hold, as data that JSON has: two versions of a program are compared by it. A dict whose
        ``format`` says how to read the rest; here the class's name and the data that the serde was made with, as
        nobody can tell more of a serde of the user's. Ask ``schema_of``, which knows when not to trust an inherited
        one."""
        return _by_name(self)

    @staticmethod
    def of(
        serialize: Callable[[T], bytes], deserialize: Callable[[bytes], T], *, immutable: bool = False
    ) -> Serde[T]:
        """A serde of two functions. ``immutable``: see the attribute of that name. Raises ``TopologyError`` for what
        cannot be called."""
        for given in (serialize, deserialize):
            if not callable(given):
                raise TopologyError(
                    f"a serde is made of two functions, and {given!r} is not a function",
                    hint="Serde.of(write, read): write gives bytes, read takes them",
                )
        return _FunctionSerde(serialize, deserialize, immutable)


AnySerde = Serde[Any]


def schema_of(serde: AnySerde) -> Schema:
    """What the bytes of a serde hold. A class that writes or reads in its own way, and does not tell how, is told by
    its name."""
    mro = type(serde).__mro__

    def defined_by(method: str) -> int:
        return next(i for i, cls in enumerate(mro) if method in vars(cls))

    told_by = defined_by("bytes_schema")
    codec = ("serializer", "key_serializer", "deserializer")
    return _by_name(serde) if any(defined_by(part) < told_by for part in codec) else serde.bytes_schema()


def _by_name(serde: AnySerde) -> Schema:
    slots = (name for cls in type(serde).__mro__ for name in getattr(cls, "__slots__", ()))
    names = sorted({*slots, *getattr(serde, "__dict__", {})})
    values = ((name, getattr(serde, name, None)) for name in names)
    told = {name: data for name, value in values if (data := _data(value)) is not None}
    return {"format": "serde", "name": _full_name(type(serde)), **({"data": told} if told else {})}


def _data(value: Any) -> Any:
    """An attribute as far as it is data: a type, a size, an inner serde. None for anything else."""
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Serde):
        return schema_of(value)
    if isinstance(value, type):
        return _full_name(value)
    return str(value) if hasattr(value, "__origin__") else None


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


#: How users give a serde: as the type of the values, or as the serde itself.
TypeOrSerde: TypeAlias = type[T] | Serde[T]


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
