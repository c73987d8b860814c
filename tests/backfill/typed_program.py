"""An application whose stores and sinks have values of many types, and a history for it. Importable by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from pystreams import App, Serde, SessionWindows, TimeWindows, agg
from tests.backfill.kit import History, lines


class Item(msgspec.Struct):
    name: str
    cents: int


@dataclass
class Customer:
    region: str
    number: int


@dataclass
class Revenue:
    total: Decimal = Decimal(0)
    last: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    items: list[Item] = field(default_factory=list)
    by_name: dict[str, int] = field(default_factory=dict)
    note: str | None = None
    first: int | str = "none"


def bought(so_far: Revenue, item: Item) -> Revenue:
    return Revenue(
        so_far.total + Decimal(item.cents) / 100,
        datetime.fromtimestamp(item.cents, UTC),
        [*so_far.items[-2:], item],
        {**so_far.by_name, item.name: item.cents},
        None if item.cents % 2 else item.name,
        item.cents if so_far.first == "none" else so_far.first,
    )


def own_bytes(value: int) -> bytes:
    return b"%d" % value


def together(one: Item, other: Item) -> Item:
    return Item(one.name, one.cents + other.cents)


def typed(**settings: Any) -> App:
    app = App("typed", **settings)
    items = app.stream("items", key=Customer, value=Item)
    by_customer = items.group_by_key()
    revenue = by_customer.aggregate(Revenue, bought, value=Revenue, name="revenue")
    revenue.to_stream().filter(lambda one: one.total > 50).to("big-orders")
    by_customer.aggregate(cents=agg.sum("cents"), mean=agg.mean("cents"), n=agg.count(), name="declared")
    per_minute = by_customer.windowed_by(TimeWindows.tumbling(60_000, grace=1_000_000)).count(
        name="per-minute"
    )
    per_minute.to_stream().to("counts-per-minute")
    sessions = by_customer.windowed_by(SessionWindows.of(60_000, grace=1_000_000))
    sessions.reduce(together, name="visits").to_stream().to("sessions")
    items.to_table(name="last-item", history=10_000_000)
    (
        items.group_by(lambda item: item.name, key=str)
        .aggregate(lambda: 0, lambda n, item: n + 1, name="own", value=Serde.of(own_bytes, int), key=str)
        .to_stream()
        .to(lambda name, n: f"chosen-{n % 2}")
    )
    return app


def typed_history(partitions: int = 2) -> History:
    """40 items of 6 customers, some of them late; in the middle there is a pause."""
    records = [
        (
            Customer("north" if n % 3 else "south", n % 6),
            Item(f"i{n % 5}", 1_000 * (n % 7) + n),
            10_000 * n - 25_000 * (n % 2) + (200_000 if n > 24 else 0),
        )
        for n in range(4, 44)
    ]
    whose = [[one for one in records if one[0].number % partitions == p] for p in range(partitions)]
    return {"items": [lines(of_partition, key=Customer, value=Item) for of_partition in whose]}


app = typed()
