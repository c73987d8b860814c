"""The types of Avro's values as fastavro gives them, by their schema in normal form (serde.schemas.avro)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from pystreams.backfill.columns.typed import (
    LOCAL_TIME,
    MOMENT,
    TEXT,
    TIME_TEXT,
    UUID_TEXT,
    Typed,
    list_of,
    mapping_of,
    struct_of,
)
from pystreams.serde.schemas.avro import Avro

_STR: Final = Typed(pa.string())

_PRIMITIVES: Final = {
    "null": _STR,
    "boolean": Typed(pa.bool_()),
    "int": Typed(pa.int32()),
    "long": Typed(pa.int64()),
    "float": Typed(pa.float32()),
    "double": Typed(pa.float64()),
    "bytes": Typed(pa.binary()),
    "string": _STR,
    "enum": _STR,
    "fixed": Typed(pa.binary()),
}

_LOGICAL: Final = {
    "date": Typed(pa.date32()),
    "time-millis": TIME_TEXT,
    "time-micros": TIME_TEXT,
    "timestamp-millis": Typed(MOMENT),
    "timestamp-micros": Typed(MOMENT),
    "local-timestamp-millis": Typed(LOCAL_TIME),
    "local-timestamp-micros": Typed(LOCAL_TIME),
    "uuid": UUID_TEXT,
}

_PRECISION_MAX: Final = 38


def type_of_avro(schema: Avro) -> Typed:
    """The type for a schema. A union of several types, and a record within itself, are ``TEXT``."""
    return _of(schema, {})


def _of(schema: Avro, named: Mapping[str, Any]) -> Typed:
    """``named`` are the types that are defined, by name; None: a record around this part."""
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        found = named.get(schema)
        return TEXT if found is None else found
    if isinstance(schema, list):
        others = [one for one in schema if one != "null"]
        return _of(others[0], named) if len(others) == 1 else TEXT
    return _of_dict(schema, named)


def _of_dict(schema: dict[str, Any], named: Any) -> Typed:
    kind = schema["type"]
    if kind == "record":
        named[schema["name"]] = None
        parts = [_of(field["type"], named) for field in schema["fields"]]
        names = [field["name"] for field in schema["fields"]]
        found = struct_of(names, parts, lambda record: map(record.get, names)) if names else TEXT
    elif kind == "array":
        found = list_of(_of(schema["items"], named))
    elif kind == "map":
        found = mapping_of(_STR, _of(schema["values"], named))
    elif schema.get("logicalType") == "decimal":
        found = _decimal(schema)
    else:
        found = _LOGICAL.get(schema.get("logicalType", ""), _PRIMITIVES[kind])
    if "name" in schema:
        named[schema["name"]] = found
    return found


def _decimal(schema: dict[str, Any]) -> Typed:
    precision = schema["precision"]
    return TEXT if precision > _PRECISION_MAX else Typed(pa.decimal128(precision, schema.get("scale", 0)))
