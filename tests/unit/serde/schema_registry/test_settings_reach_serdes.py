"""A serde takes its registry, and what it does with schemas, from the application; what it says itself goes before."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from pystreams import App, StreamsBuilder, StreamsConfig, TimeWindows
from pystreams.cli.application.settings_in_force import settings_in_force
from pystreams.config.serde_settings import serde_settings
from pystreams.errors import ConfigError
from pystreams.serde import (
    INT,
    STR,
    AvroSerde,
    ChangeSerde,
    JsonSchemaSerde,
    ListSerde,
    ProtobufSerde,
    SchemaRegistry,
    Serde,
    SessionWindowedSerde,
    TimeWindowedSerde,
)
from pystreams.serde.join_side import SideValueSerde, WaitingKeySerde
from pystreams.serde.schema_registry.clients import client_of
from pystreams.serde.subscriptions import ResponseSerde
from pystreams.topology.topology import Topology
from pystreams.windowed import Windowed
from tests.unit.serde.schema_registry.messages import Customer, Line
from tests.unit.serde.schema_registry_server import RegistryServer

ORDER = '{"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}'
URL = "mock://of-the-application"
SETTINGS = {"schema.registry.url": URL}


@dataclass
class Order:
    id: int


def registry_of(serde: Any) -> Any:
    return serde._use.registry


class OfUsers(Serde[Any]):
    """A serde of a user's that holds others."""

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner


@pytest.mark.parametrize(
    "serde,inner",
    [
        (TimeWindowedSerde(AvroSerde(ORDER), 10), lambda s: s.inner),
        (SessionWindowedSerde(AvroSerde(ORDER)), lambda s: s.inner),
        (ChangeSerde(AvroSerde(ORDER)), lambda s: s.inner),
        (ListSerde(ListSerde(AvroSerde(ORDER))), lambda s: s.inner.inner),
        (WaitingKeySerde(AvroSerde(ORDER)), lambda s: s.key),
        (SideValueSerde(STR, AvroSerde(ORDER)), lambda s: s.right),
        (ResponseSerde(AvroSerde(ORDER)), lambda s: s.value),
        (OfUsers(AvroSerde(ORDER)), lambda s: s.inner),
    ],
    ids=lambda s: type(s).__name__,
)
def test_serdes_within_serdes_get_them(serde: Any, inner: Any):
    configured = serde.configured(SETTINGS)
    assert registry_of(inner(configured)) == SchemaRegistry(URL)
    assert type(configured) is type(serde)
    assert configured.immutable == serde.immutable
    # The same serde may stand in two applications.
    assert registry_of(inner(serde)) is None


@pytest.mark.parametrize("serde", [STR, TimeWindowedSerde(INT, 10), ListSerde(INT)], ids=repr)
def test_other_serdes_stay_what_they_are(serde: Any):
    assert serde.configured(SETTINGS) is serde


def test_what_a_serde_says_itself_goes_before():
    own = AvroSerde(ORDER, registry="mock://own", auto_register=True, value_subject="record")
    settings = {
        **SETTINGS,
        "auto.register.schemas": "false",
        "use.latest.version": "true",
        "value.subject.name.strategy": "topic",
        "key.subject.name.strategy": "topic_record",
    }
    use: Any = own.configured(settings)._use  # type: ignore[attr-defined]
    assert use.registry == SchemaRegistry("mock://own")
    assert (use.auto_register, use.use_latest_version) == (True, None)
    assert (use.value_subject, use.key_subject) == ("record", "topic_record")
    use = AvroSerde(ORDER).configured(settings)._use  # type: ignore[attr-defined]
    assert (use.auto_register, use.use_latest_version) == (False, True)


@pytest.mark.parametrize(
    "make", [AvroSerde, lambda s, **own: JsonSchemaSerde(Order, **own)], ids=["avro", "json"]
)
def test_the_registry_is_asked_to_normalize_schemas_if_that_is_wanted(make: Any, server: RegistryServer):
    settings = {"schema.registry.url": server.url}
    for topic, serde in (
        ("plain", make(ORDER).configured(settings)),
        ("by-setting", make(ORDER).configured({**settings, "normalize.schemas": "true"})),
        ("by-itself", make(ORDER, normalize=True).configured(settings)),
    ):
        serde.serializer(topic)({"id": 1} if make is AvroSerde else Order(1))
    wanted = [request.lower() for request in server.requests if request.lower().endswith("normalize=true")]
    assert [request.split("/")[2] for request in wanted] == ["by-setting-value", "by-itself-value"]


