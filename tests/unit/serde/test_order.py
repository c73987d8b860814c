"""Equal values have equal bytes in every process, also where Python iterates in an order of its own."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from pystreams.serde import JsonSerde, MsgpackSerde, TimeWindowedSerde
from pystreams.windowed import Windowed

PROGRAM = """
import dataclasses, msgspec, pydantic
from pystreams.serde import JsonSerde, MsgpackSerde

class Holds(msgspec.Struct):
    tags: set[str]

@dataclasses.dataclass
class Nested:
    by_name: dict[str, frozenset[str]]

class Inner(pydantic.BaseModel):
    tags: set[str]

class Model(pydantic.BaseModel):
    inners: list[Inner]
    pairs: dict[str, frozenset[str]] = {}

words = {f"word-{i}" for i in range(20)}
values = [
    (set[str], words),
    (Holds, Holds(words)),
    (Nested, Nested({"a": frozenset(words)})),
    (Model, Model(inners=[Inner(tags=words)], pairs={"p": frozenset(words)})),
    (dict[str, Inner], {"i": Inner(tags=words)}),
]
untyped = [
    (dict, {"z": 1, "tags": words}),
    (list, [[{"deep": ({"tags": frozenset(words)},)}]]),
    (object, Holds(words)),
    (object, {"nested": Nested({"a": frozenset(words)})}),
]
for type_, value in values:
    for codec in (JsonSerde, MsgpackSerde):
        serde = codec(type_)
        data = serde.serializer("topic")(value)
        assert serde.deserializer("topic")(data) == value
        print(data.hex())
for type_, value in untyped:
    for codec in (JsonSerde, MsgpackSerde):
        print(codec(type_).serializer("topic")(value).hex())
        print(codec(type_).key_serializer("topic")(value).hex())
"""


def test_sets_are_written_in_the_same_order_whatever_the_hash_seed():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


class Position(msgspec.Struct):
    axes: dict[str, int]


@pytest.mark.parametrize("codec", [JsonSerde, MsgpackSerde])
@pytest.mark.parametrize(
    "type_,one,other",
    [
        (dict, {"b": 1, "a": [1]}, {"a": [1], "b": 1}),
        (Position, Position({"x": 1, "y": 2}), Position({"y": 2, "x": 1})),
        (object, [{"x": 1, "y": 2}], [{"y": 2, "x": 1}]),
    ],
)
def test_equal_keys_have_equal_bytes(codec, type_, one, other):
    serde = codec(type_)
    assert one == other
    assert serde.key_serializer("topic")(one) == serde.key_serializer("topic")(other)
    windowed = TimeWindowedSerde(serde, 10)
    for write in (windowed.serializer("topic"), windowed.partition_bytes("topic")):
        assert write(Windowed(one, 0, 10)) == write(Windowed(other, 0, 10))


def test_without_sets_fields_keep_the_order_they_have():
    assert JsonSerde(dict).serializer("topic")({"b": 1, "a": 2}) == b'{"b":1,"a":2}'
    assert JsonSerde(dict).serializer("topic")({"b": [1], "a": 2}) == b'{"b":[1],"a":2}'
