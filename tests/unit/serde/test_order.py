"""Equal values have equal bytes in every process, also where Python iterates in an order of its own."""

from __future__ import annotations

import subprocess
import sys

from pystreams.serde import JsonSerde

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
for type_, value in values:
    for codec in (JsonSerde, MsgpackSerde):
        serde = codec(type_)
        data = serde.serializer("topic")(value)
        assert serde.deserializer("topic")(data) == value
        print(data.hex())
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


def test_without_sets_fields_keep_the_order_they_have():
    assert JsonSerde(dict).serializer("topic")({"b": 1, "a": 2}) == b'{"b":1,"a":2}'
