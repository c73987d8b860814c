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
    "type_", [dict, list, Order, list[int], dict[str, Order], Order | None, Any, object], ids=str
)
def test_other_types_are_json(type_):
    serde = serde_for(type_)
    assert isinstance(serde, JsonSerde)
    assert serde.serializer("topic")([]) == b"[]"


def test_a_serde_is_taken_as_it_is():
    serde = TimeWindowedSerde(STR, 10)
    assert serde_for(serde) is serde


def test_the_keys_inside_of_windowed_ones_are_given_in_the_same_way():
    assert TimeWindowedSerde(str, 10).inner is STR
    assert isinstance(TimeWindowedSerde(Order, 10).inner, JsonSerde)


@pytest.mark.parametrize(
    "wrong,text",
    [
        (None, "None is no type"),
        (3, "3 is no type"),
        ("str", "'str' is no type"),
        (complex, "complex is no type"),
        (list[complex], "inside of list[complex]"),
        (JsonSerde, "give an instance, such as JsonSerde(...)"),
        (Windowed, "give TimeWindowedSerde("),
        (Windowed[str], "give TimeWindowedSerde("),
        (lambda: 1, "is no type"),
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
