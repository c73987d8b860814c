"""A join of which no record finds anything is told to the user, with what to look at."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count

import pytest

from tests.cli.conftest import Command, Outcome

PROGRAM = """
from datetime import timedelta
from pystreams import App, JoinWindows
app = App("joins")
def joined(one: int, other: int | None) -> int:
    return one + (other or 0)
{join}
"""

ORDERS = 'orders = app.stream("orders", key=str, value=int)\n'
PRICES = 'prices = app.table("prices", key=str, value=int)\n'
WINDOWS = "windows=JoinWindows.of(timedelta(minutes=5))"

KEYS = "whether the keys of both have one type and form, whether both topics are partitioned alike by them, "
ROWS = "and whether the table has rows"
EARLIER_ROWS = "whether the table has rows, and whether these are earlier than the records"
NO_ROW = f"none of 12 records found a row in table prices; look {KEYS}{EARLIER_ROWS}"
NO_ROW_BY_NAME = f"none of 12 records found a row in table price-list; look {KEYS}{EARLIER_ROWS}"
NO_GLOBAL_ROW = (
    "none of 12 records found a row in table prices; look whether key_fn returns keys of the table's type and "
    f"form, {ROWS}"
)
NO_FOREIGN_ROW = (
    "none of 12 look-ups found a row in table prices; look whether foreign_key returns keys of the table's type and "
    f"form, {ROWS}"
)
NO_OTHER_ROW = (
    f"none of 24 changes found a row in the other table; look {KEYS}and whether both tables have rows"
)
NO_RECORD = (
    f"none of 24 records found a record in the other stream; look {KEYS}and whether their times are as close as the "
    "windows ask"
)

#: The join, and what is said of it.
JOINS = {
    "table": (
        ORDERS + PRICES + 'orders.join(prices, joined, step="price").to("out")',
        NO_ROW,
    ),
    "table, left": (
        ORDERS + PRICES + 'orders.left_join(prices, joined, step="price").to("out")',
        NO_ROW,
    ),
    "table with a name": (
        ORDERS
        + 'listed = app.table("prices", key=str, value=int, name="price-list")\n'
        + "prices = listed.map_values(lambda cents: cents, value=int)\n"
        + 'orders.join(prices, joined, step="price").to("out")',
        NO_ROW_BY_NAME,
    ),
    "table with history": (
        ORDERS
        + 'prices = app.table("prices", key=str, value=int, name="price-list", history=timedelta(days=1))\n'
        + 'orders.join(prices, joined, step="price").to("out")',
        NO_ROW_BY_NAME,
    ),
    "table with history and grace": (
        ORDERS
        + 'prices = app.table("prices", key=str, value=int, name="price-list", history=timedelta(days=1))\n'
        + 'orders.join(prices, joined, step="price", grace=timedelta(0)).to("out")',
        NO_ROW_BY_NAME,
    ),
    "global table": (
        ORDERS
        + 'prices = app.global_table("prices", key=str, value=int)\n'
        + 'orders.join(prices, joined, key_fn=lambda key, value: key, step="price").to("out")',
        NO_GLOBAL_ROW,
    ),
    "foreign key": (
        'orders = app.table("orders", key=str, value=int)\n'
        + PRICES
        + 'orders.join(prices, joined, foreign_key=lambda order: f"p{order}", step="price").to_stream().to("out")',
        NO_FOREIGN_ROW,
    ),
    "tables": (
        'orders = app.table("orders", key=str, value=int)\n'
        + PRICES
        + 'orders.join(prices, joined, step="price").to_stream().to("out")',
        NO_OTHER_ROW,
    ),
    "streams": (
        ORDERS
        + 'prices = app.stream("prices", key=str, value=int)\n'
        + f'orders.join(prices, joined, {WINDOWS}, step="price").to("out")',
        NO_RECORD,
    ),
    "streams, left": (
        ORDERS
        + 'prices = app.stream("prices", key=str, value=int)\n'
        + f'orders.left_join(prices, joined, {WINDOWS}, step="price").to("out")',
        NO_RECORD,
    ),
}

#: Each program is a module of its own, because a module is imported once.
NUMBERS = count()

Run = Callable[..., Outcome]


@pytest.fixture
def run(folder, pystreams: Command) -> Run:
    """Runs a join of 12 orders with these keys of prices."""
    pystreams("topics", "create", "orders", "prices", "out", "--partitions", "2")

    def run(join: str, prices: list[str], *options: str, orders: int = 12) -> Outcome:
        name = f"joins_{next(NUMBERS)}"
        (folder / f"{name}.py").write_text(PROGRAM.format(join=join), encoding="utf-8")
        for topic, keys in (("prices", prices), ("orders", [f"order-{n}" for n in range(orders)])):
            lines = "".join(f"{key}={n}\n" for n, key in enumerate(keys))
            pystreams("produce", topic, "-k", "=", "--value-type", "int", stdin=lines)
        return pystreams("run", name, "--until-caught-up", *options)

    return run


OTHER_KEYS = [f"price-{n}" for n in range(12)]


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_the_last_line_says_that_no_record_found_a_row(run: Run, workers: tuple[str, ...]):
    ran = run(JOINS["table"][0], OTHER_KEYS, *workers)
    assert ran.code == 0
    told = rf"; join price in joined \(.*joins_\d+\.py:5\): {NO_ROW}\."
    assert re.search(told + "$", ran.err.splitlines()[-1])


@pytest.mark.parametrize("join,told", JOINS.values(), ids=JOINS)
def test_every_kind_of_join_is_reported(run: Run, join: str, told: str):
    last = run(join, OTHER_KEYS, "--quiet").err.splitlines()[-1]
    assert "; join price" in last
    assert last.endswith(f": {told}.")


@pytest.mark.parametrize("join", [join for join, _ in JOINS.values()], ids=JOINS)
def test_one_record_that_finds_something_is_enough(run: Run, join: str):
    one_of_orders = "p3" if "foreign_key" in join else "order-3"
    ran = run(join, [*OTHER_KEYS, one_of_orders])
    assert ran.code == 0
    assert "found" not in ran.err


def test_an_empty_table_is_reported(run: Run):
    assert NO_ROW in run(JOINS["table"][0], []).err.splitlines()[-1]


def test_a_few_records_that_find_nothing_are_not_reported(run: Run):
    assert "found" not in run(JOINS["table"][0], OTHER_KEYS, orders=9).err


def test_the_log_says_it_once(run: Run):
    logged = [line for line in run(JOINS["table"][0], OTHER_KEYS).err.splitlines() if " WARNING " in line]
    (line,) = [line for line in logged if "left_out" in line]
    assert line.endswith(f": {NO_ROW}")


def test_for_programs_the_join_is_an_object(run: Run):
    last = json.loads(run(JOINS["table"][0], OTHER_KEYS, "--log-format", "json").err.splitlines()[-1])
    assert last["level"] == "WARNING"
    (join,) = last["joins_in_vain"]
    assert (join["step"], join["partner"], join["records"]) == ("price", "a row in table prices", 12)
