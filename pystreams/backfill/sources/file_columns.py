"""Columns of files as ``RECORD_SCHEMA`` has them: times in any unit, text as bytes, headers in any shape."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow, headers_column, pc, repeated
from pystreams.errors import ConfigError
from pystreams.record import NO_HEADERS, Headers
from pystreams.serde import serde_for

_TIME: Final[Arrow] = pa.timestamp("ms", "UTC")

_FOLDERS: Final = "topic and partition may be in folders named topic=NAME/partition=0 instead"
#: The hints for a missing column.
_INSTEAD: Final = {
    "topic": _FOLDERS,
    "partition": _FOLDERS,
    "offset": "if the records have no offsets, use --approximate (approximate=True)",
}
_TABLE: Final = (
    "for a table, add the names of its columns: ?key=COLUMN&timestamp=COLUMN (in Python: DataFrameSource)"
)


def _packed(type: Any, read: Callable[[str], Any]) -> Callable[[str], bytes]:
    serialize = serde_for(type).serializer("archive")
    return lambda text: serialize(read(text))


#: How keys and values are written in files of text, by name. Numbers become the bytes of the serde of that type.
ENCODINGS: Final[Mapping[str, Callable[[str], bytes]]] = {
    "text": str.encode,
    "json": str.encode,
    "base64": lambda text: base64.b64decode(text, validate=True),
    "hex": bytes.fromhex,
    "int": _packed(int, int),
    "float": _packed(float, float),
}


def check_encoding(name: str) -> None:
    """Raises ``ConfigError`` for a name that is not an encoding's."""
    if name not in ENCODINGS:
        raise ConfigError(f"there is no encoding {name!r}", hint=f"one of {', '.join(ENCODINGS)}")


def encoded(texts: Sequence[str | None], encoding: str, where: str) -> Arrow:
    """Texts as bytes. Raises ``ConfigError`` that names the first that is not in the encoding."""
    encode = ENCODINGS[encoding]
    try:
        return pa.array([None if text is None else encode(text) for text in texts], pa.binary())
    except (ValueError, struct.error) as error:
        wrong = next(text for text in texts if text is not None and not _encodes(encode, text))
        raise ConfigError(f"{wrong!r} cannot be read as {encoding}", where=where, why=str(error)) from None


def _encodes(encode: Callable[[str], bytes], text: str) -> bool:
    try:
        encode(text)
    except (ValueError, struct.error):
        return False
    return True


def record_columns(rows: Arrow, given: Mapping[str, object], where: str) -> Arrow:
    """A batch of any schema in ``RECORD_SCHEMA``. ``given`` has the values of columns that the rows do not have; key,
    value and headers may be missing altogether.

    Raises ``ConfigError`` for columns that are missing, empty where they must not be, or of another type.
    """
    columns = [_column(rows, field, given, where) for field in RECORD_SCHEMA]
    return pa.record_batch(columns, schema=RECORD_SCHEMA)


def _column(rows: Arrow, field: Arrow, given: Mapping[str, object], where: str) -> Arrow:
    name = field.name
    if name in rows.schema.names:
        column = rows.column(name)
    elif name in given:
        column = repeated(given[name], pa.string(), rows.num_rows)
    elif field.nullable:
        return pa.nulls(rows.num_rows, field.type)
    else:
        raise ConfigError(
            f"the archive has no column {name}",
            where=where,
            why="it is read as an archive of a topic's records, because no timestamp=COLUMN was named",
            hint="; ".join(filter(None, (_INSTEAD.get(name), _TABLE))),
        )
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not field.nullable and column.null_count:
        raise ConfigError(f"column {name} has rows without a value", where=where)
    try:
        return _cast(column, field, where)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(
            f"column {name} has type {column.type}, which cannot be read as {field.type}",
            where=where,
            why=str(error).splitlines()[0],
        ) from None


def _cast(column: Arrow, field: Arrow, where: str) -> Arrow:
    if field.name == "timestamp":
        return times(column)
    if field.name == "headers":
        return _headers(column, where)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == field.type else column.cast(field.type)


def times(column: Arrow) -> Arrow:
    """Integers (ms), moments in any unit and zone, or text of either, as ms since the epoch. A moment without a zone is
    one in UTC."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        digits = pc.match_substring_regex(column, r"^-?[0-9]+$")
        column = column.cast(pa.int64()) if pc.all(digits).as_py() in (True, None) else _moments(column)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    return column.cast(pa.int64())


def _moments(column: Arrow) -> Arrow:
    # Fractions of milliseconds are cut off, as for moments.
    column = pc.replace_substring_regex(column, r"(\.[0-9]{3})[0-9]+", r"\1")
    try:
        return column.cast(_TIME)
    except pa.ArrowInvalid:
        return column.cast(pa.timestamp("ms"))


def _headers(column: Arrow, where: str) -> Arrow:
    """A list of (name, value) whatever the two are called, a map, or JSON as ``headers_of_text`` has it."""
    target = RECORD_SCHEMA.field("headers").type
    if column.type == target:
        return column
    if pa.types.is_null(column.type):
        return column.cast(target)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return headers_column([headers_of_text(text, where) for text in column.to_pylist()], len(column))
    typed = _typed(column, target)
    if typed is not None:
        return typed
    try:
        return headers_column([_pairs(one) for one in column.to_pylist()], len(column))
    except (TypeError, ValueError) as error:
        raise pa.ArrowInvalid(str(error)) from None


def _typed(column: Arrow, target: Arrow) -> Arrow | None:
    """Headers as pystreams writes them, whatever another program has made of their types; None for all others."""
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return None
    pairs = column.flatten()
    if not pa.types.is_struct(pairs.type) or [child.name for child in pairs.type] != ["name", "value"]:
        return None
    name, value = pairs.flatten()
    is_text = pa.types.is_string(name.type) or pa.types.is_large_string(name.type)
    is_binary = pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type)
    if name.null_count or not is_text or not is_binary:
        return None
    fields = list(target.value_type)
    children = [child.cast(field.type) for child, field in zip((name, value), fields, strict=True)]
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    rebuilt = pa.StructArray.from_arrays(children, fields=fields)
    return pa.ListArray.from_arrays(offsets, rebuilt, type=target, mask=column.is_null())


def _pairs(one: Any) -> Headers:
    pairs = [_pair(pair) if isinstance(pair, dict) else tuple(pair) for pair in one or ()]
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)


def _pair(fields: dict[str, Any]) -> tuple[Any, Any]:
    one, other = fields.values()
    return (other, one) if next(iter(fields)) == "value" else (one, other)


def headers_of_text(text: str | bytes | None, where: str) -> Headers:
    """Headers as JSON: ``[["name", "text"], ...]``, in which a value may be null, or ``{"name": "text", ...}``."""
    if not text:
        return NO_HEADERS
    try:
        content = json.loads(text)
        pairs = content.items() if isinstance(content, dict) else content or ()
        return tuple((str(name), None if value is None else value.encode()) for name, value in pairs)
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            "headers that are not JSON of names and texts", where=where, why=str(error)
        ) from None
