"""A column loses nothing: of random models the rows give the same objects again, in JSON and in msgpack."""

from __future__ import annotations

import types
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, get_args, get_origin

import msgspec
import pyarrow as pa
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pystreams.backfill.columns.of_serde import column_of
from pystreams.serde import JsonSerde, MsgpackSerde
from tests.examples import examples


class Color(Enum):
    RED = "red"
    BLUE = "blue"


INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
YEARS = {"min_value": datetime(1, 1, 2), "max_value": datetime(9999, 12, 30)}  # noqa: DTZ001 - of no time zone

#: By type, its values.
LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: INT64,
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=5),
    bytes: st.binary(max_size=5),
    datetime: st.datetimes(**YEARS, timezones=st.just(UTC)),
    date: st.dates(),
    time: st.times(),
    timedelta: st.timedeltas(timedelta(-100_000), timedelta(100_000)),
    uuid.UUID: st.uuids(),
    Decimal: st.decimals(-(10**19), 10**19, places=18),
    Color: st.sampled_from(Color),
    int | str: INT64 | st.text(max_size=5),
}
SORTED = (bool, int, str, date, uuid.UUID)


def struct(fields: list[Any]) -> Any:
    return msgspec.defstruct("Model", [(f"field_{number}", type_) for number, type_ in enumerate(fields)])


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda one: list[one], inner),
        # Beside a set, msgspec takes no other keys.
        st.builds(lambda one: dict[str, one], inner),
        st.builds(lambda one, other: tuple[one, other], inner, inner),
        st.builds(lambda one: one | None, inner),
        st.builds(lambda one: set[one], st.sampled_from(SORTED)),
        st.lists(inner, min_size=1, max_size=3).map(struct),
    )


TYPES = st.recursive(st.sampled_from(list(LEAVES)), containers, max_leaves=6)
MODELS = st.lists(TYPES, min_size=1, max_size=4).map(struct)


def values(type_: Any) -> st.SearchStrategy[Any]:
    """The values of a type."""
    origin, args = get_origin(type_), get_args(type_)
    if type_ in LEAVES:
        return LEAVES[type_]
    if origin is list:
        return st.lists(values(args[0]), max_size=2)
    if origin is set:
        return st.sets(values(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=2)
    if origin is tuple:
        return st.tuples(*map(values, args))
    if origin is types.UnionType:
        return st.one_of(*(st.none() if one is type(None) else values(one) for one in args))
    return st.builds(type_, *map(values, type_.__annotations__.values()))


def again(type_: Any, found: Any) -> Any:
    """The value of a type that a row has."""
    origin, args = get_origin(type_), get_args(type_)
    if found is None:
        return None
    if origin is types.UnionType and type(None) in args:
        others = [one for one in args if one is not type(None)]
        return again(others[0] if len(others) == 1 else int | str, found)
    if type_ == int | str:
        return msgspec.json.decode(found)
    if type_ in (time, uuid.UUID, Color):
        return msgspec.convert(found, type_)
    if type_ in LEAVES:
        return found
    if origin in (list, set):
        return origin(again(args[0], one) for one in found)
    if origin is dict:
        return {again(args[0], key): again(args[1], value) for key, value in found}
    if origin is tuple:
        return tuple(again(one, value) for one, value in zip(args, found.values(), strict=True))
    return type_(*(again(one, found[name]) for name, one in type_.__annotations__.items()))


@examples(25, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), MODELS)
def test_the_rows_of_a_model_are_its_objects_again(data: st.DataObject, model: Any) -> None:
    objects = data.draw(st.lists(values(model) | st.none(), max_size=3))
    for serde in (JsonSerde(model), MsgpackSerde(model)):
        write, column = serde.serializer("t"), column_of(serde, "t")
        given = pa.array([None if one is None else write(one) for one in objects], pa.binary())
        found = column.read(given, "here")
        assert found.type == column.type
        assert [again(model, row) for row in found.to_pylist()] == objects
