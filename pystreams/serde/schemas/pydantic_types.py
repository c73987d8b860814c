"""The schema of a type that pydantic reads and writes. A program with a model has imported pydantic already."""

from __future__ import annotations

import collections.abc as abstract
import sys
import types
from typing import Annotated, Any, Union, get_args, get_origin

from pystreams.serde.schemas.finding import Schema
from pystreams.serde.schemas.python_types import (
    LIMITS,
    TypeSchemas,
    default_schema,
    is_pydantic,
    named,
    type_schema,
    union,
)
from pystreams.serde.shapes import Shape

_LISTS = (list, tuple, abstract.Sequence, abstract.Iterable, abstract.Collection)
_SETS = (set, frozenset, abstract.Set, abstract.MutableSet)
_MAPPINGS = (dict, abstract.Mapping, abstract.MutableMapping)

_UNKNOWN_FIELDS = {"forbid": "refused", "allow": "kept"}


def typed_schema(type_: Any) -> Schema:
    """The schema of a type as ``type``; ``by`` names the library that reads and writes it: pydantic if the type
    contains a model, else msgspec."""
    if not Shape.of(type_).pydantic:
        return {"by": "msgspec", "type": type_schema(type_)}
    models = _Models()
    node = models.of(type_)
    return {"by": "pydantic", "type": {"type": node, "objects": models.types.objects}}


class _Models:
    def __init__(self) -> None:
        self.types = TypeSchemas(self._of_class)

    def of(self, type_: Any) -> Schema:
        """The node of an annotation. Unions are handled here, because msgspec supports fewer than pydantic."""
        origin, args = get_origin(type_), get_args(type_)
        if origin is Annotated:
            return {**self.of(args[0]), **_limits(args[1:])}
        if origin in (Union, types.UnionType):
            return union(self.of(one) for one in args)
        if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
            return {"is": "tuple", "items": [self.of(item) for item in args]}
        if origin in _LISTS or origin in _SETS:
            return {"is": "set" if origin in _SETS else "list", "of": self.of(args[0])}
        if origin in _MAPPINGS:
            return {"is": "mapping", "keys": self.of(args[0]), "values": self.of(args[1])}
        if is_pydantic(type_):
            return self._of_class(type_)
        return self.types.of_type(type_)

    def _of_class(self, cls: type) -> Schema:
        if not is_pydantic(cls):
            return named(cls)
        if getattr(cls, "__pydantic_root_model__", False):
            return self._of_field(_fields(cls)["root"])
        return self.types.numbered(cls, lambda: self._object(cls))

    def _object(self, cls: Any) -> Schema:
        config = _config(cls)
        unknown = _UNKNOWN_FIELDS.get(config.get("extra", ""))
        return {
            "form": "object",
            "fields": [
                self._field(name, field, config) for name, field in _fields(cls).items() if not field.exclude
            ],
            **({"unknown": unknown} if unknown else {}),
        }

    def _field(self, name: str, field: Any, config: Any) -> Schema:
        written = _name_written(name, field, config)
        also = [one for one in _names_read(name, field, config) if one != written]
        default = default_schema(
            field.default, field.default_factory, sys.modules["pydantic_core"].PydanticUndefined
        )
        return {
            "name": written,
            "type": {**self._of_field(field), **({"strict": True} if config.get("strict") else {})},
            **({"required": True} if field.is_required() else default),
            **({"also": also} if also else {}),
        }

    def _of_field(self, field: Any) -> Schema:
        return {**self.of(field.annotation), **_limits(field.metadata)}


def attribute_names(cls: Any) -> dict[str, str]:
    """The attributes of a model by the names under which they are written."""
    config = _config(cls)
    return {_name_written(name, field, config): name for name, field in _fields(cls).items()}


def _fields(cls: Any) -> dict[str, Any]:
    return dict(cls.__pydantic_fields__)


def _config(cls: Any) -> Any:
    return getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}


def _name_written(name: str, field: Any, config: Any) -> str:
    return str((field.serialization_alias if config.get("serialize_by_alias") else None) or name)


def _names_read(name: str, field: Any, config: Any) -> list[str]:
    """The names under which a field is accepted when a value is read."""
    alias = field.validation_alias
    choices = [alias] if alias is None or isinstance(alias, str) else getattr(alias, "choices", [])
    by_name = alias is None or config.get("validate_by_name") or config.get("populate_by_name")
    return [name] * bool(by_name) + [choice for choice in choices if isinstance(choice, str)]


def _limits(metadata: Any) -> Schema:
    """The constraints of an annotation. Functions among them (validators) are not compared."""
    found: Schema = {}
    for one in metadata:
        for limit in LIMITS:
            value = getattr(one, limit, None)
            if isinstance(value, int | float | str):
                found[limit] = value
        if getattr(one, "strict", None) is True:
            found["strict"] = True
        if hasattr(one, "metadata"):
            found.update(_limits(one.metadata))
    return found
