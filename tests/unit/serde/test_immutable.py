"""A cache may keep an object only if nothing in it can change in place."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
import pydantic
import pytest

from pystreams.serde import (
    FLOAT,
    FLOAT32,
    INT,
    STR,
    ChangeSerde,
    JsonSerde,
    MsgpackSerde,
    Serde,
    SessionWindowedSerde,
    TimeWindowedSerde,
    serde_for,
)

T = TypeVar("T")


class Leg(msgspec.Struct, frozen=True):
    origin: str
    next: Leg | None = None


class Loose(msgspec.Struct):
    origin: str


class HoldsList(msgspec.Struct, frozen=True):
    legs: list[int]


class HoldsLoose(msgspec.Struct, frozen=True):
    leg: Leg
    loose: Loose | None


class Anything(msgspec.Struct, frozen=True):
    it: Any


class Box(msgspec.Struct, Generic[T], frozen=True):
    it: T


class Pair(NamedTuple):
    one: int
    two: Leg


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass(frozen=True)
class FrozenOnlyByConvention:
    """Its ``__dict__`` can be written."""

    x: int


class Model(pydantic.BaseModel):
    x: int


IMMUTABLE = [
    str,
    int,
    bytes,
    bool,
    float,
    Leg,
    Box[Leg],
    tuple[Leg, ...],
    tuple[int, str],
    Pair,
    frozenset[int],
    int | None,
]
IMMUTABLE += [Colour, Literal["a", "b"], dt.datetime]
MUTABLE = [
    dict,
    list,
    Loose,
    HoldsList,
    HoldsLoose,
    Box[Loose],
    Anything,
    tuple[list[int], ...],
    tuple,
    set[int],
    Any,
    Model,
]
MUTABLE += [FrozenOnlyByConvention, tuple[Model, int]]


@pytest.mark.parametrize("type_", IMMUTABLE, ids=str)
def test_values_that_cannot_change_are_immutable(type_):
    assert serde_for(type_).immutable
    assert JsonSerde(type_).immutable
    assert MsgpackSerde(type_).immutable


@pytest.mark.parametrize("type_", MUTABLE, ids=str)
def test_values_that_can_change_anywhere_are_not(type_):
    assert not serde_for(type_).immutable
    assert not MsgpackSerde(type_).immutable


def test_keys_and_changes_are_as_immutable_as_what_they_hold():
    assert TimeWindowedSerde(STR, 10).immutable
    assert not TimeWindowedSerde(JsonSerde(dict), 10).immutable
    assert SessionWindowedSerde(STR).immutable
    assert not SessionWindowedSerde(JsonSerde(dict)).immutable
    assert ChangeSerde(INT).immutable
    assert not ChangeSerde(JsonSerde(list)).immutable


def test_what_is_rounded_when_it_is_written_is_no_object_to_keep_in_a_cache():
    assert FLOAT.immutable
    assert not FLOAT32.immutable


def test_a_serde_of_functions_is_taken_for_mutable_unless_it_says_so():
    assert not Serde.of(str.encode, bytes.decode).immutable


def test_a_value_changed_after_writing_does_not_change_what_was_written():
    value = {"a": [1]}
    data = JsonSerde(dict).serializer("topic")(value)
    value["a"].append(2)
    assert data == b'{"a":[1]}'