def test_two_wishes_that_contradict_each_other_are_refused():
    with pytest.raises(ConfigError, match="auto_register and use_latest_version contradict each other"):
        AvroSerde(ORDER, auto_register=True, use_latest_version=True)


@pytest.mark.parametrize(
    ("make", "given"), [(AvroSerde, ORDER), (JsonSchemaSerde, Order), (ProtobufSerde, Customer)]
)
def test_an_argument_that_a_serde_does_not_take_is_refused_with_the_nearest(make: Any, given: Any):
    expected = (
        rf"{make.__name__}\(\) got an unexpected keyword argument 'normalise': did you mean normalize\?"
    )
    with pytest.raises(TypeError, match=expected):
        make(given, normalise=True)


@pytest.mark.parametrize(
    "by,key,value",
    [
        ({}, "orders-key", "orders-value"),
        ({"key.subject.name.strategy": "record"}, "shop.Order", "orders-value"),
        ({"value.subject.name.strategy": "topic_record"}, "orders-key", "orders-shop.Order"),
        (
            {"value.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy"},
            "orders-key",
            "shop.Order",
        ),
    ],
)
def test_subjects_are_named_as_the_strategy_says(
    mock: SchemaRegistry, by: dict[str, str], key: str, value: str
):
    settings = serde_settings({"schema_registry_url": mock.url, **by})
    serde = AvroSerde(ORDER, Order).configured(settings)
    serde.serializer("orders")(Order(1))
    assert client_of(mock).get_subjects() == [value]
    serde.key_serializer("orders")(Order(1))
    assert sorted(client_of(mock).get_subjects()) == sorted({key, value})


@pytest.mark.parametrize(
    "make,name",
    [
        (lambda by: AvroSerde(ORDER, value_subject=by), "shop.Order"),
        (lambda by: JsonSchemaSerde(Order, value_subject=by), "Order"),
        (lambda by: ProtobufSerde(Line, value_subject=by), "shop.Order.Line"),
        (lambda by: ProtobufSerde(Customer, value_subject=by), "shop.Customer"),
    ],
)
def test_a_function_may_name_subjects(mock: SchemaRegistry, make: Any, name: str):
    serde = make(lambda topic, part, record: f"{topic}/{part}/{record}").configured(
        {"schema.registry.url": mock.url}
    )
    value = {"Order": Order(1), "shop.Order.Line": Line(sku="a"), "shop.Customer": Customer(name="a")}
    serde.serializer("orders")(value.get(name, {"id": 1}))
    assert f"orders/value/{name}" in client_of(mock).get_subjects()


def test_a_subject_by_record_needs_a_record(mock: SchemaRegistry):
    with pytest.raises(ConfigError, match="cannot be named after its record"):
        AvroSerde('"string"', registry=mock, value_subject="record").serializer("orders")("a")
    with pytest.raises(ConfigError, match="'records' is not a subject name strategy"):
        AvroSerde(ORDER, value_subject="records")


def test_every_serde_of_a_topology_gets_them():
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=AvroSerde(ORDER, Order), value=AvroSerde(ORDER, Order))
    table = builder.table("others", key=AvroSerde(ORDER, Order), value=AvroSerde(ORDER, Order))
    orders.group_by_key().windowed_by(TimeWindows.tumbling(10)).count(name="counts").to_stream().to("counted")
    order = AvroSerde(ORDER, Order)
    table.group_by(lambda key, value: (value, value), key=order, value=order).count(
        name="by_value"
    ).to_stream().to("counted_by_value")
    built = builder.build().build("app", serde_settings=SETTINGS)
    text = pickle.dumps([(s.key_serde, s.value_serde) for sub in built.subtopologies for s in sub.stores])
    assert URL.encode() in text
    for sub in built.subtopologies:
        held = [node for node in sub.nodes if hasattr(node, "key_serde")] + list(sub.stores)
        serdes = [serde for one in held for serde in (one.key_serde, one.value_serde)]
        inner = [getattr(serde, "inner", serde) for serde in serdes]
        assert {registry_of(serde) for serde in inner if isinstance(serde, AvroSerde)} == {
            SchemaRegistry(URL)
        }


