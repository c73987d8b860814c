"""T9: whatever the cache's size and the commit interval, the stores and the last value of each key end the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pystreams import App, SlidingWindows
from pystreams.runtime.streams import Streams
from tests.live.support import Log

CASES = [(0, 10), (0, 60_000), (64, 10), (64, 60_000), (300, 50), (10 << 20, 10), (10 << 20, 60_000)]


def caught_up_at_once(log: Log, app: App) -> Streams:
    """A client that has processed everything, without waiting for its commit interval."""
    streams = log.start(app)
    while not streams.caught_up():
        assert streams.failure is None
        streams.request_commit()
    return streams


def results(log: Log, name: str, cache_bytes: int, interval_ms: int) -> tuple[object, ...]:
    log.create(f"{name}-out", f"{name}-changed", partitions=2)
    app = log.app(name, statestore_cache_max_bytes=cache_bytes, commit_interval_ms=interval_ms)
    table = app.stream("in", key=str, value=int).group_by_key().reduce(lambda one, two: one + two, name="sum")
    table.to_stream().to(f"{name}-out")
    by_digit = table.group_by(lambda key, value: (key[-1], value), key=str, value=int)
    again = by_digit.aggregate(
        lambda: 0,
        lambda total, value: total + value,
        lambda total, value: total - value,
        name="again",
        value=int,
    )
    again.to_stream().to(f"{name}-changed")
    streams = caught_up_at_once(log, app)
    stores = (
        sorted((key, item.value) for key, item in streams.store("sum").all()),
        sorted((key, item.value) for key, item in streams.store("again").all()),
    )
    streams.close()
    return (*stores, log.table(f"{name}-out"), log.table(f"{name}-changed"))


@pytest.mark.parametrize("seed", range(2))
def test_cache_size_and_commit_interval_do_not_change_where_it_ends(log: Log, seed: int) -> None:
    random_ = random.Random(seed)
    log.create("in", partitions=2)
    log.write("in", [(f"k{random_.randrange(30)}", random_.randrange(100), i) for i in range(1_500)])
    outcomes = [results(log, f"c{i}", *case) for i, case in enumerate(CASES)]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert len(outcomes[0][0]) == 30


@pytest.mark.parametrize("store_format", ["DEFAULT", "HEADERS"])
def test_sliding_windows_lose_nothing_that_leaves_a_full_cache_while_they_are_read(
    log: Log, store_format: str
) -> None:
    """A record of one key changes some windows, and may thereby push out those that it has not come to yet."""
    random_ = random.Random(4)
    log.create("in")
    log.write("in", [(f"k{random_.randrange(4)}", 1, 10 * i) for i in range(300)])
    ends = []
    for number, cache_bytes in enumerate((0, 500, 1_000, 2_000, 10 << 20)):
        log.create(f"out-{number}")
        settings: dict[str, Any] = {"statestore_cache_max_bytes": cache_bytes, "commit_interval_ms": 60_000}
        settings |= {"dsl_store_format": store_format}
        app = log.app(f"sliding-{number}", window_changelog_retention_ms=-1, **settings)
        grouped = app.stream("in", key=str, value=int).group_by_key()
        counts = grouped.windowed_by(SlidingWindows.of(300)).count()
        counts.to_stream(lambda window, _: str(window), key=str).to(f"out-{number}")
        caught_up_at_once(log, app).close()
        ends.append(log.table(f"out-{number}"))
    assert all(end == ends[0] for end in ends)
