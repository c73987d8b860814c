"""What a registry refuses or cannot do is told in words that help; a record of another format is its own fault."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from pystreams.errors import (
    ConfigError,
    SchemaRegistryError,
    SchemaRegistryUnavailableError,
    SerializationError,
)
from pystreams.serde import AvroSerde, JsonSchemaSerde, ProtobufSerde, SchemaRegistry, TimeWindowedSerde
from pystreams.serde.schema_registry import base
from tests.unit.serde.schema_registry.messages import Customer
from tests.unit.serde.schema_registry_server import RegistryServer, running

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
OTHER = '{"type": "record", "name": "Order", "fields": [{"name": "city", "type": "string"}]}'
SECRET = "hunter2"


class Line(msgspec.Struct):
    sku: str


ALL: list[Any] = [
    (AvroSerde(ORDER), {"id": 1}),
    (JsonSchemaSerde(Line), Line("a")),
    (ProtobufSerde(Customer), Customer(name="a")),
]
FORMATS = pytest.mark.parametrize("serde,value", ALL, ids=lambda v: type(v).__name__)


def named(serde: Any, registry: SchemaRegistry) -> Any:
    settings = {f"schema.registry.{name}": value for name, value in registry.settings.items()}
    return serde.configured({"schema.registry.url": registry.url, **settings})


@FORMATS
@pytest.mark.parametrize(
    "data,why",
    [
        (b"", "it has 0 bytes"),
        (b"\x00\x00", "it has 2 bytes"),
        (b'{"id": 1}', "it begins with 123"),
        (b"\x01\x00\x00\x00", "it begins with 1"),
        (b"\xff" * 20, "it begins with 255"),
    ],
)
def test_a_record_of_something_else_is_known_by_its_first_byte(
    mock, serde: Any, value: Any, data: bytes, why: str
):
    with pytest.raises(SerializationError) as caught:
        named(serde, mock).deserializer("orders")(data)
    assert caught.value.what == f"a record does not begin like a record of {serde!r}"
    assert caught.value.why.endswith(why)
    assert caught.value.where == "topic orders"


@FORMATS
def test_an_unknown_schema_is_the_records_fault_and_asked_for_once_in_a_while(
    registry, server: RegistryServer, serde: Any, value: Any, monkeypatch
):
    now = 100.0
    monkeypatch.setattr(base, "monotonic", lambda: now)
    read = named(serde, registry).deserializer("orders")
    for _ in range(5):
        with pytest.raises(SerializationError) as caught:
            read(b"\x00\x00\x00\x00\x07abc")
        assert caught.value.what == "the schema registry does not know the schema of a record, topic orders"
        assert caught.value.why == "Schema 7 not found (HTTP 404)"
    assert [request.partition("?")[0] for request in server.requests] == ["GET /schemas/ids/7"]
    now += 10.1
    with pytest.raises(SerializationError):
        read(b"\x00\x00\x00\x00\x07abc")
    assert len(server.requests) == 2


@FORMATS
def test_a_record_that_ends_too_soon_is_its_own_fault(mock, serde: Any, value: Any):
    serde = named(serde, mock)
    data = serde.serializer("orders")(value)
    with pytest.raises(SerializationError, match=f"{len(data) - 1} bytes could not be deserialized as"):
        serde.deserializer("orders")(data[:-1])


@FORMATS
def test_another_kind_of_value_cannot_be_written(mock, serde: Any, value: Any):
    write = named(serde, mock).serializer("orders")
    for _ in range(2):
        with pytest.raises(SerializationError, match="a value of type tuple cannot be serialized as"):
            write((1, 2))
        write(value)


@FORMATS
def test_a_registry_that_is_not_there_is_nobodys_fault(serde: Any, value: Any):
    with running() as gone:
        pass
    serde = named(serde, SchemaRegistry(gone.url, {"max.retries": "0"}))
    for act in (
        lambda: serde.serializer("orders")(value),
        lambda: serde.deserializer("orders")(b"\0\0\0\0\1a"),
    ):
        with pytest.raises(SchemaRegistryUnavailableError) as caught:
            act()
        assert caught.value.action == "redo"
        assert caught.value.what.startswith("the schema registry cannot be reached, ")
        assert gone.url in caught.value.where
        assert "refused" in caught.value.why


@FORMATS
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_in_trouble_is_asked_again_later(
    registry, server: RegistryServer, serde, value, status: int
):
    serde = named(serde, registry)
    server.failing = status
    write, read = serde.serializer("orders"), serde.deserializer("orders")
    with pytest.raises(SchemaRegistryUnavailableError, match="cannot answer now"):
        write(value)
    server.failing = None
    data = write(value)
    server.failing = status
    with pytest.raises(SchemaRegistryUnavailableError, match="cannot answer now"):
        AvroSerde(registry=SchemaRegistry(server.url, {"max.retries": "0"})).deserializer("orders")(data)
    server.failing = None
    assert read(data) == value


@FORMATS
def test_what_was_learnt_needs_no_registry(registry, server: RegistryServer, serde: Any, value: Any):
    serde = named(serde, registry)
    write, read = serde.serializer("orders"), serde.deserializer("orders")
    data = write(value)
    read(data)
    asked = len(server.requests)
    server.failing = 500
    assert all(read(write(value)) == value for _ in range(10))
    assert len(server.requests) == asked


def test_an_incompatible_schema_is_reported_with_its_subject(registry, server: RegistryServer):
    AvroSerde(ORDER, registry=registry).serializer("orders")({"id": 1})
    server.frozen.add("orders-value")
    with pytest.raises(SchemaRegistryError) as caught:
        AvroSerde(OTHER, registry=registry).serializer("orders")({"city": "x"})
    assert caught.value.action == "fail"
    assert caught.value.what == (
        "the schema registry refused a schema that is not compatible with the earlier ones, "
        "for the values of topic orders"
    )
    assert "HTTP 409" in caught.value.why
    assert "pystreams reset" in caught.value.hint


@pytest.mark.parametrize(
    "url,login",
    [("http://alice:hunter3@{}", {}), ("http://{}", {"basic.auth.user.info": f"alice:{SECRET}3"})],
)
def test_a_refused_login_is_reported_without_it(server: RegistryServer, url: str, login: dict[str, str]):
    server.login = f"alice:{SECRET}"
    registry = SchemaRegistry(url.format(server.url.removeprefix("http://")), login)
    with pytest.raises(SchemaRegistryError) as caught:
        AvroSerde(ORDER, registry=registry).serializer("orders")({"id": 1})
    assert caught.value.what == "the schema registry refused the login, for the values of topic orders"
    assert "hunter" not in str(caught.value) + repr(registry) + repr(caught.value)
    assert caught.value.hint.startswith("check the login")


@pytest.mark.parametrize("in_url", [True, False])
def test_a_login_reaches_the_registry(server: RegistryServer, in_url: bool):
    server.login = f"alice:{SECRET}"
    at = server.url.removeprefix("http://")
    registry = (
        SchemaRegistry(f"http://{server.login}@{at}")
        if in_url
        else SchemaRegistry(server.url, {"basic.auth.user.info": server.login})
    )
    assert AvroSerde(ORDER, registry=registry).serializer("orders")({"id": 1})[-1] == 2
    assert SECRET not in repr(registry) + str(registry)


def test_the_second_address_is_asked_if_the_first_is_away(server: RegistryServer):
    with running() as gone:
        pass
    registry = SchemaRegistry(f"{gone.url},{server.url}", {"max.retries": "0"})
    assert AvroSerde(ORDER, registry=registry).serializer("orders")({"id": 1})[-1] == 2


@pytest.mark.parametrize(
    "settings,what",
    [
        (
            {"ssl.ca.location": "/no/such/file"},
            "the client of SchemaRegistry('https://localhost:1') cannot be created",
        ),
        (
            {"ssl.key.password": SECRET},
            "the client of SchemaRegistry('https://localhost:1') cannot be created",
        ),
    ],
)
def test_certificates_that_are_not_there_are_reported(settings: dict[str, str], what: str):
    with pytest.raises(ConfigError) as caught:
        AvroSerde(ORDER, registry=SchemaRegistry("https://localhost:1", settings)).serializer("t")({"id": 1})
    assert caught.value.what == what
    assert SECRET not in str(caught.value)


@FORMATS
def test_without_a_registry_the_setting_is_named(serde: Any, value: Any):
    for bind in (
        serde.serializer,
        serde.key_serializer,
        serde.deserializer,
        TimeWindowedSerde(serde, 1).serializer,
    ):
        with pytest.raises(ConfigError) as caught:
            bind("orders")
        assert caught.value.what == f"{serde!r} has no schema registry"
        assert "schema_registry_url='http://localhost:8081'" in caught.value.hint


@pytest.mark.parametrize(
    "make,module,extra",
    [
        (lambda: AvroSerde(ORDER), "fastavro", "avro"),
        (lambda: JsonSchemaSerde(Line), "jsonschema", "json-schema"),
        (lambda: ProtobufSerde(Customer), "google.protobuf", "protobuf"),
        (lambda: AvroSerde(ORDER), "authlib", "avro"),
    ],
    ids=["avro", "json", "protobuf", "client"],
)
def test_an_extra_that_is_not_installed_is_named(make: Any, module: str, extra: str, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.what == "packages for schemas are not installed"
    assert caught.value.hint.startswith(f"pip install 'pystreams-engine[{extra}]', or from a clone")
