"""Declared aggregates see the records that a user's function would see, in each kind of window, and are plain values
for all steps behind them."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from pystreams import (
    App,
    EmitStrategy,
    KTable,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    TopologyTestDriver,
    UnlimitedWindows,
    agg,
)

KINDS = {
    "tumbling": TimeWindows.tumbling(20, grace=60),
    "hopping": TimeWindows.hopping(20, advance=8, grace=60),
    "sliding": SlidingWindows.of(15, grace=60),
    "sessions": SessionWindows.of(6, grace=60),
    "unlimited": UnlimitedWindows.of(),
}


class Sale(msgspec.Struct, frozen=True):
    at: int
    cents: int | None
    city: str


FIELDS = {
    "n": agg.count(),
    "priced": agg.count("cents"),
    "total": agg.sum("cents"),
    "mean": agg.mean("cents"),
    "least": agg.min("cents"),
    "first": agg.first("city"),
    "last": agg.last("city"),
    "cities": agg.approx_distinct("city"),
    "top": agg.top(3, "cents"),
    "best": agg.top(2, "at", by="cents"),
}


def expected(sales: list[Sale]) -> dict[str, Any]:
    """What Python computes of the sales of one row; no two of them have the same time or price."""
    priced = sorted((s for s in sales if s.cents is not None), key=lambda s: -(s.cents or 0))
    prices = [s.cents or 0 for s in priced]
    in_time = sorted(sales, key=lambda s: s.at)
    return {
        "n": len(sales),
        "priced": len(prices),
        "total": sum(prices) if prices else None,
        "mean": sum(prices) / len(prices) if prices else None,
        "least": min(prices, default=None),
        "first": in_time[0].city,
        "last": in_time[-1].city,
        "cities": len({s.city for s in sales}),
        "top": tuple(prices[:3]),
        "best": tuple(s.at for s in priced[:2]),
    }


def sales_out_of_order() -> list[Sale]:
    chance = random.Random(5)
    times = sorted(chance.sample(range(1_000, 1_300), 90), key=lambda at: at + chance.choice((0, 0, 10, 40)))
    prices = chance.sample(range(1_000), len(times))
    return [
        Sale(at, chance.choice((price, price, None)), chance.choice("abc"))
        for at, price in zip(times, prices, strict=True)
    ]


def add(sales: list[Sale], sale: Sale) -> list[Sale]:
    return [*sales, sale]


def tables(app: App, kind: str | None, strategy: EmitStrategy | None = None) -> tuple[Any, Any]:
    """A table of declared aggregates, and one that has the records themselves."""
    grouped = app.stream("sales", key=str, value=Sale).group_by_key()
    if kind == "sessions":
        sessions = grouped.windowed_by(KINDS[kind])
        sessions = sessions if strategy is None else sessions.emit_strategy(strategy)
        lists = sessions.aggregate(list, add, lambda one, two: one + two, value=list[Sale], name="lists")
        return sessions.aggregate(**FIELDS, name="rows"), lists
    windows: Any = grouped if kind is None else grouped.windowed_by(KINDS[kind])
    windows = windows if strategy is None else windows.emit_strategy(strategy)
    return windows.aggregate(**FIELDS, name="rows"), windows.aggregate(
        list, add, value=list[Sale], name="lists"
    )


def changes(app: App, table: KTable[Any, Any], found: list[tuple[Any, Any]]) -> None:
    table.to_stream().foreach(lambda key, value: found.append((key, value)))


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_each_row_is_of_the_records_that_a_function_sees(kind: str | None, cache_bytes: int) -> None:
    app = App("shop", statestore_cache_max_bytes=cache_bytes)
    rows: list[tuple[Any, Any]] = []
    lists: list[tuple[Any, Any]] = []
    for table, found in zip(tables(app, kind), (rows, lists), strict=True):
        changes(app, table, found)
    with TopologyTestDriver(app) as driver:
        sales = driver.create_input_topic("sales", key=str, value=Sale)
        for number, sale in enumerate(sales_out_of_order()):
            sales.pipe_input("ab"[number % 2], sale, timestamp=sale.at)
    assert len(rows) > 50
    assert [(key, row and msgspec.structs.asdict(row)) for key, row in rows] == [
        (key, None if them is None else expected(them)) for key, them in lists
    ]


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "sessions"])
def test_windows_that_emit_on_close_show_final_rows(kind: str) -> None:
    app = App("shop")
    rows: list[tuple[Any, Any]] = []
    lists: list[tuple[Any, Any]] = []
    for table, found in zip(tables(app, kind, EmitStrategy.on_window_close()), (rows, lists), strict=True):
        changes(app, table, found)
    with TopologyTestDriver(app) as driver:
        sales = driver.create_input_topic("sales", key=str, value=Sale)
        for sale in [*sales_out_of_order(), Sale(9_000, 1, "z")]:
            sales.pipe_input("a", sale, timestamp=sale.at)
    assert len(rows) > 5
    assert [(key, msgspec.structs.asdict(row)) for key, row in rows] == [
        (key, expected(them)) for key, them in lists
    ]


def test_steps_behind_a_table_see_plain_values() -> None:
    app = App("shop")
    sales = app.stream("sales", key=str, value=Sale)
    cities = app.table("cities", key=str, value=str, name="cities")
    means = sales.group_by_key().aggregate(mean=agg.mean("cents"), first=agg.first("city"), name="means")
    means.filter(lambda row: row.mean > 5, name="high").to_stream().to("high")
    means.join(cities, lambda row, city: f"{city}: {row.mean}", value=str).to_stream().to("joined")
    by_city = means.group_by(lambda row: (row.first, row.mean), key=str, value=float)
    by_city.reduce(max, lambda most, gone: most, name="by-city").to_stream().to("by-city")
    with TopologyTestDriver(app) as driver:
        driver.create_input_topic("cities", key=str, value=str).pipe_input("a", "Rome", timestamp=0)
        given = driver.create_input_topic("sales", key=str, value=Sale)
        given.pipe_input("a", Sale(1, 4, "x"), timestamp=1)
        given.pipe_input("a", Sale(2, 8, "y"), timestamp=2)
        high = driver.create_output_topic("high", key=str, value=dict).read_values()
        joined = driver.create_output_topic("joined", key=str, value=str).read_values()
        highest = driver.create_output_topic("by-city", key=str, value=float).read_values()
        row = driver.store("means").get("a")
        same = driver.store("high").get("a")
    assert high == [{"mean": 6.0, "first": "x"}]
    assert highest == [4.0, 6.0]
    assert joined == ["Rome: 4.0", "Rome: 6.0"]
    assert repr(row.value) == repr(same.value) == "Means(mean=6.0, first='x')"


def test_a_window_counts_records_without_a_value() -> None:
    app = App("shop")
    found: list[tuple[Any, Any]] = []
    grouped = app.stream("sales", key=str, value=Sale).group_by_key()
    windows = grouped.windowed_by(TimeWindows.tumbling(10))
    changes(app, windows.aggregate(n=agg.count(), priced=agg.count("cents"), last=agg.last("city")), found)
    with TopologyTestDriver(app) as driver:
        given = driver.create_input_topic("sales", key=str, value=Sale)
        given.pipe_input("a", Sale(1, 4, "x"), timestamp=1)
        given.pipe_input("a", None, timestamp=2)
    assert repr(found[-1][1]) == "Rows(n=2, priced=1, last='x')"


def test_of_two_records_with_one_timestamp_the_first_processed_is_first() -> None:
    app = App("shop")
    found: list[tuple[Any, Any]] = []
    grouped = app.stream("sales", key=str, value=str).group_by_key()
    changes(app, grouped.aggregate(first=agg.first(), last=agg.last()), found)
    with TopologyTestDriver(app) as driver:
        given = driver.create_input_topic("sales", key=str, value=str)
        for value, timestamp in [("b", 5), ("c", 5), ("a", 3), ("z", 4)]:
            given.pipe_input("k", value, timestamp=timestamp)
    assert [(row.first, row.last) for _, row in found] == [("b", "b"), ("b", "c"), ("a", "c"), ("a", "c")]
