"""Applications whose records have schemas in a registry, internal topics and stores too, whatever happens to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.schema_registry import header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pystreams import App, SessionWindows, TimeWindows
from pystreams.errors import SchemaRegistryError, SchemaRegistryUnavailableError
from pystreams.runtime.client_state import ClientState
from pystreams.serde import AvroSerde, SchemaRegistry, TimeWindowedSerde
from pystreams.serde.schema_registry.clients import client_of, close_clients
from pystreams.windowed import Windowed
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually, run_to_the_end
from tests.unit.serde.schema_registry_server import RegistryServer, running


def schema(name: str, **fields: Any) -> str:
    made = [{"name": field, "type": type_} for field, type_ in fields.items()]
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": made})


@dataclass(frozen=True)
class Customer:
    id: int


@dataclass(frozen=True)
class Order:
    id: int
    customer: int
    cents: int


@dataclass(frozen=True)
class Total:
    orders: int
    cents: int


ID = AvroSerde('"long"')
CUSTOMER = AvroSerde(schema("Customer", id="long"), Customer)
ORDER = AvroSerde(schema("Order", id="long", customer="long", cents="long"), Order)
TOTAL_SCHEMA = schema("Total", orders="long", cents="long")
TOTAL = AvroSerde(TOTAL_SCHEMA, Total)
ORDERS = [Order(i, i % 7, 10 * i) for i in range(200)]


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with running() as registry:
        yield registry


def there(server: RegistryServer, serde: AvroSerde[Any]) -> Any:
    return serde.configured({"schema.registry.url": server.url})


def totals(log: Log, server: RegistryServer, **settings: Any) -> App:
    """Orders by customer, in total, in windows and in sessions; keys and values are Avro."""
    quick = {"schema.registry.max.retries": 0, "window_changelog_retention_ms": -1}
    app = log.app("totals", schema_registry_url=server.url, **quick, **settings)
    orders = app.stream("orders", key=ID, value=ORDER)
    by_customer = orders.group_by(
        lambda order: Customer(order.customer), key=CUSTOMER, repartition="by-customer"
    )

    def add(total: Total, order: Order) -> Total:
        return Total(total.orders + 1, total.cents + order.cents)

    by_customer.aggregate(lambda: Total(0, 0), add, name="totals", value=TOTAL).to_stream().to("totals")
    windows = by_customer.windowed_by(TimeWindows.tumbling(50, grace=1_000))
    windows.aggregate(lambda: Total(0, 0), add, name="windows", value=TOTAL).to_stream().to("windows")
    sessions = by_customer.windowed_by(SessionWindows.of(5, grace=1_000))
    sessions.count(name="sessions")
    return app


def expected_totals() -> dict[Customer, Total]:
    of = {c: [order for order in ORDERS if order.customer == c] for c in range(7)}
    return {Customer(c): Total(len(orders), sum(o.cents for o in orders)) for c, orders in of.items()}


def write_orders(log: Log, server: RegistryServer) -> None:
    log.create("orders", "totals", "windows", partitions=2)
    log.write(
        "orders",
        [(order.id, order, 1_000 + order.id) for order in ORDERS],
        key=there(server, ID),
        value=there(server, ORDER),
    )


def test_keys_values_windows_stores_and_internal_topics(log: Log, server: RegistryServer) -> None:
    write_orders(log, server)
    run_to_the_end(log, totals(log, server))
    key, value = there(server, CUSTOMER), there(server, TOTAL)
    assert log.table("totals", key=key, value=value) == expected_totals()
    windows = log.table("windows", key=TimeWindowedSerde(key, 50), value=value)
    assert windows[Windowed(Customer(0), 1_000, 1_050)] == Total(8, sum(10 * i for i in range(0, 50, 7)))
    assert server.subjects.keys() == {
        "orders-value",
        "totals-by-customer-repartition-key",
        "totals-by-customer-repartition-value",
        "totals-totals-changelog-key",
        "totals-totals-changelog-value",
        "totals-windows-changelog-key",
        "totals-windows-changelog-value",
        "totals-sessions-changelog-key",
        "totals-key",
        "totals-value",
        "windows-key",
        "windows-value",
    }


def test_state_comes_back_from_its_changelogs(log: Log, server: RegistryServer) -> None:
    write_orders(log, server)
    run_to_the_end(log, totals(log, server))
    shutil.rmtree(log.path / "state")
    close_clients()
    more = [Order(1_000 + c, c, 1) for c in range(7)]
    order = there(server, ORDER)
    log.write("orders", [(o.id, o, 5_000) for o in more], key=there(server, ID), value=order)
    run_to_the_end(log, totals(log, server, num_stream_threads=2))
    read = log.table("totals", key=there(server, CUSTOMER), value=there(server, TOTAL))
    assert read == {c: Total(t.orders + 1, t.cents + 1) for c, t in expected_totals().items()}


@pytest.mark.parametrize("handler", ["fail", "continue"])
@pytest.mark.parametrize("trouble", ["from the start", "in the middle"])
def test_records_wait_for_a_registry_that_is_away(
    log: Log, server: RegistryServer, handler: str, trouble: str
) -> None:
    write_orders(log, server)
    close_clients()
    app = totals(log, server, deserialization_exception_handler=handler, production_exception_handler=handler)
    if trouble == "in the middle":
        # What is read is known, what is written is not.
        server.failing_posts = 503
    else:
        server.failing = 503
    streams = log.start(app)
    asked = len(server.requests)
    eventually(lambda: len(server.requests) > asked + 2, "the registry is asked again and again")
    assert streams.state is not ClientState.ERROR
    server.failing = server.failing_posts = None
    caught_up(streams)
    streams.close()
    read = log.table("totals", key=there(server, CUSTOMER), value=there(server, TOTAL))
    assert read == expected_totals()


def test_a_registry_that_stays_away_ends_the_application_with_its_name(
    log: Log, server: RegistryServer
) -> None:
    write_orders(log, server)
    close_clients()
    server.failing = 503
    streams = log.start(
        totals(log, server, task_timeout_ms=200, deserialization_exception_handler="continue")
    )
    eventually(lambda: streams.failure, "the application ends")
    assert isinstance(streams.failure, SchemaRegistryUnavailableError)
    assert server.url in str(streams.failure)
    assert streams.failure.why.startswith("in trouble (HTTP 503); trouble has lasted for ")


def test_a_schema_that_is_refused_ends_the_application_and_loses_nothing(
    log: Log, server: RegistryServer
) -> None:
    write_orders(log, server)
    other = AvroSerde(schema("Total", orders="string")).configured({"schema.registry.url": server.url})
    other.serializer("totals")({"orders": "x"})
    server.frozen.add("totals-value")
    streams = log.start(totals(log, server, production_exception_handler="continue"))
    eventually(lambda: streams.failure, "the application ends")
    assert isinstance(streams.failure, SchemaRegistryError)
    assert "for the values of topic totals" in str(streams.failure)
    server.frozen.clear()
    run_to_the_end(log, totals(log, server))
    read = log.table("totals", key=there(server, CUSTOMER), value=there(server, TOTAL))
    assert read == expected_totals()


def test_a_record_without_its_schema_goes_to_the_dead_letters_as_it_came(
    log: Log, server: RegistryServer
) -> None:
    log.create("orders", "totals", "windows", "dead")
    good, key = there(server, ORDER), there(server, ID)
    write = good.serializer("orders")
    bad = [b"{}", b"\x00\x00\x00\x00\x63abc", write(ORDERS[0])[:6], b""]
    values = [write(ORDERS[7]), *bad, write(ORDERS[14])]
    key_bytes = key.key_serializer("orders")(1)
    log.write("orders", [(key_bytes, value, 1_000) for value in values], key=bytes, value=bytes)
    app = totals(
        log,
        server,
        deserialization_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead",
    )
    run_to_the_end(log, app)
    assert [(read.key, read.value) for read in log.read("dead", key=bytes, value=bytes)] == [
        (key_bytes, value) for value in bad
    ]
    assert log.table("totals", key=there(server, CUSTOMER), value=there(server, TOTAL)) == {
        Customer(0): Total(2, 210)
    }


def test_a_foreign_key_join_has_javas_subjects(log: Log, server: RegistryServer) -> None:
    log.create("orders", "customers", "joined", partitions=2)
    app = log.app("fk", schema_registry_url=server.url)
    orders = app.table("orders", key=ID, value=ORDER)
    customers = app.table("customers", key=CUSTOMER, value=TOTAL)
    joined = orders.join(
        customers,
        lambda order, total: total,
        foreign_key=lambda order: Customer(order.customer),
        value=TOTAL,
        name="fk",
    )
    joined.to_stream().to("joined")
    log.write(
        "orders", [(o.id, o, 1) for o in ORDERS[:20]], key=there(server, ID), value=there(server, ORDER)
    )
    rows = [(Customer(c), Total(c, 10 * c), 2) for c in range(7)]
    log.write("customers", rows, key=there(server, CUSTOMER), value=there(server, TOTAL))
    run_to_the_end(log, app)
    found = log.table("joined", key=there(server, ID), value=there(server, TOTAL))
    assert found == {o.id: Total(o.customer, 10 * o.customer) for o in ORDERS[:20]}
    registration = "fk-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic"
    assert {
        f"{registration}-pk-key",
        f"{registration}-fk-key",
        f"{registration}-vh-value",
    } <= server.subjects.keys()


def test_a_global_table_waits_for_the_registry_and_has_its_topics_subjects(
    log: Log, server: RegistryServer
) -> None:
    log.create("orders", "customers", "named")
    rows = [(Customer(c), Total(c, 10 * c), 1_000) for c in range(7)]
    # By the key's serializer: a global table's rows are looked up by their bytes.
    key, value = (
        there(server, CUSTOMER).key_serializer("customers"),
        there(server, TOTAL).serializer("customers"),
    )
    log.write("customers", [(key(k), value(v), t) for k, v, t in rows], key=bytes, value=bytes)
    log.write(
        "orders", [(o.id, o, 2_000) for o in ORDERS[:20]], key=there(server, ID), value=there(server, ORDER)
    )
    close_clients()
    app = log.app("global", schema_registry_url=server.url, **{"schema.registry.max.retries": 0})
    customers = app.global_table("customers", key=CUSTOMER, value=TOTAL, name="customers")
    orders = app.stream("orders", key=ID, value=ORDER)
    joined = orders.join(
        customers,
        lambda order, total: Total(order.id, total.cents),
        key_fn=lambda order: Customer(order.customer),
        value=TOTAL,
    )
    joined.to("named")
    server.failing = 503
    asked = len(server.requests)
    with ThreadPoolExecutor(1) as other:
        started = other.submit(log.start, app)
        eventually(lambda: len(server.requests) > asked + 1, "the registry is asked again")
        server.failing = None
        streams = started.result(TIMEOUT_S)
    caught_up(streams)
    found = log.table("named", key=there(server, ID), value=there(server, TOTAL))
    assert found == {o.id: Total(o.id, 10 * o.customer) for o in ORDERS[:20]}
    assert server.subjects.keys() == {
        "customers-key",
        "customers-value",
        "orders-value",
        "named-key",
        "named-value",
    }


def test_a_table_is_restored_from_a_topic_whose_headers_name_the_schemas(
    log: Log, server: RegistryServer
) -> None:
    log.create("totals", config={"cleanup.policy": "compact"})
    serializer = AvroSerializer(
        client_of(SchemaRegistry(server.url)),
        TOTAL_SCHEMA,
        conf={"subject.name.strategy.type": "TOPIC", "schema.id.serializer": header_schema_id_serializer},
    )
    with closing(log.broker.producer("headers", "headers")) as producer:
        for n in range(20):
            headers: list[tuple[str, bytes]] = []
            context = SerializationContext("totals", MessageField.VALUE, headers)
            value = serializer({"orders": n, "cents": 10 * n}, context)
            producer.send("totals", None, f"t{n}".encode(), value, 1_000 + n, tuple(headers))
        producer.commit({}, None)

    def rows(wiped: bool) -> dict[str, Total]:
        if wiped:
            shutil.rmtree(log.path / "state")
        app = log.app(
            "table", schema_registry_url=server.url, topology_optimization="reuse.ktable.source.topics"
        )
        table = app.table("totals", key=str, value=TOTAL, name="rows")
        table.to_stream().foreach(lambda key, value: None)
        streams = log.start(app)
        caught_up(streams)
        found = {key: item.value for key, item in streams.store("rows").all()}
        streams.close()
        return found

    expected = {f"t{n}": Total(n, 10 * n) for n in range(20)}
    assert rows(wiped=False) == expected
    assert rows(wiped=True) == expected
