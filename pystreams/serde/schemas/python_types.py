"""The schema of a Python type, as msgspec or pydantic write and read it.

A schema is ``{"type": node, "objects": [object, ...]}``. A node has its kind in ``is``; nodes of objects and of arrays
with named fields refer to ``objects`` by number, so that types may be recursive. It does not contain names of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import msgspec
import msgspec.inspect as kinds

from pystreams.serde.schemas.finding import Schema
from pystreams.serde.shapes import plain_class

_LEAVES: dict[type[kinds.Type], str] = {
    kinds.AnyType: "any",
    kinds.RawType: "any",
    kinds.NoneType: "none",
    kinds.BoolType: "bool",
    kinds.IntType: "int",
    kinds.FloatType: "float",
    kinds.StrType: "str",
    kinds.BytesType: "bytes",
    kinds.ByteArrayType: "bytes",
    kinds.MemoryViewType: "bytes",
    kinds.DateTimeType: "datetime",
    kinds.DateType: "date",
    kinds.TimeType: "time",
    kinds.TimeDeltaType: "timedelta",
    kinds.UUIDType: "uuid",
    kinds.DecimalType: "decimal",
    kinds.ExtType: "msgpack extension",
}

_ELEMENTS: dict[type[kinds.Type], str] = {
    kinds.ListType: "list",
    kinds.VarTupleType: "list",
    kinds.SetType: "set",
    kinds.FrozenSetType: "set",
}

#: The constraints that msgspec and pydantic support.
LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern", "tz")


def type_schema(type_: Any) -> Schema:
    """The schema of a type that msgspec reads and writes."""
    types = TypeSchemas()
    node = types.of_kind(kinds.type_info(type_))
    return {"type": node, "objects": types.objects}


class TypeSchemas:
    """Collects the objects of one schema. ``of_custom`` describes classes that msgspec does not support."""

    def __init__(self, of_custom: Callable[[type], Schema] | None = None) -> None:
        self.objects: list[Schema] = []
        self._numbers: dict[Any, int] = {}
        self._of_custom = of_custom or named

    def of_type(self, type_: Any) -> Schema:
        """The node of an annotation; for a type that msgspec does not support, its name."""
        try:
            kind = kinds.type_info(type_)
        except (TypeError, NameError):
            return {"is": "class", "name": str(type_)}
        return self.of_kind(kind)

    def of_kind(self, kind: kinds.Type) -> Schema:
        """The node for msgspec's description of a type."""
        if isinstance(kind, kinds.Metadata):
            return self.of_kind(kind.type)
        leaf = _LEAVES.get(type(kind)) or _ELEMENTS.get(type(kind))
        if leaf is not None:
            return {"is": leaf, **_limits(kind), **self._elements(kind)}
        if isinstance(kind, kinds.DictType):
            entries = {"keys": self.of_kind(kind.key_type), "values": self.of_kind(kind.value_type)}
            return {"is": "mapping", **_limits(kind), **entries}
        if isinstance(kind, kinds.TupleType):
            return {"is": "tuple", "items": [self.of_kind(item) for item in kind.item_types]}
        if isinstance(kind, kinds.UnionType):
            return union(self.of_kind(one) for one in kind.types)
        if isinstance(kind, kinds.EnumType):
            return enum_schema(kind.cls)
        if isinstance(kind, kinds.LiteralType):
            return {"is": "one of", "values": sorted(kind.values, key=_order)}
        cls: Any = getattr(kind, "cls", type(kind))
        if isinstance(kind, kinds.CustomType) or is_pydantic(cls):
            return self._of_custom(cls)
        return self.numbered(cls, lambda: self._object(kind))

    def numbered(self, cls: Any, describe: Callable[[], Schema]) -> Schema:
        """The node of a class with fields. It gets its number before its fields are described, which may refer to
        it."""
        number = self._numbers.get(cls)
        if number is None:
            number = self._numbers[cls] = len(self.objects)
            self.objects.append({})
            self.objects[number] = describe()
        return {"is": "object", "number": number}

    def _elements(self, kind: kinds.Type) -> Schema:
        return {"of": self.of_kind(kind.item_type)} if isinstance(kind, kinds.CollectionType) else {}

    def _object(self, kind: Any) -> Schema:
        of_struct = isinstance(kind, kinds.StructType)
        closed = kind.forbid_unknown_fields if of_struct else isinstance(kind, kinds.NamedTupleType)
        as_array = kind.array_like if of_struct else closed
        omits = of_struct and plain_class(kind.cls).__struct_config__.omit_defaults and not as_array
        return {
            "form": "array" if as_array else "object",
            "fields": [self._field(field, omits=omits) for field in kind.fields],
            **({"unknown": "refused"} if closed else {}),
            **({"tag": [kind.tag_field, kind.tag]} if of_struct and kind.tag is not None else {}),
        }

    def _field(self, field: kinds.Field, *, omits: bool) -> Schema:
        default = default_schema(field.default, field.default_factory, msgspec.NODEFAULT)
        without_default = not field.required and not default
        return {
            "name": field.encode_name,
            "type": self.of_kind(field.type),
            **({"required": True} if field.required else default),
            # Unset fields, and optional fields of a TypedDict, are not written.
            **({"left_out": True} if without_default or (omits and "default" in default) else {}),
        }


def union(nodes: Iterable[Schema]) -> Schema:
    """One node for several, in an order that does not depend on the spelling of the union."""
    found: list[Schema] = []
    for node in nodes:
        found += [one for one in (node["of"] if node["is"] == "union" else [node]) if one not in found]
    return found[0] if len(found) == 1 else {"is": "union", "of": sorted(found, key=_order_of_node)}


def enum_schema(cls: type[Enum]) -> Schema:
    """An enum, described by the values of its members, because these are written."""
    values = [member.value for member in cls.__members__.values()]
    plain = sorted((plain_value(value) for value in values), key=_order)
    takes_others = any("_missing_" in vars(base) for base in cls.__mro__ if base.__module__ != "enum")
    return {"is": "one of", "values": plain, **({"others": True} if takes_others else {})}


def named(cls: type) -> Schema:
    """A class of which only the name is known."""
    return {"is": "class", "name": f"{cls.__module__}.{cls.__qualname__}"}


def default_schema(default: Any, factory: Any, missing: object) -> Schema:
    """The default of a field, which is used if a value lacks the field."""
    if default is not missing:
        return {"default": plain_value(default)}
    if factory in (list, dict, set, frozenset, tuple):
        return {"default": plain_value(factory())}
    return {} if factory is missing or factory is None else {"made": "by a function"}


def plain_value(value: Any) -> Any:
    """A value as JSON data; if it has no such form, the name of its class."""
    try:
        plain = msgspec.to_builtins(value, order="deterministic", str_keys=True)
    except (TypeError, ValueError):
        dump = getattr(value, "model_dump", None)
        return dump(mode="json") if dump is not None else named(type(value))["name"]
    return plain


def is_pydantic(cls: Any) -> bool:
    """Whether a class is a pydantic model or dataclass."""
    return "__pydantic_validator__" in getattr(cls, "__dict__", {}) or hasattr(
        cls, "__pydantic_core_schema__"
    )


def _limits(kind: kinds.Type) -> Schema:
    found = ((name, getattr(kind, name, None)) for name in LIMITS)
    return {name: value for name, value in found if value is not None}


def _order(value: Any) -> tuple[str, str]:
    return type(value).__name__, str(value)


def _order_of_node(node: Schema) -> tuple[bool, str]:
    return node["is"] == "object", "" if node["is"] == "object" else str(node["is"])
