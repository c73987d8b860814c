"""JSON and msgpack for everything that has fields or elements. msgspec does the work, pydantic for its own models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

import msgspec

from pystreams.errors import SerializationError
from pystreams.serde.base import Serde
from pystreams.serde.pydantic_models import PydanticModels
from pystreams.serde.shapes import Shape, type_name

T = TypeVar("T")


class _StructuredSerde(Serde[T]):
    """A type with a codec that is bound once and serves all topics."""

    @overload
    def __init__(self, type_: type[T]) -> None: ...
    @overload
    def __init__(self: _StructuredSerde[Any], type_: Any) -> None: ...
    def __init__(self, type_: Any) -> None:
        self.type = Any if type_ is object else type_
        shape = Shape.of(self.type)
        self.immutable = shape.immutable
        self._encode, self._decode = self._codec(shape)

    def _codec(self, shape: Shape) -> tuple[Callable[[T], bytes], Callable[[bytes], T]]:
        raise NotImplementedError

    def serializer(self, topic: str) -> Callable[[T], bytes]:
        return self._encode

    def deserializer(self, topic: str) -> Callable[[bytes], T]:
        decode = self._decode

        def read(data: bytes) -> T:
            try:
                return decode(data)
            except (ValueError, RecursionError) as error:
                raise SerializationError(
                    f"{len(data)} bytes could not be read as {self!r}",
                    where=f"topic {topic}",
                    why=f"{type(error).__name__}: {error}",
                    hint="check that this is the type the topic was written with",
                ) from error

        return read

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type_name(self.type)})"


class JsonSerde(_StructuredSerde[T]):
    """JSON (UTF-8, no spaces, fields in the order of the type or the dict), checked against the type when read.

    ``type_``: dict, list, ``msgspec.Struct``, dataclass, ``TypedDict``, pydantic model, a type made of these such as
    ``list[int]``, or ``Any``. A type that holds sets is written in sorted order, so that equal values have equal bytes.
    Raises ``TopologyError`` for a type that has no JSON form.
    """

    def _codec(self, shape: Shape) -> tuple[Callable[[T], bytes], Callable[[bytes], T]]:
        if shape.pydantic:
            return PydanticModels(self.type, holds_sets=shape.holds_sets).json()
        encoder = msgspec.json.Encoder(order="deterministic" if shape.holds_sets else None)
        return encoder.encode, cast("Callable[[bytes], T]", msgspec.json.Decoder(self.type).decode)


class MsgpackSerde(_StructuredSerde[T]):
    """MessagePack, for the same types as ``JsonSerde``: about half the time and three quarters of the bytes."""

    def _codec(self, shape: Shape) -> tuple[Callable[[T], bytes], Callable[[bytes], T]]:
        if shape.pydantic:
            return PydanticModels(self.type, holds_sets=shape.holds_sets).msgpack()
        encoder = msgspec.msgpack.Encoder(order="deterministic" if shape.holds_sets else None)
        return encoder.encode, cast("Callable[[bytes], T]", msgspec.msgpack.Decoder(self.type).decode)
