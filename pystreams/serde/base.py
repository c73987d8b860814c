"""The base class of serdes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final, Generic, TypeAlias, TypeVar

from pystreams.errors import TopologyError
from pystreams.serde.schemas.finding import Schema

T = TypeVar("T")

#: The advice about bytes that a serde cannot read.
WRITTEN_AS: Final = "read the topic with the types it was written with (key=, value=)"


class Serde(Generic[T]):
    """Serializes values of one type to bytes, and deserializes them. A serde never receives None: None is null in a
    topic.

    A serde returns *functions*, which are bound once per topic when a task is created, so that the hot path pays only
    for the codec. The functions raise ``SerializationError``; any other exception counts as one.
    """

    #: Whether values are immutable, so that a cache may keep the object instead of its bytes.
    immutable: bool = False
    #: Whether values are rows of declared aggregates, whose fields have the names of the program's arguments.
    declared_rows: bool = False

    def serializer(self, topic: str) -> Callable[[T], bytes]:
        """The function that serializes values for ``topic``."""
        raise NotImplementedError

    def key_serializer(self, topic: str) -> Callable[[T], bytes]:
        """The function that serializes keys for ``topic``. Equal keys must have equal bytes, because stores and
        partitioners compare the bytes."""
        return self.serializer(topic)

    def deserializer(self, topic: str) -> Callable[[bytes], T]:
        """The function that deserializes values of ``topic``."""
        raise NotImplementedError

    def header_deserializer(self, topic: str, part: str) -> tuple[str, Callable[[bytes, bytes], T]] | None:
        """For topics whose records may have the schema of their keys or values (``part``) in a header: the header's
        name, and a function of the bytes and the header's value that deserializes them. Only sources use it, because
        pystreams itself does not write such headers. None: no header matters."""
        return None

    def partition_bytes(self, topic: str) -> Callable[[T], bytes] | None:
        """For keys of which only a part of the bytes determines the partition (windowed keys: the inner key): the
        function that returns this part. None: the whole key determines it."""
        return None

    def configured(self, settings: Mapping[str, str]) -> Serde[T]:
        """A serde for an application with these settings (``schema.registry.url``, ...): this one, or a configured
        copy.

        Serdes in attributes of this one are configured, too.
        """
        holds = getattr(self, "__dict__", {})
        inner = {name: part.configured(settings) for name, part in holds.items() if isinstance(part, Serde)}
        if all(part is holds[name] for name, part in inner.items()):
            return self
        configured = copy(self)
        vars(configured).update(inner)
        return configured

    def bytes_schema(self) -> Schema:
        """The schema of the bytes, as JSON data, by which two versions of a program are compared: a dict whose
        ``format`` defines its other entries. For a user's serde these are the name of its class and the data that it
        was made with, because no more is known. Call ``schema_of`` instead, which knows when an inherited schema does
        not apply."""
        return _by_name(self)

    @staticmethod
    def of(
        serialize: Callable[[T], bytes], deserialize: Callable[[bytes], T], *, immutable: bool = False
    ) -> Serde[T]:
        """A serde made of two functions. ``immutable``: see the attribute of that name. Raises ``TopologyError`` if
        one of them cannot be called."""
        for given in (serialize, deserialize):
            if not callable(given):
                raise TopologyError(
                    f"a serde is made of two functions, and {given!r} is not a function",
                    hint="Serde.of(write, read): write returns bytes, read takes bytes",
                )
        return FunctionSerde(serialize, deserialize, immutable)


AnySerde = Serde[Any]


def schema_of(serde: AnySerde) -> Schema:
    """The schema of a serde's bytes. A class that overrides serializer or deserializer, but not ``bytes_schema``, is
    identified by its name."""
    mro = type(serde).__mro__

    def defined_by(method: str) -> int:
        return next(i for i, cls in enumerate(mro) if method in vars(cls))

    with_schema = defined_by("bytes_schema")
    codec = ("serializer", "key_serializer", "deserializer")
    return _by_name(serde) if any(defined_by(part) < with_schema for part in codec) else serde.bytes_schema()


def _by_name(serde: AnySerde) -> Schema:
    slots = (name for cls in type(serde).__mro__ for name in getattr(cls, "__slots__", ()))
    names = sorted({*slots, *getattr(serde, "__dict__", {})})
    values = ((name, getattr(serde, name, None)) for name in names)
    arguments = {name: data for name, value in values if (data := _data(value)) is not None}
    return {"format": "serde", "name": _full_name(type(serde)), **({"data": arguments} if arguments else {})}


def _data(value: Any) -> Any:
    """An attribute, if it is data: a type, a size, an inner serde. None for anything else."""
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Serde):
        return schema_of(value)
    if isinstance(value, type):
        return _full_name(value)
    return str(value) if hasattr(value, "__origin__") else None


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


#: A user gives a serde either as the type of the values, or as the serde itself.
TypeOrSerde: TypeAlias = type[T] | Serde[T]


class FunctionSerde(Serde[T]):
    """A serde of two functions, which are the same for every topic."""

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
