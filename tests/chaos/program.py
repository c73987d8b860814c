"""The application that is disturbed: two joins, an aggregate and a windowed one, four sub-topologies.

    orders ───┬─ by customer ═══ sum ─────────────────────────────── spent
              └─ join, within 10 s ─┬─────────────────────────────── paid
    payments ─┘                     └─ by customer ═══ join ─ by region ═══ sum of 10 s ─ regions
    customers ───────────────────────────────────────┘

═══ is a repartition topic. No aggregate is cached: each change of it is a record of its output topic.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from pystreams import App, JoinWindows, TimeWindows

APPLICATION = "chaos"
ORDERS, PAYMENTS, CUSTOMERS = "orders", "payments", "customers"
#: These never stop.
INPUTS = (ORDERS, PAYMENTS)
SPENT, PAID, REGIONS = "spent", "paid", "regions"
PARTITIONS = 3

PAID_WITHIN_MS = 10_000
WINDOW_MS = 10_000
#: Nothing is late: partitions lag behind each other by the length of a fault or two.
GRACE = timedelta(minutes=15)


class Order(msgspec.Struct, frozen=True):
    customer: str
    cents: int


class Payment(msgspec.Struct, frozen=True):
    number: int


class Paid(msgspec.Struct, frozen=True):
    """An order, and one of its payments."""

    customer: str
    cents: int
    number: int


class InRegion(msgspec.Struct, frozen=True):
    """A paid order, where its customer lives."""

    region: str
    cents: int


class Sum(msgspec.Struct, frozen=True):
    """Of a customer's orders, or of what was paid in a region."""

    count: int = 0
    cents: int = 0

    def add(self, order: Order | InRegion) -> Sum:
        return Sum(self.count + 1, self.cents + order.cents)


app = App(APPLICATION)

orders = app.stream(ORDERS, key=str, value=Order)
payments = app.stream(PAYMENTS, key=str, value=Payment)
customers = app.table(CUSTOMERS, key=str, value=str)

(
    orders.group_by(lambda order: order.customer, key=str)
    .aggregate(Sum, Sum.add, value=Sum, name="spent", cached=False)
    .to_stream()
    .to(SPENT)
)
paid = orders.join(
    payments,
    lambda order, payment: Paid(order.customer, order.cents, payment.number),
    windows=JoinWindows.of(PAID_WITHIN_MS, grace=GRACE),
    value=Paid,
    step="paid",
    name="paid",
)
paid.to(PAID)
(
    paid.select_key(lambda paid: paid.customer, key=str)
    .join(customers, lambda paid, region: InRegion(region, paid.cents), value=InRegion, step="with-region")
    .group_by(lambda paid: paid.region, key=str)
    .windowed_by(TimeWindows.tumbling(WINDOW_MS, grace=GRACE))
    .aggregate(Sum, Sum.add, value=Sum, name="regions", cached=False)
    .to_stream()
    .to(REGIONS)
)
