"""A foreign-key join ends as the last values of both tables say: over partitions, caches and a restart."""

from __future__ import annotations

import random
from functools import partial

import pytest

from pystreams.app import App
from pystreams.runtime.streams import Streams
from tests.live.support import Log, caught_up, eventually, run_to_the_end

ORDERS = [f"order-{number}" for number in range(60)]
CUSTOMERS = [f"customer-{number}" for number in range(12)]

#: (topic, key, value, timestamp). An order's value is "customer|amount", a customer's its name.
Change = tuple[str, str, str | None, int]


def changes(seed: int) -> list[Change]:
    chance = random.Random(seed)
    history: list[Change] = []
    for number in range(800):
        if chance.random() < 0.3:
            name = chance.choice((None, f"name-{number}", f"name-{number}"))
            history.append(("customers", chance.choice(CUSTOMERS), name, 1_000 + number))
            continue
        order = f"{chance.choice((*CUSTOMERS, ''))}|{number}"
        history.append(("orders", chance.choice(ORDERS), chance.choice((None, order, order)), 1_000 + number))
    return history


def customer_of(order: str) -> str | None:
    return order.split("|", maxsplit=1)[0] or None


def named(order: str, name: str | None) -> str:
    return f"{order}|{name}"


def expected(done: list[Change]) -> dict[str, dict[str, str]]:
    """By topic, the rows that there are in the end."""
    orders, customers = (
        {k: v for topic, k, v, _ in done if topic == side} for side in ("orders", "customers")
    )
    rows = {
        key: (order, customers.get(customer_of(order) or ""))
        for key, order in orders.items()
        if order is not None
    }
    return {
        "inner": {key: named(order, name) for key, (order, name) in rows.items() if name is not None},
        "left_outer": {key: named(order, name) for key, (order, name) in rows.items()},
    }


def joining(log: Log, cache_bytes: int) -> App:
    app = log.app("fk", statestore_cache_max_bytes=cache_bytes, num_stream_threads=2)
    orders, customers = (app.table(name, key=str, value=str) for name in ("orders", "customers"))
    orders.join(customers, named, foreign_key=customer_of, name="inner-rows", value=str).to_stream().to(
        "inner"
    )
    orders.left_join(
        customers,
        named,
        foreign_key=customer_of,
        step="outer",
        name="outer-rows",
        value=str,
        persistent=False,
    ).to_stream().to("left_outer")
    return app


def holds(streams: Streams, store: str, rows: dict[str, str]) -> bool:
    return {key: item.value for key, item in streams.store(store).all()} == rows


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20], ids=["without a cache", "with a cache"])
@pytest.mark.both_logs
def test_rows_end_as_both_tables_say(log: Log, cache_bytes: int) -> None:
    log.create("orders", "inner", "left_outer", partitions=3)
    log.create("customers", partitions=2)
    history = changes(seed=11)
    for start, end in ((0, 400), (400, len(history))):
        for side in ("orders", "customers"):
            log.write(side, [row for topic, *row in history[start:end] if topic == side], value=str)
        streams = log.start(joining(log, cache_bytes))
        caught_up(streams)
        rows = expected(history[:end])
        for topic in rows:
            found = {k: v for k, v in log.table(topic, value=str).items() if v is not None}
            assert found == rows[topic], topic
        for store, topic in (("inner-rows", "inner"), ("outer-rows", "left_outer")):
            eventually(partial(holds, streams, store, rows[topic]), f"{store} holds its rows")
        streams.close()


@pytest.mark.both_logs
def test_answers_go_to_the_partition_that_asked(log: Log) -> None:
    """Even where this table's records are not in the partitions of their keys' hash."""
    log.create("orders", "rows", partitions=3)
    log.create("customers", partitions=2)
    log.write("customers", [("c", "name", 1)], value=str)
    for partition in range(3):
        log.write("orders", [(f"order-{partition}", "c|1", 2)], value=str, partition=partition)
    app = log.app("placed")
    orders, customers = (app.table(name, key=str, value=str) for name in ("orders", "customers"))
    orders.join(customers, named, foreign_key=customer_of, value=str).to_stream().to("rows")
    streams = log.start(app)
    caught_up(streams)
    assert log.table("rows", value=str) == {f"order-{n}": "c|1|name" for n in range(3)}


@pytest.mark.both_logs
def test_partitioners_find_rows_of_topics_with_partitions_of_their_own(log: Log) -> None:
    log.create("orders", "rows", partitions=3)
    log.create("customers", partitions=2)
    # Nothing is where its hash would be: everything is in the last partition.
    log.write("customers", [(f"c{n}", f"name-{n}", 1) for n in range(5)], value=str, partition=1)
    log.write("orders", [(f"order-{n}", f"c{n}|1", 2) for n in range(5)], value=str, partition=2)
    asked: list[tuple[str, object]] = []

    def last(topic: str, key: str, value: object, partitions: int) -> int:
        asked.append((topic, value))
        return partitions - 1

    app = log.app("placed")
    orders, customers = (app.table(name, key=str, value=str) for name in ("orders", "customers"))
    joined = orders.join(
        customers,
        named,
        foreign_key=customer_of,
        value=str,
        step="j",
        partitioner=last,
        other_partitioner=last,
    )
    joined.to_stream().to("rows")
    caught_up(log.start(app))
    assert log.table("rows", value=str) == {f"order-{n}": f"c{n}|1|name-{n}" for n in range(5)}
    assert {topic for topic, _ in asked} == {
        "placed-j-subscription-registration-topic",
        "placed-j-subscription-response-topic",
    }
    assert {value for _, value in asked} == {None}


def test_a_row_that_comes_and_goes_between_two_flushes_is_not_joined(log: Log) -> None:
    """In Java the right table's cache shows it to a row that asks meanwhile, and nothing ever deletes the result."""
    log.create("orders", "customers", "joined")

    def run() -> None:
        app = log.app("fk", commit_interval_ms=1_000, max_task_idle_ms=100)
        orders, customers = (app.table(name, key=str, value=str) for name in ("orders", "customers"))
        joined = orders.join(customers, named, foreign_key=customer_of, name="rows", value=str)
        joined.to_stream().to("joined")
        run_to_the_end(log, app)

    log.write("orders", [("order", "ann|1", 5)], value=str)
    run()
    (registration,) = (topic for topic in log.admin.describe_topics() if "REGISTRATION" in topic)
    (asked,) = log.read(registration, key=bytes, value=bytes)
    # The row asks once more, between two changes of the one that it asks for.
    log.write("customers", [("ann", "Ann", 10), ("ann", None, 12)], value=str)
    log.write(registration, [(asked.key, asked.value, 11)], key=bytes, value=bytes)
    run()
    assert log.table("joined", value=str).get("order") is None
