"""The types that columns have in Spark, for tables that are read without it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import chain, repeat
from typing import Any, Final

import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.folder import hive_values

#: The folder of rows that have no value.
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_MOMENT: Final = pa.timestamp("us", tz="UTC")
#: Arrow's functions do not take all of the types of the left.
_WITHOUT_VIEWS: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def spark_schema(schema: Arrow, int96: Sequence[bool] = ()) -> Arrow:
    """A schema with Spark's types: moments in microseconds, with a zone in UTC; values in place of dictionaries.

    ``int96`` says of each column of a Parquet file, in the order of its footer, whether it has this type: those are
    moments in UTC, although they have no zone.
    """
    leaves = chain(int96, repeat(False))
    return pa.schema([pa.field(field.name, _spark_type(field.type, leaves)) for field in schema])


def _spark_type(type: Arrow, int96: Iterator[bool]) -> Arrow:
    if pa.types.is_struct(type):
        return pa.struct([pa.field(field.name, _spark_type(field.type, int96)) for field in type])
    if pa.types.is_map(type):
        key = _spark_type(type.key_type, int96)
        return pa.map_(key, _spark_type(type.item_type, int96))
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        return pa.list_(_spark_type(type.value_type, int96))
    if pa.types.is_dictionary(type):
        return _spark_type(type.value_type, int96)
    is_int96 = next(int96)
    if pa.types.is_timestamp(type):
        return _MOMENT if is_int96 or type.tz is not None else pa.timestamp("us")
    if pa.types.is_fixed_size_binary(type):
        return pa.binary()
    return _WITHOUT_VIEWS.get(type, type)


def folder_columns(files: Sequence[str]) -> tuple[Arrow, list[dict[str, Any]]]:
    """The columns whose values are in the names of folders (``day=2026-11-01/part-0.parquet``), and their values for
    each file. A column of integers, of floats or of dates has that type, every other is text, as in Spark."""
    texts = [hive_values(file) for file in files]
    names = list(dict.fromkeys(name for one in texts for name in one))
    fields: list[Arrow] = []
    values: list[dict[str, Any]] = [{} for _ in files]
    for name in names:
        of_name = [one.get(name, _NULL) for one in texts]
        type, read = _type_of([text for text in of_name if text != _NULL])
        fields.append(pa.field(name, type))
        for one, text in zip(values, of_name, strict=True):
            one[name] = None if text == _NULL else read(text)
    return pa.schema(fields), values


def _type_of(texts: Sequence[str]) -> tuple[Arrow, Callable[[str], Any]]:
    for pattern, type, read in _TYPES:
        if texts and all(pattern.fullmatch(text) for text in texts):
            wide = type == pa.int32() and not all(-(1 << 31) <= int(text) < 1 << 31 for text in texts)
            return (pa.int64() if wide else type), read
    return pa.string(), str


_TYPES: Final[tuple[tuple[re.Pattern[str], Arrow, Callable[[str], Any]], ...]] = (
    (re.compile(r"[+-]?\d{1,18}"), pa.int32(), int),
    (re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?"), pa.float64(), float),
    (re.compile(r"\d{4}-\d{2}-\d{2}"), pa.date32(), date.fromisoformat),
)
