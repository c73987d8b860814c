"""key= and value= take a type or a serde."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from pystreams.errors import TopologyError
from pystreams.serde import BOOL, BYTES, FLOAT, INT, STR, UUID, JsonSerde, TimeWindowedSerde, serde_for
from pystreams.windowed import Windowed


class Order(msgspec.Struct):
    id: int


@pytest.mark.parametrize(
    "type_,serde", [(str, STR), (int, INT), (float, FLOAT), (bytes, BYTES), (bool, BOOL), (uuid.UUID, UUID)]
)
def test_primitive_types_have_javas_bytes(type_, serde):
    assert serde_for(type_) is serde


@pytest.mark.parametrize(
    "type_,value,data",
    [
        (dict, {}, b"{}"),
        (list, [], b"[]"),
        (Order, Order(1), b'{"id":1}'),
        (list[int], [1], b"[1]"),
        (dict[str, Order], {"a": Order(1)}, b'{"a":{"id":1}}'),
        (Order | None, Order(1), b'{"id":1}'),
        (Any, [], b"[]"),
        (object, "a", b'"a"'),
    ],
    ids=str,
)
def test_other_types_are_json(type_, value, data):
    serde = serde_for(type_)
    assert isinstance(serde, JsonSerde)
    assert serde.serializer("topic")(value) == data


def test_a_serde_is_taken_as_it_is():
    serde = TimeWindowedSerde(STR, 10)
    assert serde_for(serde) is serde


def test_the_keys_inside_of_windowed_ones_are_given_in_the_same_way():
    assert TimeWindowedSerde(str, 10).inner is STR
    assert isinstance(TimeWindowedSerde(Order, 10).inner, JsonSerde)


@pytest.mark.parametrize(
    "wrong,text",
    [
        (None, "None is not a type"),
        (3, "for the type 3"),
        pytest.param(3, "give the type itself: int", id="what a number is given for"),
        ("str", "for the type 'str'"),
        ("Order", "write the type without quotes: Order"),
        pytest.param(Order(1), "give the type itself: Order", id="a value"),
        pytest.param(Order(1), "it is a value of the type Order, not a type", id="why a value is none"),
        pytest.param([int], "write list[int]", id="a list of a type"),
        pytest.param({"a": int}, "give str, int, float", id="a dictionary of types"),
        pytest.param("list[int]", "only annotations may give a type in quotes", id="a type in quotes"),
        (complex, "for the type complex"),
        (list[complex], "in list[complex]"),
        (JsonSerde, "give an instance, such as JsonSerde(...)"),
        (Windowed, "give TimeWindowedSerde("),
        (Windowed[str], "give TimeWindowedSerde("),
        pytest.param(lambda: 1, "there is no serde for the type", id="a function"),
    ],
    ids=str,
)
def test_anything_else_is_an_error_that_says_what_to_give(wrong, text):
    with pytest.raises(TopologyError) as caught:
        serde_for(wrong)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "serde,shown",
    [
        (STR, "str"),
        (JsonSerde(Order), "JsonSerde(Order)"),
        (JsonSerde(list[int]), "JsonSerde(list[int])"),
        (TimeWindowedSerde(INT, 10), "TimeWindowedSerde(int, 10)"),
    ],
)
def test_a_serde_shows_what_it_is(serde, shown):
    assert repr(serde) == shown
