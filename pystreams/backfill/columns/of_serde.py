"""The column of keys or values that a serde has written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pystreams.backfill.columns.avro_types import type_of_avro
from pystreams.backfill.columns.named_types import decoded, name_of, type_of
from pystreams.backfill.columns.protobuf_types import MESSAGE_TEXT, type_of_message
from pystreams.backfill.columns.python_types import type_of_schema
from pystreams.backfill.columns.typed import TEXT, UUID_TEXT, Typed, list_of
from pystreams.backfill.exchange.rows import Arrow
from pystreams.dsl.aggregates.rows import RowSerde, StoredRowSerde
from pystreams.errors import SerializationError
from pystreams.serde import AnySerde
from pystreams.serde.base import schema_of
from pystreams.serde.schemas import Schema
from pystreams.serde.shapes import Shape


class Column(NamedTuple):
    """``type`` is Arrow's. ``read`` takes a column of bytes, and their place for messages, and returns a column of this
    type, or raises ``SerializationError``."""

    type: Arrow
    read: Callable[[Arrow, str], Arrow]


def named_column(name: str) -> Column:
    """The column for a name of ``named_types``. Raises ``ConfigError`` for another name."""
    return Column(type_of(name), lambda data, where: decoded(data, name, where))


def column_of(serde: AnySerde, topic: str) -> Column:
    """The column for the bytes that ``serde`` has written for ``topic``."""
    schema = schema_of(serde)
    name, typed = name_of(schema), type_of_serde(serde)
    if name is not None:
        return named_column(name)
    if typed is None:
        return Column(pa.binary(), _as_they_are)
    if typed is TEXT and schema["format"] == "json":
        # The text that was written.
        return named_column("json")
    read, fit = serde.deserializer(topic), typed.fit

    def read_column(data: Arrow, where: str) -> Arrow:
        values = [None if one is None else _read(read, one, where) for one in data.to_pylist()]
        return _fitted(values, typed.type, fit, where)

    return Column(typed.type, read_column)


def type_of_serde(serde: AnySerde) -> Typed | None:
    """The type of the values of a serde; None if nothing is known about them."""
    if isinstance(serde, StoredRowSerde):
        # It writes more than it shows of a value.
        serde = RowSerde(serde.rows)
    schema: Schema = schema_of(serde)
    written = schema["format"]
    holds: Any = serde
    if written in ("json", "msgpack", "json with a schema"):
        return type_of_schema(schema["type"], of_pydantic=schema["by"] == "pydantic")
    if written == "faust":
        return type_of_schema(schema["type"])
    if written == "avro":
        return _of_avro(holds, schema)
    if written == "protobuf":
        return MESSAGE_TEXT if holds.type is None else type_of_message(holds.type.DESCRIPTOR)
    if written == "list":
        element = type_of_serde(holds.inner)
        return None if element is None else list_of(element)
    name = name_of(schema)
    if name is None:
        return None
    return UUID_TEXT if name == "uuid" else Typed(type_of(name))


def _of_avro(serde: Any, schema: Schema) -> Typed:
    """Records are dicts with the fields of their schema, or objects of the type to which they are converted."""
    if schema["as"] is not None:
        return type_of_schema(schema["as"], of_pydantic=Shape.of(serde.type).pydantic)
    written: Any = schema["schema"]
    return TEXT if written is None or "references" in schema else type_of_avro(written)


def _as_they_are(data: Arrow, where: str) -> Arrow:  # noqa: ARG001 - nothing can be wrong with them
    return data


def _read(read: Callable[[bytes], Any], data: bytes, where: str) -> Any:
    try:
        return read(data)
    except Exception as error:
        raise SerializationError(
            "there are bytes that their serde cannot read",
            where=where,
            why=f"{type(error).__name__}: {error}",
            hint="check that they were written with this type. As bytes they can be read: " + _AS_BYTES,
        ) from error


def _fitted(values: list[Any], type: Arrow, fit: Callable[[Any], Any] | None, where: str) -> Arrow:
    try:
        fitted = values if fit is None else [None if value is None else fit(value) for value in values]
        return pa.array(fitted, type)
    except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise SerializationError(
            f"there is a value that does not fit into a column of type {type}",
            where=where,
            why=str(error).splitlines()[0],
            hint="as bytes it can be read: " + _AS_BYTES,
        ) from error


_AS_BYTES: Final = (
    "by changelog() and sink() of the result, or with the option value_type=bytes of the reader"
)
