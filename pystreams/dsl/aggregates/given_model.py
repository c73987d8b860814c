"""Checks a model that the user gives for rows of declared aggregates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from inspect import signature
from typing import Any, get_type_hints

import msgspec

from pystreams.dsl.aggregates.aggregate import Aggregation
from pystreams.dsl.value_types import settled
from pystreams.errors import TopologyError
from pystreams.serde.shapes import type_name


def types_of_model(model: Any, fields: Collection[str]) -> dict[str, Any]:
    """The types of the model's fields (None: unknown), in its order. Raises ``TopologyError`` if it is not a Struct
    that has just these ``fields``."""
    if not (isinstance(model, type) and issubclass(model, msgspec.Struct)):
        raise TopologyError(
            f"value={model!r} cannot be the model of declared aggregates",
            why="their rows are values of a msgspec.Struct",
            hint="give a class of msgspec.Struct that has these fields, or leave out value=",
        )
    if any(p.kind is p.KEYWORD_ONLY for p in signature(model).parameters.values()):
        raise TopologyError(
            f"value={type_name(model)} cannot be the model of declared aggregates",
            why="it takes fields by name only, and rows are made by position",
            hint="leave out kw_only=True",
        )
    of_model = model.__struct_fields__
    missing = [name for name in fields if name not in of_model]
    without = [name for name in of_model if name not in fields]
    if missing or without:
        differences = [f"{type_name(model)} has no field {name}" for name in missing]
        differences += [f"no aggregate is declared for its field {name}" for name in without]
        raise TopologyError(
            f"value={type_name(model)} does not have the fields that are declared",
            why="; ".join(differences),
            hint="both must have the same fields",
        )
    try:
        hints = get_type_hints(model)
    except (NameError, TypeError):
        hints = {}
    return {name: settled(hints.get(name)) for name in of_model}


def check_types(model: Any, types: Mapping[str, Any], aggregations: Mapping[str, Aggregation]) -> None:
    """Raise ``TopologyError`` if the model's fields have other ``types`` than what their aggregates show."""
    wrong = [
        f"{name} is {type_name(types[name])}, and {type_name(shown)} is computed"
        for name, aggregation in aggregations.items()
        if (shown := settled(aggregation.shown_type)) is not None
        and types[name] not in (None, shown)
        and (types[name], shown) != (float, int)
    ]
    if wrong:
        raise TopologyError(
            f"the fields of value={type_name(model)} have other types than what is declared",
            why="; ".join(wrong),
            hint="change their annotations",
        )
