"""Records as Arrow tables and pandas data frames, with columns typed by the models of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import msgspec.inspect as kinds
import pandas as pd
import pyarrow as pa

from pystreams.errors import SerializationError
from pystreams.serde.base import AnySerde
from pystreams.serde.primitives import BoolSerde, BytesSerde, FloatSerde, IntSerde, StrSerde, UUIDSerde
from pystreams.serde.structured import JsonSerde, MsgpackSerde
from pystreams.serde.windowed import SessionWindowedSerde, TimeWindowedSerde
from pystreams.timestamps import ConsumedRecord

#: Objects of pyarrow and pandas, which have no type information.
Arrow: TypeAlias = Any

_TIME: Final = pa.timestamp("ms", "UTC")
_OWN_COLUMNS: Final = ("partition", "offset", "timestamp", "key")

_LEAVES: Final[dict[type[kinds.Type], Arrow]] = {
    kinds.BoolType: pa.bool_(),
    kinds.IntType: pa.int64(),
    kinds.FloatType: pa.float64(),
    kinds.StrType: pa.string(),
    kinds.BytesType: pa.binary(),
    kinds.DateTimeType: pa.timestamp("us", "UTC"),
    kinds.DateType: pa.date32(),
    kinds.TimeType: pa.time64("us"),
    kinds.TimeDeltaType: pa.duration("us"),
}
#: Written as text, which is exact and keeps trailing zeros.
_AS_TEXT: Final = (kinds.UUIDType, kinds.DecimalType)


class _Column(NamedTuple):
    """``type`` None: Arrow infers it. ``convert`` is never called with None."""

    type: Arrow | None
    convert: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a model: its name in JSON, and the function that reads it from a value."""

    name: str
    take: Callable[[Any], Any]
    column: _Column


def arrow_table(records: Iterable[ConsumedRecord[Any, Any]], key: AnySerde, value: AnySerde) -> Arrow:
    """A table with columns partition, offset, timestamp, those of the key and those of the value.

    Each field of a model is a column under its own name (``value.NAME`` if that is taken, ``key.NAME`` for keys); a
    windowed key also has ``window_start`` and ``window_end``. Nested models are structs; values without a type get the
    type that Arrow infers, or become JSON. Raises ``SerializationError`` for values that do not fit their type.
    """
    rows = list(records)
    columns: dict[str, Arrow] = {
        "partition": pa.array([row.partition for row in rows], pa.int32()),
        "offset": pa.array([row.offset for row in rows], pa.int64()),
        "timestamp": pa.array([row.timestamp if row.timestamp >= 0 else None for row in rows], _TIME),
    }
    keys: Sequence[Any] = [row.key for row in rows]
    if isinstance(key, TimeWindowedSerde | SessionWindowedSerde):
        columns["window_start"] = pa.array([None if k is None else k.start for k in keys], _TIME)
        columns["window_end"] = pa.array([None if k is None else k.end for k in keys], _TIME)
        keys, key = [None if k is None else k.key for k in keys], key.inner
    for name, column in _columns("key", keys, key).items():
        columns[name if name == "key" else f"key.{name}"] = column
    for name, column in _columns("value", [row.value for row in rows], value).items():
        columns[f"value.{name}" if name in columns or name in _OWN_COLUMNS else name] = column
    return pa.table(columns)


def data_frame(table: Arrow) -> Arrow:
    """A data frame with pandas' nullable types, so that numbers keep their types: ``Int64``, ``boolean``."""
    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame = table.to_pandas(types_mapper=nullable.get)
    # Offsets are never null.
    return frame.astype({"offset": "int64"})


def _columns(part: str, contents: Sequence[Any], serde: AnySerde) -> dict[str, Arrow]:
    type_ = serde.type if isinstance(serde, JsonSerde | MsgpackSerde) else None
    fields = None if type_ is None else _fields(_without_none(kinds.type_info(type_)), frozenset())
    if fields is not None:
        return {field.name: _array(field.name, _taken(field, contents), field.column) for field in fields}
    if any(isinstance(content, dict) for content in contents) and _holds_objects(type_):
        names = dict.fromkeys(name for content in contents for name in content or ())
        return {
            str(name): _inferred([None if c is None else c.get(name) for c in contents]) for name in names
        }
    column = _of_serde(serde) if type_ is None else _column(kinds.type_info(type_), frozenset())
    return {part: _array(part, contents, column)}


def _taken(field: _Field, contents: Sequence[Any]) -> list[Any]:
    return [None if content is None else field.take(content) for content in contents]


