"""What is written has the bytes of Confluent's own serializers, and either side reads what the other wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import SerializationContext
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pydantic import BaseModel

from pystreams.serde import AvroSerde, JsonSchemaSerde, ProtobufSerde, SchemaRegistry
from pystreams.serde.schema_registry.clients import client_of
from tests.examples import examples
from tests.unit.serde.schema_registry.messages import Customer, Line, Order

BY_TOPIC = {"subject.name.strategy.type": "TOPIC"}

EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "namespace": "test",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": "long"},
        {"name": "double", "type": "double"},
        {"name": "text", "type": "string"},
        {"name": "data", "type": "bytes"},
        {"name": "maybe", "type": ["null", "string"], "default": None},
        {"name": "many", "type": {"type": "array", "items": "long"}},
        {"name": "named", "type": {"type": "map", "values": "string"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {
            "name": "inner",
            "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]},
        },
    ],
}

records = st.fixed_dictionaries(
    {
        "flag": st.booleans(),
        "small": st.integers(-(2**31), 2**31 - 1),
        "large": st.integers(-(2**63), 2**63 - 1),
        "double": st.floats(allow_nan=False),
        "text": st.text(),
        "data": st.binary(),
        "maybe": st.none() | st.text(),
        "many": st.lists(st.integers(-(2**63), 2**63 - 1)),
        "named": st.dictionaries(st.text(), st.text()),
        "kind": st.sampled_from(["A", "B"]),
        "at": st.integers(0, 4_000_000_000_000).map(lambda ms: datetime.fromtimestamp(ms // 1000, UTC)),
        "price": st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2)),
        "inner": st.fixed_dictionaries({"x": st.integers(-5, 5)}),
    }
)


def context(part: str = "value") -> Any:
    return SerializationContext("orders", part)


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(record=records)
def test_avro_of_every_kind(mock: SchemaRegistry, record: dict[str, Any]):
    theirs = AvroSerializer(client_of(mock), json.dumps(EVERYTHING), conf=BY_TOPIC)
    ours = AvroSerde(EVERYTHING, registry=mock)
    data = ours.serializer("orders")(record)
    assert data == theirs(record, context())
    assert ours.deserializer("orders")(data) == record
    assert AvroDeserializer(client_of(mock), conf=BY_TOPIC)(data, context()) == record


def test_avro_begins_with_the_byte_0_and_the_schemas_id(mock: SchemaRegistry):
    write = AvroSerde(
        '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}', registry=mock
    )
    assert write.serializer("orders")({"n": -1}).hex() == "00" + "00000001" + "01"


@pytest.mark.parametrize(
    "schema,value,payload",
    [
        ('"string"', "ab", "046162"),
        ('"long"', 3, "06"),
        ('"bytes"', b"\x00\x01", "0001"),
        ("string", "ab", "046162"),
    ],
)
def test_a_schema_may_be_a_primitive(mock: SchemaRegistry, schema: str, value: Any, payload: str):
    serde = AvroSerde(schema, registry=mock)
    write = serde.serializer("orders")
    assert write(value).hex() == write(value).hex() == "00" + "00000001" + payload
    assert serde.deserializer("orders")(write(value)) == value


class Place(msgspec.Struct):
    city: str
    zip: int | None = None


@dataclass
class Parcel:
    id: int
    to: Place
    notes: list[str]


class Sent(BaseModel):
    id: int
    city: str | None = None


PARCEL = Parcel(7, Place("Köln"), ["a", "b"])


@pytest.mark.parametrize(
    "value", [PARCEL, Place("x", 3), Sent(id=1, city="ü")], ids=lambda v: type(v).__name__
)
def test_json_schema_is_read_by_confluents_deserializer_and_checked_there(mock: SchemaRegistry, value: Any):
    serde = JsonSchemaSerde(type(value), registry=mock)
    write, read = serde.serializer("orders"), serde.deserializer("orders")
    first, second = write(value), write(value)
    assert first == second
    assert first[:5].hex() == "0000000001"
    assert read(second) == value
    assert type(read(second)) is type(value)
    theirs = JSONDeserializer(
        None, schema_registry_client=client_of(mock), conf=BY_TOPIC | {"validate": True}
    )
    assert theirs(first, context()) == json.loads(first[5:])


def test_json_of_confluents_serializer_is_read(mock: SchemaRegistry):
    serde = JsonSchemaSerde(Parcel, registry=mock)
    schema = serde._schema.text
    theirs = JSONSerializer(schema, client_of(mock), conf=BY_TOPIC)
    plain = {"id": 7, "to": {"city": "Köln", "zip": None}, "notes": ["a", "b"]}
    assert serde.deserializer("orders")(theirs(plain, context())) == PARCEL


@pytest.mark.parametrize(
    "message,head",
    [
        (Customer(name="ann"), "00" + "0000000{}" + "00"),
        (Order(id=5, counts={"a": 1}), "00" + "0000000{}" + "0202"),
        (Line(sku="s"), "00" + "0000000{}" + "040202"),
    ],
    ids=["first", "second", "within"],
)
def test_protobuf_says_which_message_of_its_file_it_is(mock: SchemaRegistry, message: Any, head: str):
    theirs = ProtobufSerializer(type(message), client_of(mock), conf=BY_TOPIC)
    serde = ProtobufSerde(type(message), registry=mock)
    write, read = serde.serializer("orders"), serde.deserializer("orders")
    first, second = write(message), write(message)
    assert first == second == theirs(message, context())
    # The first schema is that of the file which is imported.
    assert first.hex().startswith(head.format(2))
    assert read(first) == message
    back = ProtobufDeserializer(type(message), BY_TOPIC, schema_registry_client=client_of(mock))
    assert back(second, context()) == message


@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(-(2**63), 2**63 - 1), counts=st.dictionaries(st.text(), st.integers(0, 9)))
def test_protobuf_comes_back_as_it_was(mock: SchemaRegistry, number: int, counts: dict[str, int]):
    message = Order(id=number, counts=counts)
    serde = ProtobufSerde(Order, registry=mock)
    write, read = serde.serializer("orders"), serde.deserializer("orders")
    assert read(write(message)) == read(write(message)) == message


def test_files_that_a_protobuf_file_imports_are_registered_by_their_names(mock: SchemaRegistry):
    ProtobufSerde(Order, registry=mock).serializer("orders")(Order(id=1))
    client = client_of(mock)
    assert sorted(client.get_subjects()) == ["orders-value", "shop/address.proto"]
    (reference,) = client.get_latest_version("orders-value").schema.references
    assert (reference.name, reference.subject, reference.version) == ("shop/address.proto",) * 2 + (1,)
