"""A serde that was pickled writes and reads what it did before: applications are sent to workers."""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from pystreams.serde import ListSerde, MsgpackSerde, TimeWindowedSerde, serde_for
from pystreams.windowed import Windowed


class Order(msgspec.Struct):
    id: int


@dataclass
class Line:
    text: str


class Model(BaseModel):
    id: int


@pytest.mark.parametrize(
    "serde,value",
    [
        (serde_for(int), -7),
        (serde_for(float), 0.5),
        (serde_for(str), "ü"),
        (serde_for(uuid.UUID), uuid.UUID(int=7)),
        (serde_for(dict), {"b": 1, "a": [2]}),
        (serde_for(list[int]), [1, 2]),
        (serde_for(set[int]), {3, 1, 2}),
        (serde_for(Order), Order(7)),
        (serde_for(Line), Line("x")),
        (serde_for(Model), Model(id=7)),
        (MsgpackSerde(Order), Order(7)),
        (TimeWindowedSerde(str, 10), Windowed("k", 20, 30)),
        (ListSerde(int), [1, None]),
        (ListSerde(Order), [Order(7), None]),
    ],
    ids=repr,
)
def test_a_pickled_serde_has_the_same_bytes(serde: Any, value: Any) -> None:
    written = serde.serializer("t")(value)
    back = pickle.loads(pickle.dumps(serde))
    assert back.serializer("t")(value) == written
    assert back.key_serializer("t")(value) == serde.key_serializer("t")(value)
    assert back.deserializer("t")(written) == value
    assert (repr(back), back.immutable) == (repr(serde), serde.immutable)
