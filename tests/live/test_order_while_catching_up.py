"""A thread that works off what its topics hold processes its partitions side by side in the order of time: behind a
repartition no record is late that was not late in its own partition."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, count
from threading import Event

import pytest

from pystreams import TimeWindows
from pystreams.app import App
from pystreams.runtime.tasks.time_order import TURN_RECORDS
from tests.live.support import TIMEOUT_S, Log, caught_up, run_to_the_end

pytestmark = pytest.mark.both_logs

PARTITIONS = 4
ORDERS = 24_000
#: On average; the partitions hold unequal shares of the orders.
INTERVAL_MS = 660
OUT_OF_ORDER_MS = 20_000
GRACE_MS = 60_000
WINDOW_MS = 300_000
START_MS = 1_700_000_100_000
PRODUCTS = {f"product-{number}": f"kind-{number % 7}" for number in range(40)}

#: (kind, start of the window) -> sum
Sums = dict[tuple[str, int], int]


@pytest.fixture
def seed() -> int:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return seed


def written(log: Log, seed: int) -> Sums:
    """Write 4.4 hours of orders, nearly a third of them out of order. Returns what a plain computation finds."""
    chance = random.Random(seed)
    partition_of = {product: place % PARTITIONS for place, product in enumerate(PRODUCTS)}
    orders: list[list[tuple[str, int, int]]] = [[] for _ in range(PARTITIONS)]
    sums: Counter[tuple[str, int]] = Counter()
    # The first partition has most of the orders, so the others must wait for it.
    products = [p for p, partition in partition_of.items() for _ in range(8 if partition == 0 else 1)]
    for number in range(ORDERS):
        time = START_MS + number * INTERVAL_MS
        if chance.random() < 0.3:
            time -= chance.randrange(OUT_OF_ORDER_MS)
        product, amount = chance.choice(products), chance.randrange(100)
        orders[partition_of[product]].append((product, 100 * time + amount, time))
        sums[PRODUCTS[product], time // WINDOW_MS * WINDOW_MS] += amount
    log.create("orders", "products", "sums", partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        rows = [(p, kind, 1_000) for p, kind in PRODUCTS.items() if partition_of[p] == partition]
        log.write("products", rows, value=str, partition=partition)
        log.write("orders", orders[partition], partition=partition)
    return dict(sums)


def summing(log: Log, look: Callable[[int], object] = bool) -> App:
    """``look`` is called with the time of each order that is processed, which its value holds with the amount."""
    app = log.app("summing", window_changelog_retention_ms=-1, num_stream_threads=1)
    kinds = app.table("products", key=str, value=str)
    orders = app.stream("orders", key=str, value=int).peek(lambda value: look(value // 100))
    kind_and_amount = orders.join(kinds, lambda value, kind: f"{kind} {value % 100}")
    by_kind = kind_and_amount.group_by(lambda text: text.split()[0], key=str, value=str)
    sums = by_kind.windowed_by(TimeWindows.tumbling(WINDOW_MS, grace=GRACE_MS)).aggregate(
        int, lambda total, text: total + int(text.split()[1]), value=int
    )
    sums.to_stream(lambda window, _: f"{window.key} {window.start}", key=str).to("sums", key=str, value=int)
    return app


def read_sums(log: Log) -> Sums:
    words = ((key.split(), value) for key, value in log.table("sums").items())
    return {(kind, int(start)): value for (kind, start), value in words}


def test_every_window_is_whole_when_one_thread_has_caught_up(log: Log, seed: int) -> None:
    expected = written(log, seed)
    times: list[int] = []
    streams = log.start(summing(log, times.append))
    caught_up(streams)
    assert streams.close()
    assert read_sums(log) == expected
    assert streams.metrics.total("dropped-records-total") == 0
    # Tasks are a few turns apart.
    in_order = sorted(times)
    ahead = max(
        bisect_left(in_order, latest) - bisect_left(in_order, time)
        for latest, time in zip(accumulate(times, max), times, strict=True)
    )
    assert ahead <= 3 * PARTITIONS * TURN_RECORDS


def test_a_restart_on_the_way_makes_no_record_late(log: Log, seed: int) -> None:
    expected = written(log, seed)
    seen, on_the_way, goes_on = count(1), Event(), Event()

    def look(_time: int) -> None:
        if next(seen) == ORDERS // 3:
            on_the_way.set()
            assert goes_on.wait(TIMEOUT_S)

    streams = log.start(summing(log, look))
    assert on_the_way.wait(TIMEOUT_S)
    assert not streams.close(0)
    goes_on.set()
    assert streams.close(1000 * TIMEOUT_S)
    assert next(seen) < ORDERS
    run_to_the_end(log, summing(log))
    assert read_sums(log) == expected
