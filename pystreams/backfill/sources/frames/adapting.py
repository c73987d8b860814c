"""Arrow's values in Python as the values that a type wants: numbers for moments, dicts for maps, nested as they are.

Types are described as by ``msgspec.inspect``, columns as by Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec.inspect as kinds
import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow
from pystreams.nearest import did_you_mean

#: Adapts one value, which is not None; None: the value is right as it is.
Adapter = Callable[[Any], Any] | None

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_ANY: Final = kinds.AnyType()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A field of an object: the names that its column may have, the first being the one in the topic."""

    names: tuple[str, ...]
    type: kinds.Type
    required: bool


class Mismatches:
    """Collects the columns that do not fit, so that one error names all of them."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, path: str, column: Arrow, wanted: str) -> None:
        self.found.append(f"column {path} is {column}, but the type wants {wanted}")

    def missing(self, path: str, columns: Iterable[str], of: str) -> None:
        meant = did_you_mean(path.rpartition(".")[2], columns)
        self.found.append(f"there is no column {path}, which {of} needs" + (f" ({meant})" if meant else ""))


def adapter(column: Arrow, kind: kinds.Type, path: str, mismatches: Mismatches) -> Adapter:
    """The function that adapts the values of a column of Arrow's type ``column`` for a type. Parts that do not fit are
    added to ``mismatches``."""
    if isinstance(kind, kinds.UnionType):
        return _of_union(column, kind, path, mismatches)
    if isinstance(kind, kinds.AnyType):
        return _plain(column)
    fields = fields_of(kind)
    if fields is not None:
        if not pa.types.is_struct(column):
            mismatches.add(path, column, f"the fields of {_name(kind)}")
            return None
        return object_adapter({f.name: f.type for f in column}, kind, path, mismatches)
    if isinstance(kind, kinds.DictType):
        return _of_dict(column, kind, path, mismatches)
    if isinstance(kind, kinds.CollectionType):
        if not is_list(column):
            mismatches.add(path, column, "a list")
            return None
        return _each(adapter(column.value_type, kind.item_type, f"{path}[]", mismatches))
    return _of_leaf(column, kind, path, mismatches)


def object_adapter(
    columns: Mapping[str, Arrow], kind: kinds.Type, path: str, mismatches: Mismatches
) -> Adapter:
    """As ``adapter``, for a dict of columns that becomes an object with fields."""
    prefix = f"{path}." if path else ""
    taken: list[tuple[str, str, Adapter]] = []
    for wanted in fields_of(kind) or ():
        name = next((name for name in wanted.names if name in columns), None)
        if name is not None:
            taken.append(
                (wanted.names[0], name, adapter(columns[name], wanted.type, f"{prefix}{name}", mismatches))
            )
        elif wanted.required:
            mismatches.missing(f"{prefix}{wanted.names[0]}", columns, _name(kind))
    constant = {kind.tag_field: kind.tag} if isinstance(kind, kinds.StructType) and kind.tag_field else {}

    def adapt(row: Any) -> Any:
        return constant | {field: _adapted(own, row[name]) for field, name, own in taken}

    return adapt


def fields_of(kind: kinds.Type) -> list[Wanted] | None:
    """The fields of a type that is made of named fields; None for other types."""
    if isinstance(kind, kinds.StructType | kinds.DataclassType | kinds.TypedDictType):
        # Those of a TypedDict come sorted; a dict is written in the order in which it was made.
        order = list(kind.cls.__annotations__) if isinstance(kind, kinds.TypedDictType) else []
        fields = sorted(kind.fields, key=lambda field: order.index(field.name)) if order else kind.fields
        return [
            Wanted(tuple(dict.fromkeys((field.encode_name, field.name))), field.type, field.required)
            for field in fields
        ]
    if isinstance(kind, kinds.CustomType) and hasattr(kind.cls, "model_fields"):
        return [
            Wanted(
                tuple(dict.fromkeys((_alias(field) or name, name))),
                kinds.type_info(field.annotation),
                field.is_required(),
            )
            for name, field in kind.cls.model_fields.items()
        ]
    return None


def takes_none(kind: kinds.Type) -> bool:
    """Whether a type takes None; a class that msgspec does not know may take it."""
    if isinstance(kind, kinds.UnionType):
        return any(map(takes_none, kind.types))
    if isinstance(kind, kinds.LiteralType):
        return None in kind.values
    return isinstance(kind, kinds.NoneType | kinds.AnyType | kinds.CustomType)


def is_list(column: Arrow) -> bool:
    return bool(
        pa.types.is_list(column) or pa.types.is_large_list(column) or pa.types.is_fixed_size_list(column)
    )


def is_binary(column: Arrow) -> bool:
    return bool(pa.types.is_binary(column) or pa.types.is_large_binary(column))


def is_string(column: Arrow) -> bool:
    return bool(pa.types.is_string(column) or pa.types.is_large_string(column))


def _alias(field: Any) -> str | None:
    """The name under which a field of a pydantic model is validated."""
    alias = field.validation_alias or field.alias
    return alias if isinstance(alias, str) else None


def _adapted(own: Adapter, value: Any) -> Any:
    return value if own is None or value is None else own(value)


def _each(own: Adapter) -> Adapter:
    return None if own is None else lambda values: [_adapted(own, value) for value in values]


def _of_union(column: Arrow, kind: kinds.UnionType, path: str, mismatches: Mismatches) -> Adapter:
    """The first type that fits."""
    types = [one for one in kind.types if not isinstance(one, kinds.NoneType)]
    for one in types:
        tried = Mismatches()
        found = adapter(column, one, path, tried)
        if not tried.found:
            return found
    if len(types) == 1:
        return adapter(column, types[0], path, mismatches)
    mismatches.add(path, column, " or ".join(map(_name, types)))
    return None


def _of_dict(column: Arrow, kind: kinds.DictType, path: str, mismatches: Mismatches) -> Adapter:
    if pa.types.is_map(column):
        of_key = adapter(column.key_type, kind.key_type, f"{path}[key]", mismatches)
        of_value = adapter(column.item_type, kind.value_type, f"{path}[value]", mismatches)
        return lambda pairs: {_adapted(of_key, key): _adapted(of_value, value) for key, value in pairs}
    if pa.types.is_struct(column):
        own = {f.name: adapter(f.type, kind.value_type, f"{path}.{f.name}", mismatches) for f in column}
        return lambda row: {name: _adapted(own[name], value) for name, value in row.items()}
    mismatches.add(path, column, "a map or a struct")
    return None


def _plain(column: Arrow) -> Adapter:
    """For a type that takes everything: maps become dicts, and moments are in UTC, wherever they are."""
    if _has_zone(column):
        return _in_utc
    if pa.types.is_map(column):
        return _of_dict(column, kinds.DictType(_ANY, _ANY), "", Mismatches())
    if is_list(column):
        return _each(_plain(column.value_type))
    if pa.types.is_struct(column) and any(_plain(field.type) for field in column):
        return _of_dict(column, kinds.DictType(_ANY, _ANY), "", Mismatches())
    return None


def _of_leaf(column: Arrow, kind: kinds.Type, path: str, mismatches: Mismatches) -> Adapter:
    for wanted, fits, own in _LEAVES:
        if isinstance(kind, wanted) and fits(column):
            return own
    if isinstance(kind, kinds.EnumType | kinds.LiteralType) and (
        is_string(column) or pa.types.is_integer(column)
    ):
        return None
    mismatches.add(path, column, _name(kind))
    return None


def _is_whole(column: Arrow) -> bool:
    return bool(pa.types.is_decimal(column) and column.scale == 0)


def _has_zone(column: Arrow) -> bool:
    return bool(pa.types.is_timestamp(column) and column.tz is not None)


def _in_utc(moment: datetime) -> datetime:
    """A moment without the time zone of Spark's session."""
    return moment.astimezone(UTC)


