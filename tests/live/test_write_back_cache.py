"""T1: the record cache keeps updates back until the commit, which brings them out in the order of last update."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pystreams.app import App
from tests.live.support import Log, Read, caught_up, eventually, processed

INPUT = [("A", 1, 1001), ("D", 5, 1002), ("A", 20, 1003), ("A", 300, 1004)]


def sums(log: Log, cache_bytes: int) -> App:
    app = log.app("sums", statestore_cache_max_bytes=cache_bytes, commit_interval_ms=600_000)
    table = (
        app.stream("in", key=str, value=int)
        .group_by_key()
        .aggregate(lambda: 0, lambda total, value: total + value, name="sum", value=int)
    )
    table.to_stream().to("out")
    by_total = table.group_by(lambda key, total: (key, total), key=str, value=int, repartition="by-key")
    by_total.reduce(lambda one, two: one + two, lambda one, two: one - two, name="again")
    return app


@pytest.fixture
def sums_of(log: Log) -> Callable[[int], App]:
    log.create("in", "out")
    log.write("in", INPUT)
    return lambda cache_bytes: sums(log, cache_bytes)


def test_without_a_cache_every_update_goes_out_at_once(log: Log, sums_of: Callable[[int], App]) -> None:
    streams = log.start(sums_of(0))
    processed(streams, 4)
    streams.close()
    assert log.read("out") == [
        Read("A", 1, 1001),
        Read("D", 5, 1002),
        Read("A", 21, 1003),
        Read("A", 321, 1004),
    ]
    changes = [record.value.hex() for record in log.read("sums-by-key-repartition", value=bytes)]
    assert changes[-1] == "100000000000000141000000000000001502"


def test_a_cache_shows_nothing_before_the_commit_but_answers_queries(
    log: Log, sums_of: Callable[[int], App]
) -> None:
    streams = log.start(sums_of(10 << 20))
    processed(streams, 4)
    assert log.read("out") == []
    assert log.read("sums-sum-changelog") == []
    assert streams.store("sum").get("A").value == 321


def test_a_clean_close_brings_out_the_last_updates_in_order_and_a_restart_goes_on(
    log: Log, sums_of: Callable[[int], App]
) -> None:
    streams = log.start(sums_of(10 << 20))
    processed(streams, 4)
    streams.close()
    assert log.read("out") == [Read("D", 5, 1002), Read("A", 321, 1004)]
    assert log.read("sums-sum-changelog") == [Read("D", 5, 1002), Read("A", 321, 1004)]
    assert [r.value.hex() for r in log.read("sums-by-key-repartition", value=bytes)] == [
        "000000000000000501",
        "000000000000014101",
    ]
    log.write("in", [("A", 79, 1005)])
    again = log.start(sums_of(10 << 20))
    processed(again, 1)
    again.close()
    assert log.read("out")[2:] == [Read("A", 400, 1005)]


@pytest.mark.both_logs
def test_a_requested_commit_does_not_wait_for_the_interval(log: Log, sums_of: Callable[[int], App]) -> None:
    streams = log.start(sums_of(10 << 20))
    processed(streams, 4)
    streams.request_commit()
    eventually(lambda: len(log.read("out")) == 2, "the commit")
    streams.request_commit()
    caught_up(streams)
