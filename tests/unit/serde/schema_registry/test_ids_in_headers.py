"""A record may name its schema in a header, as newer serializers of Confluent's do if they are told to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pystreams import StreamsBuilder, TopologyTestDriver
from pystreams.serde import AvroSerde, JsonSchemaSerde, ProtobufSerde, SchemaRegistry
from pystreams.serde.schema_registry.clients import client_of
from tests.unit.serde.schema_registry.messages import Line

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
OBJECT = json.dumps({"title": "Order", "type": "object"})
IN_HEADERS = {"subject.name.strategy.type": "TOPIC", "schema.id.serializer": header_schema_id_serializer}


def written(serializer: Any, value: Any, part: MessageField = MessageField.VALUE) -> tuple[bytes, Any]:
    headers: list[tuple[str, bytes]] = []
    data = serializer(value, SerializationContext("orders", part, headers))
    return data, tuple(headers)


@pytest.mark.parametrize(
    "serde,serializer,value",
    [
        (AvroSerde(ORDER), lambda c: AvroSerializer(c, ORDER, conf=IN_HEADERS), {"id": 7}),
        (JsonSchemaSerde(dict, OBJECT), lambda c: JSONSerializer(OBJECT, c, conf=IN_HEADERS), {"id": 7}),
        (ProtobufSerde(Line), lambda c: ProtobufSerializer(Line, c, conf=IN_HEADERS), Line(sku="s")),
    ],
    ids=["avro", "json", "protobuf"],
)
def test_a_topology_reads_both_ways(mock: SchemaRegistry, serde: Any, serializer: Any, value: Any):
    data, headers = written(serializer(client_of(mock)), value)
    builder = StreamsBuilder()
    builder.stream("orders", key=str, value=serde).to("out")
    with TopologyTestDriver(builder, {"application_id": "app", "schema.registry.url": mock.url}) as driver:
        out = driver.create_output_topic("out", key=str, value=serde)
        prefixed = serde.configured({"schema.registry.url": mock.url}).serializer("orders")(value)
        for one, its_headers in (
            (data, headers),
            (prefixed, ()),
            (prefixed, (("other", b"x"),)),
            (data, headers),
        ):
            driver.pipe_bytes("orders", b"k", one, 1_000, its_headers)
            record = out.read_record()
            assert record.value == value
            # What is written names its schema by itself: that header must not go on with it.
            assert record.headers == (() if its_headers == headers else its_headers)


def test_keys_have_a_header_of_their_own(mock: SchemaRegistry):
    serde = AvroSerde(ORDER, registry=mock)
    data, ((name, told),) = written(
        AvroSerializer(client_of(mock), ORDER, conf=IN_HEADERS), {"id": 7}, MessageField.KEY
    )
    header, read = serde.header_deserializer("orders", "key")
    assert header == name == "__key_schema_id"
    assert read(data, told) == {"id": 7}
    assert serde.header_deserializer("orders", "value")[0] == "__value_schema_id"


def test_a_dead_letter_keeps_the_header(mock: SchemaRegistry):
    data, headers = written(AvroSerializer(client_of(mock), ORDER, conf=IN_HEADERS), {"id": 7})
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=AvroSerde(ORDER))
    orders.map_values(lambda order: 1 // (order["id"] - 7), value=int).to("out")
    settings = {
        "application_id": "app",
        "schema.registry.url": mock.url,
        "processing_exception_handler": "dead_letter",
        "deserialization_exception_handler": "dead_letter",
        "errors_dead_letter_queue_topic_name": "dead",
    }
    with TopologyTestDriver(builder, settings) as driver:
        for value in (data, b"", data):
            driver.pipe_bytes("orders", b"k", value, 1_000, headers)
            letter = driver.read_raw("dead")[-1]
            assert (letter.key, letter.value) == (b"k", value)
            assert letter.headers[: len(headers)] == headers
