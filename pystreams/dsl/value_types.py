"""The types of a stream's values, if they are known, and functions that read their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from pystreams.dsl.annotations import returned_type
from pystreams.errors import TopologyError
from pystreams.nearest import did_you_mean, not_among
from pystreams.serde import BYTES
from pystreams.serde.base import AnySerde
from pystreams.serde.primitives import VALUE_TYPES
from pystreams.serde.shapes import plain_class, type_name
from pystreams.topology.deferred import DeferredSerde

#: The type of a part of a value (None: unknown), and the function that reads it.
Part = tuple[Any, Callable[[Any], Any]]


def type_of_values(serde: AnySerde) -> Any:
    """The type of a serde's values; None if it is not known."""
    if isinstance(serde, DeferredSerde):
        # Bytes are assumed of a source of which nothing is known.
        known = serde.fallback
        return None if known is None or known is BYTES else type_of_values(known)
    return VALUE_TYPES.get(type(serde)) or settled(getattr(serde, "type", None))


def settled(annotation: Any) -> Any:
    """The type that an annotation gives, without its None and its limits; None if it gives none."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return settled(arguments[0])
    if isinstance(annotation, NewType):
        return settled(annotation.__supertype__)
    if origin in (Union, UnionType):
        others = {settled(argument) for argument in arguments if argument is not NoneType}
        if others <= {int, float}:
            return others.pop() if len(others) == 1 else None
        return others.pop() if len(others) == 1 else annotation
    return None if annotation in (Any, object, NoneType) or isinstance(annotation, TypeVar) else annotation


def part_of(values: Any, name: str, what: str) -> Part:
    """Field ``name`` of values of the type ``values`` (None: unknown). Raises ``TopologyError`` for a field that they
    do not have."""
    if values is None:
        return None, _item_or_attribute(name, what)
    cls = plain_class(values)
    if is_typeddict(cls):
        return _type_of_field(cls, name, what), _item_or_none(name)
    if cls is dict or cls is Mapping:
        arguments = get_args(values)
        return settled(arguments[1]) if len(arguments) == 2 else None, _item(name, what)
    computed = getattr(cls, name, None)
    if isinstance(computed, property | cached_property):
        function = computed.fget if isinstance(computed, property) else computed.func
        return None if function is None else settled(returned_type(function)), attrgetter(name)
    if isinstance(cls, type) and _fields(cls):
        return _type_of_field(cls, name, what), attrgetter(name)
    if cls in (str, int, float, bool, bytes):
        raise TopologyError(
            f"{what} names a field, and values of type {type_name(values)} have none",
            hint="leave the name out to aggregate the value itself, or give a function of the value",
        )
    return None, _item_or_attribute(name, what)


def _fields(cls: Any) -> tuple[str, ...]:
    """The names of the fields of a Struct, a dataclass, a named tuple, a TypedDict or a pydantic model."""
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls))
    if is_typeddict(cls):
        return (*cls.__required_keys__, *cls.__optional_keys__)
    # Other classes may have another `_fields`, such as messages of Protobuf in pure Python.
    named = "_fields" if issubclass(cls, tuple) else "__struct_fields__"
    found: Any = getattr(cls, named, None) or getattr(cls, "__pydantic_fields__", ())
    return tuple(found)


def _type_of_field(cls: Any, name: str, what: str) -> Any:
    """The type of a field; None if only type checkers can resolve it. Raises ``TopologyError`` if there is no such
    field."""
    names = _fields(cls)
    if name not in names:
        raise TopologyError(
            f"{what} names a field that {type_name(cls)} does not have",
            **not_among(name, names, "its fields are", "name one of them, or give a function of the value"),
        )
    try:
        return settled(get_type_hints(cls).get(name))
    except (NameError, TypeError):
        return None


def _item(name: str, what: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return value[name]
        except KeyError:
            raise LookupError(_missing(name, what, value)) from None

    return read


def _item_or_none(name: str) -> Callable[[Any], Any]:
    return lambda value: value.get(name)


def _item_or_attribute(name: str, what: str) -> Callable[[Any], Any]:
    item = _item(name, what)

    def read(value: Any) -> Any:
        if isinstance(value, Mapping):
            return item(value)
        try:
            return getattr(value, name)
        except AttributeError:
            raise LookupError(_missing(name, what, value)) from None

    return read


def _missing(name: str, what: str, value: Any) -> str:
    names = list(value) if isinstance(value, Mapping) else [one for one in dir(value) if one[0] != "_"]
    meant = did_you_mean(name, [str(one) for one in names])
    otherwise = f"where it may be missing, give a function: lambda value: value.get({name!r})"
    return f"{what}: a value of type {type(value).__name__} has no {name!r}: {meant or otherwise}"
