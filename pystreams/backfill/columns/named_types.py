"""Columns of bytes as columns of numbers and text, by the names of pystreams' serdes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow, pc
from pystreams.errors import ConfigError, SerializationError
from pystreams.serde.schemas import Schema

#: By name: Arrow's type, and for numbers numpy's name of the bytes (big-endian, as Java writes them).
_TYPES: Final[Mapping[str, tuple[Arrow, str]]] = {
    "str": (pa.string(), ""),
    "json": (pa.string(), ""),
    "uuid": (pa.string(), ""),
    "bool": (pa.bool_(), "?"),
    "int": (pa.int64(), ">i8"),
    "int32": (pa.int32(), ">i4"),
    "int16": (pa.int16(), ">i2"),
    "float": (pa.float64(), ">f8"),
    "float32": (pa.float32(), ">f4"),
}
#: By the format and the size in the schema of a serde's bytes.
_FORMATS: Final[Mapping[tuple[str, int], str]] = {
    ("text", 0): "str",
    ("uuid", 0): "uuid",
    ("bool", 0): "bool",
    ("int", 8): "int",
    ("int", 4): "int32",
    ("int", 2): "int16",
    ("float", 8): "float",
    ("float", 4): "float32",
}


def type_of(name: str) -> Arrow:
    """Arrow's type for the name of a serde; ``json`` is its text. Raises ``ConfigError`` for another name."""
    if name not in _TYPES:
        raise ConfigError(
            f"there is no type {name!r} of keys and values",
            why=f"there are {', '.join(_TYPES)}",
            hint="leave it out to get the bytes only",
        )
    return _TYPES[name][0]


def name_of(schema: Schema) -> str | None:
    """The name for the schema of a serde's bytes; None if there is none."""
    return _FORMATS.get((schema["format"], schema.get("size", 0)))


def decoded(column: Arrow, name: str, where: str) -> Arrow:
    """A column of bytes as a column of the type of a serde's name. Raises ``SerializationError`` for other bytes."""
    type, dtype = _TYPES[name]
    try:
        if not dtype:
            text = column.cast(pa.string())
            return _uuids(text) if name == "uuid" else text
        return _numbers(column, type, dtype)
    except (pa.ArrowInvalid, ValueError) as error:
        raise SerializationError(
            f"there are bytes that are not {name}",
            where=where,
            why=str(error).splitlines()[0],
            hint="name another type, or leave it out to get the bytes only",
        ) from None


def _numbers(column: Arrow, type: Arrow, dtype: str) -> Arrow:
    width = np.dtype(dtype).itemsize
    there = column.drop_null()
    lengths = pc.binary_length(there)
    if not pc.all(pc.equal(lengths, width), min_count=0).as_py():
        wrong = pc.filter(lengths, pc.not_equal(lengths, width))[0].as_py()
        raise ValueError(f"{wrong} bytes instead of {width}")
    data = b"".join(there.to_pylist())
    if dtype == "?" and data.strip(b"\0\1"):
        raise ValueError("a byte that is neither 0 nor 1")
    values = np.frombuffer(data, dtype)
    numbers = pa.array(values.astype(values.dtype.newbyteorder("=")), type)
    if not column.null_count:
        return numbers
    # Each value goes to the place that it had between the nulls.
    places = np.cumsum(column.is_valid().to_numpy(zero_copy_only=False)) - 1
    return numbers.take(pa.array(places, pa.int64(), mask=~column.is_valid().to_numpy(zero_copy_only=False)))


def _uuids(column: Arrow) -> Arrow:
    for text in column.to_pylist():
        if text is not None:
            uuid.UUID(text)
    return column
