"""The properties of a type's values that serdes must know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any

import msgspec.inspect as kinds
from msgspec.inspect import is_struct

from pystreams.errors import TopologyError


@dataclass(frozen=True, slots=True)
class Shape:
    """``immutable``: neither a value nor its parts can be changed. ``holds_sets``: the type contains sets, which must
    be sorted for writing because Python iterates them in no fixed order; ``untyped``: the type does not exclude sets.
    ``pydantic``: at least one part is a pydantic model. ``outer``: the class of all values, if there is one."""

    immutable: bool
    holds_sets: bool
    untyped: bool
    pydantic: bool
    outer: type | None

    @classmethod
    def of(cls, type_: Any) -> Shape:
        """The shape of ``type_``, including all types that it refers to. Raises ``TopologyError`` for a type that
        JSON and msgpack cannot represent."""
        try:
            root = kinds.type_info(type_)
        except (TypeError, NameError) as error:
            raise TopologyError(
                f"there is no serde for the type {type_name(type_)}",
                why=_why_not_a_type(type_) or str(error),
                hint=_type_to_give(type_) or SUPPORTED,
            ) from error
        pydantic = holds_sets = untyped = False
        for kind in _reachable(root):
            if isinstance(kind, kinds.SetType | kinds.FrozenSetType):
                holds_sets = True
            elif isinstance(kind, kinds.AnyType):
                untyped = True
            elif isinstance(kind, kinds.CustomType | kinds.DataclassType) and _is_pydantic(kind.cls):
                pydantic = True
            elif isinstance(kind, kinds.CustomType):
                raise TopologyError(
                    f"there is no serde for the type {type_name(kind.cls)}",
                    where="" if kind is root else f"in {type_name(type_)}",
                    hint=SUPPORTED,
                )
        return cls(_is_immutable(root, set()), holds_sets, untyped, pydantic, _outer(root))


SUPPORTED = (
    "give str, int, float, bytes, bool, uuid.UUID, dict, list, a msgspec.Struct, dataclass, TypedDict or pydantic "
    "model, a type made of these such as list[int], or a Serde (Serde.of(write, read) makes one of two functions)"
)

_LEAVES = (
    kinds.NoneType,
    kinds.BoolType,
    kinds.IntType,
    kinds.FloatType,
    kinds.StrType,
    kinds.BytesType,
    kinds.DateTimeType,
    kinds.DateType,
    kinds.TimeType,
    kinds.TimeDeltaType,
    kinds.UUIDType,
    kinds.DecimalType,
    kinds.EnumType,
    kinds.LiteralType,
)

_IMMUTABLE_CONTAINERS = (
    kinds.TupleType,
    kinds.VarTupleType,
    kinds.NamedTupleType,
    kinds.FrozenSetType,
    kinds.UnionType,
)


def _is_value(type_: Any) -> bool:
    """Whether the program has given a value, such as ``Order()`` or ``5``, instead of its type."""
    return not callable(type_) and type(type_).__module__ not in ("typing", "types")


def _why_not_a_type(type_: Any) -> str:
    """Why a text, or any other value, is not a type; empty for everything else."""
    if isinstance(type_, str):
        return "it is text: only annotations may give a type in quotes"
    return f"it is a value of the type {type(type_).__qualname__}, not a type" if _is_value(type_) else ""


def _type_to_give(type_: Any) -> str:
    """The hint for a value in place of its type, and for a type in quotes; empty where it is not clear what is meant:
    ``{"a": int}`` may be many things."""
    if isinstance(type_, str):
        return f"write the type without quotes: {type_}" if type_.isidentifier() else ""
    if isinstance(type_, list) and len(type_) == 1 and isinstance(type_[0], type):
        return f"write list[{type_name(type_[0])}]"
    cls = type(type_)
    plain = cls in (int, float, bool) or is_struct(type_) or is_dataclass(type_) or _is_pydantic(cls)
    return f"give the type itself: {cls.__qualname__}" if _is_value(type_) and plain else ""


def type_name(type_: Any) -> str:
    """A type's name for people: ``Order``, ``list[int]``."""
    return type_.__qualname__ if isinstance(type_, type) and not hasattr(type_, "__args__") else repr(type_)


def plain_class(cls: Any) -> Any:
    """The class itself, if a type is a generic one with its parameters: ``Box`` of ``Box[int]``."""
    return getattr(cls, "__origin__", cls)


def _outer(root: kinds.Type) -> type | None:
    if isinstance(root, kinds.DictType | kinds.TypedDictType):
        return dict
    if isinstance(root, kinds.ListType):
        return list
    if isinstance(root, kinds.StructType | kinds.DataclassType | kinds.CustomType):
        outer: type = plain_class(root.cls)
        return outer
    return None


def _is_pydantic(cls: type) -> bool:
    return "__pydantic_validator__" in vars(cls) or hasattr(cls, "__pydantic_core_schema__")


def _parts(kind: kinds.Type) -> Iterator[kinds.Type]:
    """The types that ``kind`` directly consists of."""
    for name in kind.__struct_fields__:
        value = getattr(kind, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, kinds.Type):
                yield item
            elif isinstance(item, kinds.Field):
                yield item.type


def _reachable(root: kinds.Type) -> Iterator[kinds.Type]:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        kind = waiting.pop()
        if id(kind) not in seen:
            seen.add(id(kind))
            yield kind
            waiting.extend(_parts(kind))


def _is_immutable(kind: kinds.Type, assumed: set[int]) -> bool:
    """``assumed``: structs that are being checked; a recursive type is immutable if all its other parts are."""
    if isinstance(kind, _LEAVES) or id(kind) in assumed:
        return True
    if isinstance(kind, kinds.StructType):
        frozen = bool(plain_class(kind.cls).__struct_config__.frozen)
    else:
        frozen = isinstance(kind, _IMMUTABLE_CONTAINERS)
    return frozen and all(_is_immutable(part, assumed | {id(kind)}) for part in _parts(kind))
