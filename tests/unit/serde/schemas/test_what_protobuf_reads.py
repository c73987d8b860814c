"""What the comparison of two Protobuf messages says is what Protobuf does with their bytes."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from pystreams.serde import ProtobufSerde
from pystreams.serde.base import schema_of
from pystreams.serde.schemas import Effect, Finding
from pystreams.serde.schemas.comparison import compare

Proto = descriptor_pb2.FieldDescriptorProto

VALUES: dict[str, list[Any]] = {
    "int32": [1, -1, 2**31 - 1],
    "int64": [1, -1, 2**40],
    "uint32": [1, 2**32 - 1],
    "uint64": [1, 2**63],
    "sint32": [1, -1],
    "sint64": [1, 2**40],
    "bool": [True],
    "enum": [1, -1],
    "fixed32": [1, 2**32 - 1],
    "sfixed32": [1, -1],
    "fixed64": [1, 2**63],
    "sfixed64": [1, -1],
    "float": [1.5],
    "double": [1.5],
    "string": ["a", "é"],
    "bytes": [b"a", b"\xff"],
}


def message(*fields: tuple[str, int, str], repeated: bool = False) -> Any:
    """A class of messages with these fields: name, number, type."""
    file = descriptor_pb2.FileDescriptorProto(name="row.proto", package="shop", syntax="proto3")
    row = file.message_type.add(name="Row")
    row.nested_type.add(name="Inner").field.add(name="q", number=1, type=Proto.TYPE_INT32, label=1)
    kinds = row.enum_type.add(name="Kind")
    for number, name in enumerate(("NONE", "SOME")):
        kinds.value.add(name=name, number=number)
    for name, number, kind in fields:
        field = row.field.add(name=name, number=number, label=3 if repeated else 1)
        field.type = Proto.Type.Value(f"TYPE_{kind.upper()}")
        if kind in ("message", "enum"):
            field.type_name = ".shop.Row.Inner" if kind == "message" else ".shop.Row.Kind"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Row"))


def findings(was: Any, now: Any) -> list[Finding]:
    found = compare(schema_of(ProtobufSerde(was)), schema_of(ProtobufSerde(now)))
    return [finding for finding in found if "registry" not in finding.why]


def what_happens(was: str, now: str) -> Effect:
    old, new = message(("x", 1, was)), message(("x", 1, now))
    found = Effect.READS_ON
    for value in VALUES[was]:
        try:
            read = new.FromString(old(x=value).SerializeToString()).x
        except DecodeError:
            return Effect.FAILS
        if read != value and read != (value.encode() if isinstance(value, str) else value):
            found = Effect.LOSES
    return found


@pytest.mark.parametrize("was", VALUES)
def test_types_of_fields(was: str) -> None:
    for now in VALUES:
        found = findings(message(("x", 1, was)), message(("x", 1, now)))
        said = max((finding.effect for finding in found), default=Effect.READS_ON)
        assert said is what_happens(was, now), now


@pytest.mark.parametrize(
    "was, now, expected",
    [
        ([("cents", 1, "int64")], [("euros", 1, "int64")], [("cents", Effect.READS_ON)]),
        (
            [("cents", 1, "int64")],
            [("cents", 2, "int64")],
            [("cents", Effect.LOSES), ("cents", Effect.READS_ON)],
        ),
        (
            [("a", 1, "int64"), ("b", 2, "int64")],
            [("b", 1, "int64"), ("a", 2, "int64")],
            [("a", Effect.LOSES), ("b", Effect.LOSES)],
        ),
        ([("a", 1, "int64")], [], [("a", Effect.LOSES)]),
        ([], [("a", 1, "int64")], [("a", Effect.READS_ON)]),
        ([("a", 1, "message")], [("a", 1, "bytes")], [("a", Effect.READS_ON)]),
        ([("a", 1, "string")], [("a", 1, "message")], [("a", Effect.FAILS)]),
    ],
)
def test_fields_are_known_by_their_numbers(was: Any, now: Any, expected: Any) -> None:
    found = findings(message(*was), message(*now))
    assert [(finding.path, finding.effect) for finding in found] == expected


def test_repeated_fields() -> None:
    one, many = message(("x", 1, "string")), message(("x", 1, "string"), repeated=True)
    assert [finding.effect for finding in findings(one, many)] == [Effect.READS_ON]
    assert list(many.FromString(one(x="a").SerializeToString()).x) == ["a"]
    assert [finding.effect for finding in findings(many, one)] == [Effect.LOSES]
    assert one.FromString(many(x=["a", "b"]).SerializeToString()).x == "b"


def test_equal_messages_of_two_files_are_equal() -> None:
    assert findings(message(("x", 1, "int32")), message(("x", 1, "int32"))) == []
