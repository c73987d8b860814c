"""JSON and msgpack serdes for types with fields or elements, implemented by msgspec, and by pydantic for its models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, TypeVar, cast, overload

import msgspec

from pystreams.errors import SerializationError
from pystreams.serde.base import WRITTEN_AS, Serde
from pystreams.serde.pydantic_models import PydanticModels
from pystreams.serde.schemas.finding import Schema
from pystreams.serde.schemas.pydantic_types import typed_schema
from pystreams.serde.shapes import Shape, type_name

T = TypeVar("T")


class _StructuredSerde(Serde[T]):
    """Base class: a type and its codec, which is made once and used for all topics."""

    @overload
    def __init__(self, type_: type[T]) -> None: ...
    @overload
    def __init__(self: _StructuredSerde[Any], type_: Any) -> None: ...
    def __init__(self, type_: Any) -> None:
        self.type = Any if type_ is object else type_
        shape = self._shape = Shape.of(self.type)
        self.immutable = shape.immutable
        self._encode, self._encode_key, self._decode = self._codec(shape)

    def _codec(self, shape: Shape) -> tuple[Callable[[T], bytes], Callable[[T], bytes], Callable[[bytes], T]]:
        """Three functions: the first serializes values, the second keys, the third deserializes both."""
        raise NotImplementedError

    #: The format's name in a schema.
    _format: ClassVar[str]

    def bytes_schema(self) -> Schema:
        return {"format": self._format, **typed_schema(self.type)}

    def serializer(self, topic: str) -> Callable[[T], bytes]:
        return self._checked(self._encode, topic)

    def key_serializer(self, topic: str) -> Callable[[T], bytes]:
        return self._checked(self._encode_key, topic)

    def _checked(self, encode: Callable[[T], bytes], topic: str) -> Callable[[T], bytes]:
        """``encode`` with a check of the value's class: msgspec would write other types, which could not be read
        again."""
        outer = self._shape.outer
        if outer is None:
            return encode

        def write(value: T) -> bytes:
            # Two checks: comparing the class itself first is faster.
            if value.__class__ is not outer and not isinstance(value, outer):
                raise SerializationError(
                    f"a value of type {type(value).__name__} cannot be serialized as {self!r}",
                    where=f"topic {topic}",
                    why=f"this serde is for values of type {type_name(outer)}",
                    hint="check that the step computes values of this type",
                )
            return encode(value)

        return write

    def deserializer(self, topic: str) -> Callable[[bytes], T]:
        decode = self._decode

        def read(data: bytes) -> T:
            try:
                return decode(data)
            except (ValueError, RecursionError) as error:
                raise self._unreadable(data, topic, error) from error

        return read

    def _unreadable(self, data: bytes, topic: str, error: Exception) -> SerializationError:
        where, misfits = f"topic {topic}", misfit(error)
        if misfits:
            name = type_name(self.type)
            return SerializationError(
                f"the content does not fit {name}: {misfits}",
                where=where,
                hint=f"change {name} so that it fits (a field with a default may be missing)",
            )
        return SerializationError(
            f"{len(data)} bytes could not be deserialized as {self!r}",
            where=where,
            why=f"{type(error).__name__}: {error}",
            hint=WRITTEN_AS,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the type, because codecs cannot be pickled and can be made again of the type."""
        return type(self), (self.type,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type_name(self.type)})"


class JsonSerde(_StructuredSerde[T]):
    """JSON (UTF-8, no spaces, fields in the order of the type or the dict), validated against the type when it is read.

    ``type_``: dict, list, ``msgspec.Struct``, dataclass, ``TypedDict``, pydantic model, a type made of these such as
    ``list[int]``, or ``Any``. Equal keys have equal bytes in every process: dicts in a key are written in sorted order.
    So are sets, and the dicts of a value that contains a set.

    A value to be written must be of the type's own class (dict, list, the Struct, the dataclass), else it is a
    ``SerializationError``; its fields and elements are validated only when it is read. JSON does not have NaN and
    infinity: they are written as null, as msgspec does. ``MsgpackSerde`` keeps them.

    Raises ``TopologyError`` for a type that has no JSON form.
    """

    _format = "json"

    def _codec(self, shape: Shape) -> tuple[Callable[[T], bytes], Callable[[T], bytes], Callable[[bytes], T]]:
        if shape.pydantic:
            encode, read = PydanticModels(self.type, holds_sets=shape.holds_sets).json()
            return encode, encode, read
        decode = cast("Callable[[bytes], T]", msgspec.json.Decoder(self.type).decode)
        as_it_is, in_order = msgspec.json.Encoder().encode, msgspec.json.Encoder(order="deterministic").encode

        def encode_untyped(value: T) -> bytes:
            data = as_it_is(value)
            # A set is written as an array: without "[" (0x5B) there is none. (A byte is found faster as a number.)
            return in_order(value) if 0x5B in data and _holds_sets(value) else data

        if shape.holds_sets:
            return in_order, in_order, decode
        return encode_untyped if shape.untyped else as_it_is, in_order, decode


class MsgpackSerde(_StructuredSerde[T]):
    """MessagePack, for the same types as ``JsonSerde``: about half the time and three quarters of the bytes."""

    _format = "msgpack"

    def _codec(self, shape: Shape) -> tuple[Callable[[T], bytes], Callable[[T], bytes], Callable[[bytes], T]]:
        if shape.pydantic:
            encode, read = PydanticModels(self.type, holds_sets=shape.holds_sets).msgpack()
            return encode, encode, read
        decode = cast("Callable[[bytes], T]", msgspec.msgpack.Decoder(self.type).decode)
        as_it_is = msgspec.msgpack.Encoder().encode
        in_order = msgspec.msgpack.Encoder(order="deterministic").encode

        def encode_untyped(value: T) -> bytes:
            return in_order(value) if _holds_sets(value) else as_it_is(value)

        if shape.holds_sets:
            return in_order, in_order, decode
        return encode_untyped if shape.untyped else as_it_is, in_order, decode


def misfit(error: Exception) -> str:
    """The misfit between value and type, in words, if the bytes themselves have the format; otherwise an empty
    string."""
    if isinstance(error, msgspec.ValidationError):
        return str(error)
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(error, pydantic.ValidationError):
        return ""
    found = cast("Any", error).errors(include_url=False, include_input=False, include_context=False)
    if any(one["type"] == "json_invalid" for one in found):
        return ""
    # The places without the values: those are the user's data.
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ") for one in found)


#: The types of most leaves of values.
_LEAVES = frozenset({str, int, float, bool, bytes, type(None)})


def _holds_sets(value: object) -> bool:
    """Whether a set occurs anywhere in a value whose type does not exclude it."""
    kind = value.__class__
    parts: Iterable[object]
    if kind is list:
        parts = cast("list[object]", value)
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    elif isinstance(value, msgspec.Struct):
        parts = msgspec.structs.astuple(value)
    elif is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value)]
    else:
        return isinstance(value, set | frozenset)
    for part in parts:  # noqa: SIM110 - a generator takes half as long again
        if part.__class__ not in _LEAVES and _holds_sets(part):
            return True
    return False
