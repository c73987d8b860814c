"""A topic holds records of several versions of a schema; each is read by its own, into the one that the program has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pystreams.errors import SchemaRegistryError, SerializationError, TopologyError
from pystreams.serde import AvroSerde, JsonSchemaSerde, SchemaRegistry
from pystreams.serde.schema_registry.clients import client_of
from tests.unit.serde.schema_registry_server import RegistryServer


def schema(*fields: tuple[str, Any], name: str = "Order") -> str:
    made = [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields]
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": made})


OLD = schema(("id", "long"), ("note", "string"))
NEW = schema(("id", "double"), ("city", "string", "?"))


@dataclass
class Order:
    id: float
    city: str = "?"


def test_an_old_record_is_read_into_the_new_schema(mock: SchemaRegistry):
    old = AvroSerde(OLD, registry=mock).serializer("orders")({"id": 1, "note": "x"})
    new = AvroSerde(NEW, registry=mock)
    read = new.deserializer("orders")
    assert read(old) == {"id": 1.0, "city": "?"}
    assert read(new.serializer("orders")({"id": 2, "city": "Ulm"})) == {"id": 2.0, "city": "Ulm"}
    assert AvroSerde(NEW, Order, registry=mock).deserializer("orders")(old) == Order(1.0)


def test_without_a_schema_of_its_own_a_serde_reads_each_record_as_it_was_written(mock: SchemaRegistry):
    old = AvroSerde(OLD, registry=mock).serializer("orders")({"id": 1, "note": "x"})
    new = AvroSerde(NEW, registry=mock).serializer("orders")({"id": 2, "city": "Ulm"})
    read = AvroSerde(registry=mock).deserializer("orders")
    assert [read(old), read(new)] == [{"id": 1, "note": "x"}, {"id": 2.0, "city": "Ulm"}]


def test_a_serde_without_a_schema_can_only_read(mock: SchemaRegistry):
    with pytest.raises(SerializationError) as caught:
        AvroSerde(registry=mock).serializer("orders")({"id": 1})
    assert caught.value.what == "an AvroSerde without a schema can only read"
    assert "use_latest_version=True" in caught.value.hint


def test_a_record_that_the_own_schema_cannot_read_is_an_error_that_says_why(mock: SchemaRegistry):
    old = AvroSerde(OLD, registry=mock).serializer("orders")({"id": 1, "note": "x"})
    other = AvroSerde(schema(("id", "long"), ("city", "string")), registry=mock)
    with pytest.raises(
        SerializationError, match=r"could not be deserialized as AvroSerde\(shop.Order\)"
    ) as caught:
        other.deserializer("orders")(old)
    assert "No default value for field city" in caught.value.why


def test_the_newest_version_is_written_if_it_is_asked_for(registry: SchemaRegistry, server: RegistryServer):
    AvroSerde(OLD, registry=registry).serializer("orders")({"id": 1, "note": "x"})
    AvroSerde(NEW, registry=registry).serializer("orders")({"id": 1, "city": "x"})
    newest = AvroSerde(OLD, registry=registry, use_latest_version=True)
    generic = AvroSerde(registry=registry, use_latest_version=True)
    for serde in (newest, generic):
        write = serde.serializer("orders")
        assert write({"id": 3, "city": "Ulm"}) == write({"id": 3, "city": "Ulm"})
        assert write({"id": 3, "city": "Ulm"})[:5] == b"\x00\x00\x00\x00\x02"
        assert AvroSerde(registry=registry).deserializer("orders")(write({"id": 3})) == {
            "id": 3.0,
            "city": "?",
        }
    assert server.subjects == {"orders-value": [1, 2]}


def test_the_newest_version_is_for_writing_and_records_are_read_as_without_it(registry: SchemaRegistry):
    """Kafka's deserializer would read them into the newest version, which has no note."""
    old = AvroSerde(OLD, registry=registry).serializer("orders")({"id": 1, "note": "x"})
    AvroSerde(NEW, registry=registry).serializer("orders")({"id": 2, "city": "x"})
    for given in (OLD, None):
        serde = AvroSerde(given, registry=registry, use_latest_version=True)
        assert serde.deserializer("orders")(old) == {"id": 1, "note": "x"}


