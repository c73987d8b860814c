"""What was written is read back as it was, for any value."""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from typing import Generic, NotRequired, TypedDict, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.serde import (
    BOOL,
    BYTES,
    FLOAT,
    FLOAT32,
    INT,
    INT16,
    INT32,
    STR,
    UUID,
    ChangeSerde,
    JsonSerde,
    ListSerde,
    MsgpackSerde,
    Serde,
    SessionWindowedSerde,
    TimeWindowedSerde,
    serde_for,
)
from pystreams.windowed import Windowed

T = TypeVar("T")

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


class Leg(msgspec.Struct, frozen=True):
    origin: str
    minutes: int


class Box(msgspec.Struct, Generic[T]):
    it: T


class Trip(msgspec.Struct):
    legs: list[Leg]
    tags: set[str]
    at: dt.datetime | None = None


@dataclasses.dataclass
class Order:
    id: uuid.UUID
    lines: dict[str, int]
    leg: Leg | None = None


class Reading(TypedDict):
    sensor: str
    values: list[float]
    note: NotRequired[str]


LEGS = st.builds(Leg, TEXT, INT64)
TIMES = st.datetimes(timezones=st.just(dt.UTC), min_value=dt.datetime(1970, 1, 1))  # noqa: DTZ001
STRUCTURED = {
    dict: st.dictionaries(
        TEXT, st.recursive(TEXT | INT64 | st.none() | st.booleans(), st.lists, max_leaves=5)
    ),
    list: st.lists(INT64 | TEXT),
    list[int]: st.lists(INT64),
    dict[str, Leg]: st.dictionaries(TEXT, LEGS),
    tuple[Leg, ...]: st.lists(LEGS).map(tuple),
    Leg: LEGS,
    Box[Leg]: st.builds(Box, LEGS),
    Trip: st.builds(Trip, st.lists(LEGS, max_size=3), st.sets(TEXT, max_size=3), st.none() | TIMES),
    Order: st.builds(Order, st.uuids(), st.dictionaries(TEXT, INT64), st.none() | LEGS),
    Reading: st.fixed_dictionaries(
        {"sensor": TEXT, "values": st.lists(st.floats(allow_nan=False, allow_infinity=False))},
        optional={"note": TEXT},
    ),
}


def goes_round(serde: Serde, value) -> None:
    data = serde.serializer("topic")(value)
    assert type(data) is bytes
    assert serde.deserializer("topic")(data) == value


PRIMITIVES = [
    (STR, TEXT),
    (INT, INT64),
    (INT32, st.integers(-(1 << 31), (1 << 31) - 1)),
    (INT16, st.integers(-(1 << 15), (1 << 15) - 1)),
    (FLOAT, st.floats(allow_nan=False)),
    (FLOAT32, st.floats(allow_nan=False, width=32)),
    (BYTES, st.binary()),
    (BOOL, st.booleans()),
    (UUID, st.uuids()),
]


@pytest.mark.parametrize("serde,values", PRIMITIVES, ids=[repr(serde) for serde, _ in PRIMITIVES])
def test_primitives_come_back_and_say_their_length(serde, values):
    given(values)(lambda value: goes_round(serde, value))()


@pytest.mark.parametrize("codec", [JsonSerde, MsgpackSerde])
@pytest.mark.parametrize("type_", STRUCTURED, ids=str)
def test_structured_values_come_back(codec, type_):
    serde = codec(type_)
    given(STRUCTURED[type_])(lambda value: goes_round(serde, value))()


@given(INT64, st.integers(0, 1 << 50), st.integers(1, 1 << 40))
def test_windowed_keys_come_back_with_their_end(key, start, size):
    goes_round(TimeWindowedSerde(INT, size), Windowed(key, start, start + size))


@given(TEXT, st.integers(0, 1 << 50), st.integers(0, 1 << 40))
def test_sessions_keys_come_back(key, start, length):
    goes_round(SessionWindowedSerde(STR), Windowed(key, start, start + length))


@given(st.tuples(st.none() | TEXT, st.none() | TEXT).filter(lambda change: change != (None, None)))
def test_changes_of_a_table_come_back(change):
    goes_round(ChangeSerde(STR), change)


@pytest.mark.parametrize(
    "inner,elements",
    [
        (INT, INT64),
        (STR, TEXT),
        (UUID, st.uuids()),
        (BYTES, st.binary()),
        (ListSerde(INT), st.lists(INT64 | st.none())),
    ],
    ids=repr,
)
def test_lists_come_back_with_their_nones(inner, elements):
    given(st.lists(elements | st.none()))(lambda values: goes_round(ListSerde(inner), values))()


@given(st.binary())
def test_bytes_are_neither_copied_nor_changed(value):
    assert BYTES.serializer("topic")(value) is value
    assert BYTES.deserializer("topic")(value) is value


def test_a_serde_of_two_functions_uses_them():
    serde = Serde.of(lambda n: b"x" * n, len, immutable=True)
    goes_round(serde, 3)
    assert serde.immutable
    assert serde_for(serde) is serde
