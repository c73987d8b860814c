"""Records whose schemas are in a registry come out as JSON, and lines go in with the newest schema of their subject."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pystreams.serde import AvroSerde, JsonSchemaSerde, ProtobufSerde
from tests.unit.serde.schema_registry.messages import Customer, Line, Order
from tests.unit.serde.schema_registry_server import RegistryServer, running

FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 0},
    {"name": "city", "type": ["null", "string"], "default": None},
]
ORDER = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, folder) -> Iterator[RegistryServer]:
    with running() as registry:
        monkeypatch.setenv("PYSTREAMS_SCHEMA_REGISTRY_URL", registry.url)
        yield registry


@pytest.fixture
def topic(pystreams):
    pystreams("topics", "create", "t")
    return "t"


def put(pystreams, data: bytes) -> None:
    assert pystreams("produce", "t", "--value-type", "hex", stdin=data.hex() + "\n").code == 0


def test_avro_goes_in_and_out_as_json(pystreams, server, topic):
    AvroSerde(ORDER, registry=server.url).serializer("t")({"id": 1})
    AvroSerde('"long"', registry=server.url).key_serializer("t")(1)
    line = '5={"id": 7, "city": "Köln"}\n'
    written = pystreams("produce", topic, "-k", "=", "--key-type", "avro", "--value-type", "avro", stdin=line)
    assert written.code == 0, written.err
    shown = pystreams("consume", topic, "--key-type", "avro", "--value-type", "avro", "--json").out
    assert (json.loads(shown)["key"], json.loads(shown)["value"]) == (
        5,
        {"id": 7, "day": "1970-01-01", "city": "Köln"},
    )


def test_json_schema_goes_in_and_out(pystreams, server, topic):
    JsonSchemaSerde(dict, {"type": "object"}, registry=server.url).serializer("t")({})
    assert pystreams("produce", topic, "--value-type", "json_schema", stdin='{"a": [1, null]}\n').code == 0
    assert pystreams("consume", topic, "--value-type", "json_schema").lines[0].endswith('\t{"a": [1, null]}')


@pytest.mark.parametrize(
    "message,shown",
    [
        (Customer(name="ann"), {"name": "ann"}),
        (Order(id=7, counts={"a": 1}), {"id": "7", "counts": {"a": 1}}),
        (Line(sku="s"), {"sku": "s"}),
    ],
    ids=["first", "second", "within"],
)
def test_protobuf_is_read_by_its_schema_alone(pystreams, server, topic, message, shown):
    put(pystreams, ProtobufSerde(type(message), registry=server.url).serializer("t")(message))
    assert json.loads(pystreams("consume", topic, "--value-type", "protobuf", "--json").out)["value"] == shown


@pytest.mark.parametrize("format_", ["avro", "json_schema", "protobuf"])
def test_other_records_are_shown_in_hex_with_a_mark(pystreams, server, topic, format_):
    put(pystreams, b"\xff\x00")
    put(pystreams, b"\x00\x00\x00\x00\x09abc")
    lines = pystreams("consume", topic, "--value-type", format_).lines
    assert [line.split("\t")[2] for line in lines] == [
        f"<not {format_}: 0xff00>",
        f"<not {format_}: 0x0000000009616263>",
    ]


def test_a_line_that_does_not_fit_the_schema_is_reported(pystreams, server, topic):
    AvroSerde(ORDER, registry=server.url).serializer("t")({"id": 1})
    failed = pystreams("produce", topic, "--value-type", "avro", stdin='{"id": "x"}\n')
    assert failed.code != 0
    assert "cannot be serialized" in failed.err
    assert "Traceback" not in failed.err
    failed = pystreams("produce", topic, "--value-type", "protobuf", stdin="{}\n")
    assert "Lines cannot be written as protobuf" in failed.err


def test_without_a_registry_the_setting_is_named(pystreams, topic):
    failed = pystreams("consume", topic, "--value-type", "avro")
    assert failed.code != 0
    assert "PYSTREAMS_SCHEMA_REGISTRY_URL" in failed.err


def test_an_application_that_registers_its_schemas_does_not_keep_lines_from_being_written(
    pystreams, server, topic, monkeypatch
):
    """With the newest schema, which is there."""
    AvroSerde(ORDER, registry=server.url).serializer("t")({"id": 1})
    monkeypatch.setenv("PYSTREAMS_AUTO_REGISTER_SCHEMAS", "true")
    written = pystreams("produce", topic, "--value-type", "avro", stdin='{"id": 7}\n')
    assert written.code == 0, written.err
