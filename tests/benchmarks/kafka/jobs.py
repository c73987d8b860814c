"""The benchmark's four jobs, and those of ``catch_up`` and ``restore`` beside it, as a user of pystreams writes them.
``peers/java`` has the same on Kafka Streams.

Each run writes to a topic of its own, which the environment names; everything else comes by the command line:

    BENCH_OUTPUT=visits pystreams run tests.benchmarks.kafka.jobs:stateless --bootstrap-servers localhost:9092
"""

from __future__ import annotations

import operator
import os
from collections import Counter
from datetime import timedelta
from operator import attrgetter

import msgspec

from pystreams import App, TimeWindows, agg

OUTPUT = os.environ.get("BENCH_OUTPUT", "bench-output")


class Event(msgspec.Struct, frozen=True):
    """Something that a visitor of a shop did; 130 bytes as JSON."""

    id: int
    user: str
    kind: str
    page: str
    country: str
    duration_ms: int
    cents: int


class Visit(msgspec.Struct, frozen=True):
    """What the stateless job makes of an event."""

    id: int
    user: str
    page: str
    country: str
    seconds: int


class Order(msgspec.Struct, frozen=True):
    """An order; its key is the customer's."""

    id: int
    item: str
    quantity: int
    cents: int


class Customer(msgspec.Struct, frozen=True):
    """A row of the table of customers."""

    name: str
    city: str
    tier: str


class Sale(msgspec.Struct, frozen=True):
    """An order with what is known of its customer."""

    id: int
    customer: str
    city: str
    tier: str
    total_cents: int


def visit(event: Event) -> Visit:
    """The visit of an event, in whole seconds."""
    return Visit(event.id, event.user, event.page, event.country, event.duration_ms // 1000)


def sale(key: str, order: Order, customer: Customer) -> Sale:
    """The sale of an order to a customer."""
    return Sale(order.id, key, customer.city, customer.tier, order.quantity * order.cents)


stateless = App("bench-stateless")
(
    stateless.stream("bench-events", key=str, value=Event)
    .filter(lambda event: event.kind != "heartbeat")
    .map_values(visit, value=Visit)
    .to(OUTPUT)
)

wordcount = App("bench-wordcount")
(
    wordcount.stream("bench-lines", value=str)
    .flat_map_values(str.split)
    .group_by(lambda word: word, key=str)
    .count(name="counts")
    .to_stream()
    .to(OUTPUT)
)

# The inputs' timestamps are fixed: no broker may delete them for their age.
windows = App("bench-windows", window_changelog_retention_ms=-1)
(
    windows.stream("bench-amounts", key=str, value=int)
    .group_by_key()
    .windowed_by(TimeWindows.tumbling(timedelta(seconds=60), grace=timedelta(seconds=10)))
    .reduce(operator.add, name="sums")
    .to_stream()
    .to(OUTPUT)
)

declared = App("bench-declared", window_changelog_retention_ms=-1)
(
    declared.stream("bench-amounts", key=str, value=int)
    .group_by_key()
    .windowed_by(TimeWindows.tumbling(timedelta(seconds=60), grace=timedelta(seconds=10)))
    .aggregate(total=agg.sum(), name="sums")
    .to_stream()
    .map_values(attrgetter("total"), value=int)
    .to(OUTPUT)
)

join = App("bench-join")
(
    join.stream("bench-orders", key=str, value=Order)
    .join(join.table("bench-customers", key=str, value=Customer, name="customers"), sale, value=Sale)
    .to(OUTPUT)
)

# A purchase is "customer city". The first hop brings those of a customer together, the second one those of a city.
orders = App("bench-orders", window_changelog_retention_ms=-1)
(
    orders.stream("bench-purchases", key=str, value=str)
    .select_key(lambda purchase: purchase.split(" ")[0], key=str)
    .repartition(name="by-customer")
    .group_by(lambda purchase: purchase.split(" ")[1], key=str)
    .windowed_by(TimeWindows.tumbling(timedelta(minutes=5), grace=timedelta(minutes=1)))
    .count(name="sold")
    .to_stream()
    .to(OUTPUT)
)


def most_frequent_letter(line: str) -> str:
    """What keeps a thread busy while another one restores."""
    ((letter, _),) = Counter(line).most_common(1)
    return letter


def _with_balances(app: App) -> App:
    deposits = app.stream("bench-deposits", key=str, value=int)
    deposits.group_by_key().reduce(operator.add, name="balances").to_stream().to(OUTPUT)
    return app


def _with_letters(app: App) -> App:
    app.stream("bench-lines", value=str).map_values(most_frequent_letter, value=str).to(f"{OUTPUT}-letters")
    return app


balances = _with_balances(App("bench-balances"))
letters = _with_letters(App("bench-letters"))
both = _with_letters(_with_balances(App("bench-both")))