def _holds_objects(type_: Any) -> bool:
    """Whether values without a model are objects, each with its own fields."""
    if type_ is None or type_ is Any:
        return True
    kind = kinds.type_info(type_)
    return isinstance(kind, kinds.DictType) and isinstance(kind.value_type, kinds.AnyType)


def _of_serde(serde: AnySerde) -> _Column:
    match serde:
        case StrSerde():
            return _Column(pa.string(), _same)
        case IntSerde():
            return _Column({8: pa.int64(), 4: pa.int32(), 2: pa.int16()}[serde.size], _same)
        case FloatSerde():
            return _Column(pa.float64() if serde.size == 8 else pa.float32(), _same)
        case BytesSerde():
            return _Column(pa.binary(), _same)
        case BoolSerde():
            return _Column(pa.bool_(), _same)
        case UUIDSerde():
            return _Column(pa.string(), str)
    return _Column(None, _same)


def _fields(kind: kinds.Type, around: frozenset[type]) -> list[_Field] | None:
    """The fields of a model; None if the type is not a model."""
    if isinstance(kind, kinds.StructType | kinds.DataclassType):
        return [
            _Field(field.encode_name, _getter(field.name), _column(field.type, around | {kind.cls}))
            for field in kind.fields
        ]
    if isinstance(kind, kinds.TypedDictType):
        return [
            _Field(field.name, _item_getter(field.name), _column(field.type, around | {kind.cls}))
            for field in kind.fields
        ]
    if isinstance(kind, kinds.CustomType | kinds.DataclassType) and hasattr(kind.cls, "model_fields"):
        return [
            _Field(name, _getter(name), _column(kinds.type_info(field.annotation), around | {kind.cls}))
            for name, field in kind.cls.model_fields.items()
        ]
    return None


def _column(kind: kinds.Type, around: frozenset[type]) -> _Column:
    """``around``: the models that contain this one; a recursive model has no type in Arrow."""
    kind = _without_none(kind)
    if type(kind) in _LEAVES:
        return _Column(_LEAVES[type(kind)], _same)
    if isinstance(kind, _AS_TEXT):
        return _Column(pa.string(), str)
    if isinstance(kind, kinds.EnumType):
        return _Column(pa.scalar(next(iter(kind.cls)).value).type, lambda member: member.value)
    if isinstance(kind, kinds.LiteralType):
        return _Column(pa.scalar(kind.values[0]).type, _same)
    if isinstance(kind, kinds.ListType | kinds.SetType | kinds.FrozenSetType | kinds.VarTupleType):
        item = _column(kind.item_type, around)
        if item.type is not None:
            return _Column(pa.list_(item.type), lambda items: [_converted(one, item) for one in items])
    if getattr(kind, "cls", None) not in around:
        fields = _fields(kind, around)
        if fields:
            made = pa.struct([(field.name, field.column.type) for field in fields])
            return _Column(made, lambda model: {f.name: _converted(f.take(model), f.column) for f in fields})
    return _Column(pa.string(), _as_json)


def _without_none(kind: kinds.Type) -> kinds.Type:
    if isinstance(kind, kinds.UnionType):
        others = [one for one in kind.types if not isinstance(one, kinds.NoneType)]
        if len(others) == 1:
            return others[0]
    return kind


def _array(name: str, contents: Sequence[Any], column: _Column) -> Arrow:
    if column.type is None:
        return _inferred(contents)
    try:
        return pa.array([_converted(content, column) for content in contents], column.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise SerializationError(
            f"Column {name} cannot have the type {column.type}",
            why=str(error),
            hint="iterate over the records, or read them with another type: key=, value=",
        ) from error


def _inferred(contents: Sequence[Any]) -> Arrow:
    try:
        return pa.array(contents)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([None if content is None else _as_json(content) for content in contents], pa.string())


def _converted(content: Any, column: _Column) -> Any:
    return None if content is None else column.convert(content)


def _same(content: Any) -> Any:
    return content


def _as_json(content: Any) -> str:
    return msgspec.json.encode(content, enc_hook=_plain).decode()


def _plain(content: Any) -> Any:
    """The plain form of values that msgspec does not support: pydantic models, and the text of anything else."""
    dump = getattr(content, "model_dump", None)
    return str(content) if dump is None else dump(mode="json")


def _getter(name: str) -> Callable[[Any], Any]:
    return lambda model: getattr(model, name)


def _item_getter(name: str) -> Callable[[Any], Any]:
    return lambda content: content.get(name)
