"""Matches the columns of a DataFrame with the types of a topic's keys and values, before any row is read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
import msgspec.inspect as kinds
import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.frames.adapting import (
    Adapter,
    Mismatches,
    Wanted,
    adapter,
    fields_of,
    is_binary,
    object_adapter,
    takes_none,
)
from pystreams.backfill.sources.frames.source import ColumnNames, DataFrameSource
from pystreams.errors import ConfigError
from pystreams.nearest import did_you_mean, listing
from pystreams.serde import AnySerde, FaustSerde, ProtobufSerde
from pystreams.serde.primitives import VALUE_TYPES
from pystreams.serde.shapes import Shape


@dataclass(frozen=True, slots=True)
class Content:
    """How keys or values are made. ``columns`` are read: the one column is the content (``single``), or they are its
    fields. ``raw``: it is the topic's bytes already. ``make`` gives what the serde writes, of an adapted value.
    ``needed`` are the columns in which a null cannot become a value."""

    columns: tuple[str, ...]
    single: bool
    raw: bool
    adapt: Adapter
    make: Callable[[Any], Any] | None
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """The matched columns; ``key`` None: records have no key."""

    key: Content | None
    value: Content


def match(
    source: DataFrameSource, schema: Arrow, serdes: tuple[AnySerde, AnySerde], topic: str, where: str
) -> Columns:
    """Raises ``ConfigError`` with all columns that do not fit."""
    mismatches = Mismatches()
    _check_places(source, schema, mismatches)
    key = None if source.key is None else _content("key", source.key, schema, serdes[0], mismatches)
    names: ColumnNames = source.value or [
        name for name in schema.names if name not in (source.partition, source.offset)
    ]
    value = _content("value", names, schema, serdes[1], mismatches)
    if value is None or mismatches.found:
        raise ConfigError(
            f"the columns do not fit the records of topic {topic}",
            where=where,
            why="\n".join(dict.fromkeys(mismatches.found)),
            hint="name other columns, or select, rename and cast them in the DataFrame",
        )
    return Columns(key, value)


def _check_places(source: DataFrameSource, schema: Arrow, mismatches: Mismatches) -> None:
    for what, name in (("partition", source.partition), ("offset", source.offset)):
        column = None if name is None else _column(name, schema, what, mismatches)
        if column is not None and not pa.types.is_integer(column):
            mismatches.add(str(name), column, f"an integer: it is the {what}")
    column = _column(source.timestamp, schema, "timestamp", mismatches)
    kinds_of_times = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer)
    if column is not None and not any(fits(column) for fits in kinds_of_times):
        wanted = "a timestamp, a date, or an integer (ms): it is the timestamp of the record"
        mismatches.add(source.timestamp, column, wanted)


def _column(name: str, schema: Arrow, what: str, mismatches: Mismatches) -> Arrow | None:
    """The type of a column that the user has named."""
    if name in schema.names:
        return schema.field(name).type
    meant = did_you_mean(name, schema.names) or f"there are {listing(schema.names)}"
    mismatches.found.append(f"there is no column {name} ({what}); {meant}")
    return None


def _content(
    what: str, names: ColumnNames, schema: Arrow, serde: AnySerde, mismatches: Mismatches
) -> Content | None:
    if isinstance(names, str):
        return _of_one(what, names, schema, serde, mismatches)
    types = {name: _column(name, schema, what, mismatches) for name in names}
    columns = {name: column for name, column in types.items() if column is not None}
    wanted, make = _wanted(serde, what, mismatches)
    kind = kinds.type_info(wanted)
    if fields_of(kind) is not None:
        own = object_adapter(columns, kind, "", mismatches)
    elif isinstance(kind, kinds.AnyType | kinds.DictType):
        own = adapter(pa.struct(list(columns.items())), kind, what, mismatches)
    else:
        mismatches.found.append(
            f"several columns cannot be a {what} of type {serde!r}: name the one that is ({what}=)"
        )
        own = None
    used = _fields_used(kind, tuple(columns))
    return Content(used, False, False, own, make, _needed(kind, used, schema))


def _of_one(what: str, name: str, schema: Arrow, serde: AnySerde, mismatches: Mismatches) -> Content | None:
    column = _column(name, schema, what, mismatches)
    if column is None:
        return None
    if is_binary(column):
        return Content((name,), True, True, None, None)
    wanted, make = _wanted(serde, what, mismatches)
    own = adapter(column, kinds.type_info(wanted), name, mismatches)
    return Content((name,), True, False, own, make)


def _fields_used(kind: kinds.Type, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that an object is made of: others need not be read."""
    fields = fields_of(kind)
    return tuple(columns if fields is None else (name for _, name in _taken(fields, columns)))


def _needed(kind: kinds.Type, columns: Sequence[str], schema: Arrow) -> tuple[str, ...]:
    """Those of the columns that may hold nulls which their fields do not take."""
    return tuple(
        name
        for field, name in _taken(fields_of(kind) or (), columns)
        if schema.field(name).nullable and not takes_none(field.type)
    )


def _taken(fields: Iterable[Wanted], columns: Sequence[str]) -> Iterator[tuple[Wanted, str]]:
    """The fields that have a column, each with its column."""
    for field in fields:
        name = next((name for name in field.names if name in columns), None)
        if name is not None:
            yield field, name


def _wanted(serde: AnySerde, what: str, mismatches: Mismatches) -> tuple[Any, Callable[[Any], Any] | None]:
    """The type that a serde writes, and the function that makes its values of plain ones (None: they are plain)."""
    for kind, primitive in VALUE_TYPES.items():
        if isinstance(serde, kind):
            return primitive, UUID if primitive is UUID else None
    if isinstance(serde, ProtobufSerde):
        mismatches.found.append(
            f"a {what} of type {serde!r} cannot be made of columns: name a binary column that holds its bytes"
        )
        return Any, None
    type_: Any = getattr(serde, "type", Any)
    if isinstance(serde, FaustSerde):
        return Any, partial(type_.from_data, preferred_type=type_)
    if type_ in (Any, dict, list, object):
        return type_, None
    if Shape.of(type_).pydantic:
        return type_, sys.modules["pydantic"].TypeAdapter(type_).validate_python
    return type_, partial(msgspec.convert, type=type_)
