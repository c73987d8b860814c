"""The error for a wrong key says how a key of the store is written."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field

from pystreams.serde import serde_for
from pystreams.serde.windowed import TimeWindowedSerde
from pystreams.serving.query_errors import BadQueryError
from pystreams.serving.stores.json_forms import JsonForm


class K(msgspec.Struct, frozen=True):
    shop: str
    n: int


class Tagged(msgspec.Struct, frozen=True, tag="of-a-shop", rename="camel"):
    shop_name: str


@dataclass
class Seat:
    row: int
    letter: str


class Place(TypedDict):
    row: int


class Bag(BaseModel):
    weight: float = Field(alias="kg")


SHOP = 'write it as JSON: {"shop": ..., "n": ...}'


@pytest.mark.parametrize(
    "type_, text, why, hint",
    [
        (int, "seven", "its keys are int", "write a whole number, for example 7"),
        (
            int,
            "9" * 30,
            "its keys are int: int too large to convert",
            "write a whole number, for example 7",
        ),
        (float, "much", "its keys are float", "write a number, for example 0.5"),
        (bool, "yes", "its keys are bool", "write true or false"),
        (uuid.UUID, "7", "its keys are uuid", "write its 36 characters"),
        (bytes, "%", "its keys are bytes", "write the bytes in base64"),
        (K, "seven", "its keys are K", SHOP),
        (K, '{"shop":"a"}', "its keys are K: Object missing required field `n`", SHOP),
        (K, '{"shop":1,"n":2}', "its keys are K: Expected `str`, got `int` - at `$.shop`", SHOP),
        (Tagged, "a", "its keys are Tagged", 'write it as JSON: {"type": "of-a-shop", "shopName": ...}'),
        (Seat, "a", "its keys are Seat", 'write it as JSON: {"row": ..., "letter": ...}'),
        (Place, "a", "its keys are Place", 'write it as JSON: {"row": ...}'),
        (Bag, "{}", "its keys are Bag: kg: Field required", 'write it as JSON: {"kg": ...}'),
        (list[int], "a", "its keys are list[int]", "write it as JSON"),
    ],
)
def test_a_wrong_key_is_answered_with_how_to_write_one(type_: Any, text: str, why: str, hint: str) -> None:
    with pytest.raises(BadQueryError) as raised:
        JsonForm(serde_for(type_), "changelog").read_text(text)
    assert raised.value.what == f"{text!r} is not a key of this store"
    assert (raised.value.why, raised.value.hint) == (why, hint)


def test_a_windowed_key_has_its_window_beside_it() -> None:
    with pytest.raises(BadQueryError) as raised:
        JsonForm(TimeWindowedSerde(serde_for(int), 5), "changelog").read_text("7")
    assert 'write it as JSON: {"key": ..., "start": ..., "end": ...}' in raised.value.hint
