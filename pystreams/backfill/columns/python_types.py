"""The types of Python's values, by the schema that ``pystreams diff`` compares: serde.schemas.python_types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Final

import msgspec
import pyarrow as pa

from pystreams.backfill.columns.typed import (
    DECIMAL,
    LOCAL_TIME,
    MOMENT,
    TEXT,
    TIME_TEXT,
    UUID_TEXT,
    Fit,
    Typed,
    json_text,
    list_of,
    mapping_of,
    struct_of,
)
from pystreams.serde.schemas import Schema
from pystreams.serde.schemas.pydantic_types import attribute_names
from pystreams.serde.schemas.python_types import is_pydantic

_LEAVES: Final = {
    "none": Typed(pa.string()),
    "bool": Typed(pa.bool_()),
    "int": Typed(pa.int64()),
    "float": Typed(pa.float64()),
    "str": Typed(pa.string()),
    "bytes": Typed(pa.binary()),
    "date": Typed(pa.date32()),
    "time": TIME_TEXT,
    "timedelta": Typed(pa.duration("us")),
    "uuid": UUID_TEXT,
    "decimal": Typed(DECIMAL),
}

#: The types of choices: enums and literals.
_CHOICES: Final = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}

#: Types that cannot be the key of a map.
_NO_KEYS: Final = ("list", "set", "mapping", "tuple", "object", "union", "any", "class", "msgpack extension")


def type_of_schema(schema: Schema, *, of_pydantic: bool = False) -> Typed:
    """The type for a schema of a Python type, ``{"type": node, "objects": [...]}``. ``of_pydantic``: values may be in
    root models, which the schema does not show.

    A part of a value that has no type (any value, a union, a class that is only known by name, a mapping of any values,
    an object within itself) is ``TEXT``; the parts around it keep their types.
    """
    return _Types(schema["objects"], of_pydantic).of(schema["type"])


class _Types:
    def __init__(self, objects: Sequence[Schema], of_pydantic: bool) -> None:
        self._objects = objects
        self._of_pydantic = of_pydantic
        #: The objects around the node that is looked at.
        self._around: list[int] = []

    def of(self, node: Schema) -> Typed:
        """The type of a node."""
        found = self._of(node)
        rooted = self._of_pydantic and found is not TEXT
        return found._replace(fit=_out_of_root(found.fit)) if rooted else found

    def _of(self, node: Schema) -> Typed:
        kind = node["is"]
        if kind in _LEAVES:
            return _LEAVES[kind]
        if kind == "datetime":
            return Typed(LOCAL_TIME if node.get("tz") is False else MOMENT)
        if kind == "one of":
            return _choice(node["values"])
        if kind == "union":
            return self._union([one for one in node["of"] if one["is"] != "none"])
        if kind in ("list", "set"):
            return self._elements(node)
        if kind == "mapping":
            return self._mapping(node)
        if kind == "tuple" and node["items"]:
            parts = [self.of(item) for item in node["items"]]
            return struct_of([f"_{number}" for number in range(1, len(parts) + 1)], parts, tuple)
        return self._object(node["number"]) if kind == "object" else TEXT

    def _union(self, others: Sequence[Schema]) -> Typed:
        if len(others) == 1:
            return self.of(others[0])
        # Arrow refuses a whole number that a float does not hold.
        return _LEAVES["float"] if {one["is"] for one in others} == {"int", "float"} else TEXT

    def _elements(self, node: Schema) -> Typed:
        if node["of"]["is"] == "any":
            return TEXT
        found = list_of(self.of(node["of"]))
        if node["is"] == "list":
            return found
        to_list = found.fit
        assert to_list is not None
        return found._replace(fit=lambda values: to_list(sorted(values, key=json_text)))

    def _mapping(self, node: Schema) -> Typed:
        if node["keys"]["is"] in _NO_KEYS or node["values"]["is"] == "any":
            return TEXT
        key = self.of(node["keys"])
        return TEXT if key is TEXT else mapping_of(key, self.of(node["values"]))

    def _object(self, number: int) -> Typed:
        fields = self._objects[number]["fields"]
        if number in self._around or not fields:
            return TEXT
        self._around.append(number)
        parts = [self.of(field["type"]) for field in fields]
        self._around.pop()
        names = [field["name"] for field in fields]
        return struct_of(names, parts, _values_of(names))


def _choice(values: Iterable[Any]) -> Typed:
    types = {type(value) for value in values if value is not None}
    found = _CHOICES.get(types.pop()) if len(types) == 1 else None
    return (
        TEXT
        if found is None
        else Typed(found, lambda value: value.value if isinstance(value, Enum) else value)
    )


def _out_of_root(fit: Fit | None) -> Fit:
    def fit_root(value: Any) -> Any:
        while getattr(value.__class__, "__pydantic_root_model__", False):
            value = value.root
        return value if fit is None or value is None else fit(value)

    return fit_root


def _values_of(names: Sequence[str]) -> Callable[[Any], Iterable[Any]]:
    """The function that gives an object's values by their written names, whatever its class is."""
    by_class: dict[type, Callable[[Any], Iterable[Any]]] = {}

    def values_of(value: Any) -> Iterable[Any]:
        cls = value.__class__
        found = by_class.get(cls)
        if found is None:
            found = by_class[cls] = _of_class(cls, names)
        return found(value)

    return values_of


def _of_class(cls: Any, names: Sequence[str]) -> Callable[[Any], Iterable[Any]]:
    if issubclass(cls, dict):
        return lambda value: [value.get(name) for name in names]
    if issubclass(cls, tuple):
        return tuple
    attributes = _attributes(cls)
    own = [attributes.get(name, name) for name in names]
    if not issubclass(cls, msgspec.Struct):
        return lambda value: [getattr(value, name) for name in own]

    def of_struct(value: Any) -> Iterable[Any]:
        found = (getattr(value, name) for name in own)
        return [None if one is msgspec.UNSET else one for one in found]

    return of_struct


def _attributes(cls: Any) -> dict[str, str]:
    """The attributes of a class by the names under which they are written, where these differ."""
    if issubclass(cls, msgspec.Struct):
        return dict(zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True))
    if is_pydantic(cls):
        return attribute_names(cls)
    if hasattr(cls, "to_representation"):
        return {field.output_name: field.field for field in cls._options.descriptors.values()}
    return {}