def test_a_newest_version_that_is_asked_for_again_is_seen(server: RegistryServer):
    asked_again = SchemaRegistry(server.url, {"cache.latest.ttl.sec": "1"})
    AvroSerde(OLD, registry=server.url).serializer("orders")({"id": 1, "note": "x"})
    write = AvroSerde(registry=asked_again, use_latest_version=True).serializer("orders")
    assert write({"id": 1, "note": "x", "city": "y"})[4] == 1
    AvroSerde(NEW, registry=server.url).serializer("orders")({"id": 1, "city": "x"})
    client_of(asked_again).clear_latest_caches()
    assert write({"id": 1, "note": "x", "city": "y"})[4] == 2


def test_schemas_are_not_registered_if_the_serde_may_not(registry: SchemaRegistry, server: RegistryServer):
    serde = AvroSerde(OLD, registry=registry, auto_register=False)
    with pytest.raises(SchemaRegistryError) as caught:
        serde.serializer("orders")({"id": 1, "note": "x"})
    assert caught.value.what == "the schema registry does not have the schema, for the values of topic orders"
    assert "auto.register.schemas" in caught.value.hint
    assert server.subjects == {}
    AvroSerde(OLD, registry=server.url).serializer("orders")({"id": 1, "note": "x"})
    # Nothing is remembered of the refusal.
    assert serde.serializer("orders")({"id": 1, "note": "x"}).hex() == "0000000001" + "02" + "0278"


ADDRESS = json.dumps(
    {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
)


def test_a_schema_may_refer_to_another_subjects(registry: SchemaRegistry):
    AvroSerde(ADDRESS, registry=registry, value_subject=lambda *_: "address").serializer("x")({"city": "Ulm"})
    refers = schema(("to", "shop.Address"), ("from", "shop.Address"))
    serde = AvroSerde(refers, registry=registry, references=[("shop.Address", "address", 1)])
    order = {"to": {"city": "Ulm"}, "from": {"city": "Bonn"}}
    write, generic = serde.serializer("orders"), AvroSerde(registry=registry).deserializer("orders")
    assert write(order) == write(order)
    assert serde.deserializer("orders")(write(order)) == generic(write(order)) == order


@pytest.mark.parametrize(
    "wrong,what",
    [
        ('{"type": "record"}', "a schema is not a valid Avro schema"),
        ('{"type": "nothing"}', "a schema is not a valid Avro schema"),
        ("{", "a schema is not valid JSON"),
        ("orders.avsc", "a schema is not valid JSON"),
        (Path("no/such.avsc"), "no/such.avsc does not contain a schema"),
    ],
)
def test_a_schema_that_is_none_is_reported_before_anything_runs(wrong: Any, what: str):
    with pytest.raises(TopologyError) as caught:
        AvroSerde(wrong)
    assert caught.value.what == what


def test_a_schema_may_stand_in_a_file(mock: SchemaRegistry, tmp_path: Path):
    (tmp_path / "order.avsc").write_text(OLD)
    serde = AvroSerde(tmp_path / "order.avsc", registry=mock)
    assert repr(serde) == "AvroSerde(shop.Order)"
    serde.serializer("orders")({"id": 1, "note": "x"})
    assert client_of(mock).get_latest_version("orders-value").schema.schema_str == OLD


def test_equal_keys_have_equal_bytes_whatever_the_order_of_their_maps(mock: SchemaRegistry):
    counts = schema(("by", {"type": "map", "values": "int"}))
    for serde, key in (
        (AvroSerde(counts, registry=mock), lambda d: {"by": d}),
        (JsonSchemaSerde(dict, {"type": "object"}, registry=mock), lambda d: d),
    ):
        write = serde.key_serializer("orders")
        write(key({"z": 1}))
        assert write(key({"a": 1, "b": 2})) == write(key({"b": 2, "a": 1}))


def test_json_is_checked_against_its_schema_if_that_is_asked_for(mock: SchemaRegistry):
    positive = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer", "minimum": 1}}}
    checked = JsonSchemaSerde(dict, positive, registry=mock, validate=True)
    unchecked = JsonSchemaSerde(dict, positive, registry=mock)
    assert checked.serializer("orders")({"id": 1}) == unchecked.serializer("orders")({"id": 1})
    for _ in range(2):
        with pytest.raises(SerializationError, match="0 is less than the minimum of 1"):
            checked.serializer("orders")({"id": 0})
    wrong = unchecked.serializer("orders")({"id": 0})
    with pytest.raises(SerializationError, match="0 is less than the minimum of 1"):
        checked.deserializer("orders")(wrong)
    assert unchecked.deserializer("orders")(wrong) == {"id": 0}


def test_a_type_that_names_no_fields_needs_a_schema():
    with pytest.raises(TopologyError, match="no JSON Schema can be derived from dict"):
        JsonSchemaSerde(dict)