def test_the_fingerprint_knows_the_schema_and_not_the_registry():
    def fingerprint(schema: str, settings: dict[str, str]) -> str:
        builder = StreamsBuilder()
        builder.table("orders", key=str, value=AvroSerde(schema), name="orders")
        return builder.build().build("app", serde_settings=settings).fingerprint

    more = ORDER.replace("]", ', {"name": "city", "type": "string", "default": ""}]')
    renamed = ORDER.replace('"Order"', '"Sale"')
    elsewhere = {"schema.registry.url": "http://alice:secret@other"}
    documented = ORDER.replace('"Order"', '"Order", "doc": "what was bought"')
    assert fingerprint(ORDER, SETTINGS) == fingerprint(documented, elsewhere)
    assert len({fingerprint(schema, {}) for schema in (ORDER, more, renamed)}) == 3


SECRET = "hunter2"


def test_settings_come_from_everywhere_and_their_secrets_are_not_shown(monkeypatch):
    config = StreamsConfig.of(
        application_id="app",
        schema_registry_url=f"http://alice:{SECRET}@localhost:8081",
        **{"basic.auth.user.info": f"alice:{SECRET}", "auto.register.schemas": False},
    )
    assert config.serde_settings == {
        "schema.registry.url": f"http://alice:{SECRET}@localhost:8081",
        "schema.registry.basic.auth.user.info": f"alice:{SECRET}",
        "auto.register.schemas": "false",
    }
    told = repr(config) + repr(config.in_force()) + repr(SchemaRegistry.of(config.serde_settings))
    assert SECRET not in told
    assert "localhost:8081" in told
    with pytest.raises(ConfigError) as caught:
        StreamsConfig.of(application_id="app", schema_registry_url=f"alice:{SECRET}@localhost")
    assert SECRET not in str(caught.value)


def test_settings_in_force_are_shown_one_by_one_without_secrets():
    config = StreamsConfig.of(
        application_id="app",
        schema_registry_url=f"http://alice:{SECRET}@localhost:8081",
        basic_auth_user_info=f"alice:{SECRET}",
    )
    rows = settings_in_force(config, {"schema.registry.url": "environment"})["The application"]
    assert ("schema.registry.url", "[hidden]@localhost:8081", "environment") in rows
    assert ("schema.registry.basic.auth.user.info", "[hidden]", "default") in rows


@pytest.mark.parametrize(
    "name,value,expected",
    [
        ("schema_registry_url", "localhost:8081", "http://HOST:PORT"),
        ("schema.registry.timeout", "0", "at least 1"),
        ("schema.registry.basic.auth.user.info", "alice", "USER:PASSWORD"),
        ("auto_register_schemas", "yes", "true or false"),
        ("value.subject.name.strategy", "RecordStrategy", "topic or record or topic_record"),
        ("basic.auth.credentials.source", "SASL_INHERIT", "USER_INFO or URL"),
    ],
)
def test_a_wrong_setting_is_reported_with_what_would_be_right(name: str, value: str, expected: str):
    with pytest.raises(ConfigError) as caught:
        StreamsConfig.from_mapping({"application_id": "app", name: value})
    assert expected in caught.value.why


def test_a_misspelt_setting_is_reported_with_the_right_one():
    with pytest.raises(ConfigError) as caught:
        App("app", schema_registry_uri="http://localhost:8081")
    assert caught.value.hint == "did you mean schema_registry_url?"


@pytest.mark.parametrize(
    "serde,value",
    [
        (AvroSerde(ORDER, Order), Order(1)),
        (TimeWindowedSerde(AvroSerde(ORDER, Order), 10), Windowed(Order(1), 20, 30)),
        (JsonSchemaSerde(Order), Order(1)),
        (ProtobufSerde(Line), Line(sku="a")),
    ],
    ids=repr,
)
def test_a_pickled_serde_has_its_registry_and_the_same_bytes(mock: SchemaRegistry, serde: Any, value: Any):
    serde = serde.configured({"schema.registry.url": mock.url})
    written = serde.serializer("t")(value)
    back = pickle.loads(pickle.dumps(serde))
    assert back.serializer("t")(value) == written
    assert back.deserializer("t")(written) == value
    assert (repr(back), back.immutable) == (repr(serde), serde.immutable)


def test_a_topology_is_described_without_a_registry():
    topology = Topology()
    topology.add_source("in", "orders", key=AvroSerde(ORDER), value=ProtobufSerde(Customer))
    assert "orders" in topology.describe()
