"""Orders of a shop, as objects and as a table, and an application that reads them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from pystreams.app import App

BEGIN = datetime(2024, 3, 1, tzinfo=UTC)


class Item(msgspec.Struct):
    name: str
    pieces: int


class Order(msgspec.Struct):
    customer: str
    price: Decimal
    at: int
    items: list[Item]
    labels: dict[str, str]
    note: str | None = None


def revenue(**settings: Any) -> App:
    """Pieces by item: with a repartition."""
    app = App("shop", statestore_cache_max_bytes=0, **settings)
    orders = app.stream("orders", key=str, value=Order)
    orders.group_by_key().count(name="orders-of")
    (
        orders.flat_map_values(lambda order: order.items)
        .select_key(lambda key, item: item.name, key=str)
        .group_by_key(value=Item)
        .aggregate(int, lambda total, item: total + item.pieces, value=int, name="pieces")
        .to_stream()
        .to("totals")
    )
    return app


def some_orders(seed: int, count: int = 60) -> list[Order]:
    chance = random.Random(seed)
    return [
        Order(
            customer=f"c{chance.randrange(9)}",
            price=Decimal(chance.randrange(10_000)) / 100,
            at=int(BEGIN.timestamp() * 1000) + chance.randrange(40) * 60_000,
            items=[Item(chance.choice("abc"), chance.randrange(1, 5)) for _ in range(chance.randrange(3))],
            labels={"by": chance.choice(["web", "phone"])},
            note=chance.choice([None, "gift"]),
        )
        for _ in range(count)
    ]


ORDERS = pa.schema(
    [
        ("customer", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("items", pa.list_(pa.struct([("name", pa.string()), ("pieces", pa.int32())]))),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("note", pa.string()),
    ]
)


def table_of(orders: list[Order]) -> pa.Table:
    """The orders as a table, in any order."""
    rows = [
        {
            "customer": order.customer,
            "price": order.price.quantize(Decimal("0.01")),
            "at": BEGIN + timedelta(milliseconds=order.at - milliseconds(BEGIN)),
            "items": [{"name": item.name, "pieces": item.pieces} for item in order.items],
            "labels": list(order.labels.items()),
            "note": order.note,
        }
        for order in orders
    ]
    return pa.Table.from_pylist(rows, ORDERS)


def in_order(orders: list[Order]) -> list[tuple[str, Order, int]]:
    """As records, in the order that is promised: by timestamp, ties by the bytes of key and value."""
    encode = msgspec.json.encode
    for order in orders:
        order.price = order.price.quantize(Decimal("0.01"))
    ordered = sorted(orders, key=lambda order: (order.at, order.customer.encode(), encode(order)))
    return [(order.customer, order, order.at) for order in ordered]


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
