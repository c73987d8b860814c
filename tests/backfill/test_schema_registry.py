"""A backfill of records with schemas in a registry gives what the test driver gives, in bytes; also when shipped."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pystreams import App, TimeWindows
from pystreams.backfill.application import PickledApplication
from pystreams.backfill.workers.shipping import shipped
from pystreams.serde import AvroSerde, JsonSchemaSerde, ProtobufSerde
from pystreams.serde.schema_registry.clients import close_clients
from tests.backfill.kit import Backfill, History, driven, memory, single
from tests.live.support import Line
from tests.unit.serde.schema_registry.messages import Customer

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "customer", "type": "string"}, {"name": "cents", "type": "long"}],
    }
)


@dataclass
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    orders: int = 0
    cents: int = 0


@pytest.fixture
def url() -> Iterator[str]:
    yield f"mock://{uuid.uuid4()}"
    close_clients()


def program() -> App:
    app = App("orders-by-customer", statestore_cache_max_bytes=0)
    orders = app.stream("orders", key=str, value=AvroSerde(ORDER, Order))
    named = orders.group_by(lambda order: Customer(name=order.customer), key=ProtobufSerde(Customer))

    def add(total: Total, order: Order) -> Total:
        return Total(total.orders + 1, total.cents + order.cents)

    named.aggregate(Total, add, name="totals", value=JsonSchemaSerde(Total)).to_stream().to("totals")
    windows = named.windowed_by(TimeWindows.tumbling(60_000, grace=1_000_000))
    windows.aggregate(Total, add, name="by-minute", value=JsonSchemaSerde(Total)).to_stream().to("by-minute")
    return app


def history(url: str) -> History:
    write = AvroSerde(ORDER, Order, registry=url).serializer("orders")
    orders = [Order(f"c{n % 5}", n) for n in range(200)]
    records = [Line(b"k", write(order), 1_000 * n) for n, order in enumerate(orders)]
    records.insert(100, Line(b"k", b"no avro", 99_000))
    return {"orders": [records]}


@pytest.mark.parametrize("sent", ["as it is", "shipped"])
def test_a_backfill_gives_what_the_test_driver_gives(url: str, tmp_path: Path, sent: str) -> None:
    settings: dict[str, Any] = {
        "schema.registry.url": url,
        "deserialization_exception_handler": "continue",
        "allow_expired": True,
    }
    records = history(url)
    expected = driven(program(), records, **settings)
    outputs = dict.fromkeys(("totals", "by-minute"), 1)
    application = program()
    backfill = Backfill(application, memory(records, outputs), tmp_path / "backfill", **settings)
    if sent == "shipped":
        backfill.application = PickledApplication(shipped(program()), settings)
        backfill.loaded = backfill.application.load()
    found = single(backfill.run())
    assert found == expected
    assert found.dropped == 1
    assert len(found.changelogs["totals"]) == 5
    # The place of everything that was written says which schema it has.
    assert all(record.value is not None and record.value[:1] == b"\0" for record in found.sinks["totals"])