def _milliseconds(moment: datetime) -> int:
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MS


#: A type, the columns that fit, and how their values are adapted.
_LEAVES: Final[tuple[tuple[Any, Callable[[Arrow], bool], Adapter], ...]] = (
    (kinds.IntType, pa.types.is_integer, None),
    (kinds.IntType, _is_whole, int),
    (kinds.IntType, pa.types.is_timestamp, _milliseconds),
    (kinds.FloatType, pa.types.is_floating, None),
    (kinds.FloatType, pa.types.is_integer, float),
    (kinds.FloatType, pa.types.is_decimal, float),
    (kinds.DecimalType, pa.types.is_decimal, None),
    (kinds.DecimalType, pa.types.is_integer, Decimal),
    (kinds.StrType, is_string, None),
    (kinds.UUIDType, is_string, None),
    (kinds.BoolType, pa.types.is_boolean, None),
    (kinds.BytesType, is_binary, None),
    (kinds.DateTimeType, _has_zone, _in_utc),
    (kinds.DateTimeType, pa.types.is_timestamp, None),
    (kinds.DateType, pa.types.is_date, None),
    (kinds.TimeType, pa.types.is_time, None),
    (kinds.TimeDeltaType, pa.types.is_duration, None),
)

_NAMES: Final = {
    kinds.IntType: "int",
    kinds.FloatType: "float",
    kinds.DecimalType: "Decimal",
    kinds.StrType: "str",
    kinds.UUIDType: "UUID",
    kinds.BoolType: "bool",
    kinds.BytesType: "bytes",
    kinds.DateTimeType: "datetime",
    kinds.DateType: "date",
    kinds.TimeType: "time",
    kinds.TimeDeltaType: "timedelta",
    kinds.DictType: "dict",
}


def _name(kind: kinds.Type) -> str:
    """A type, for people."""
    cls = getattr(kind, "cls", None)
    return cls.__name__ if cls is not None else _NAMES.get(type(kind), type(kind).__name__)
