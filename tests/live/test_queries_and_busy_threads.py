"""A query costs the stream threads one read at most: none before the demanded position is reached, few commits, and
nothing for a caller who waits no more. A key is read by the thread that has it, whatever the others do."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from statistics import median
from typing import Any

import pytest

from pystreams.app import App
from pystreams.errors import StateError
from pystreams.metrics.names import COMMITTED
from pystreams.partitioning import partition_for_key
from pystreams.runtime.queries.answers import Freshness
from pystreams.runtime.queries.position import Position
from pystreams.runtime.streams import Streams
from tests.live.support import Log, caught_up, eventually

PARTITIONS = 2
#: One key of each partition.
KEYS = [next(k for k in map(str, range(20)) if partition_for_key(k.encode(), 2) == p) for p in (0, 1)]
STUCK = -1


class Stuck:
    """An application whose function stays at a record as long as it should."""

    def __init__(self) -> None:
        self.arrived, self.free = threading.Event(), threading.Event()

    def app(self, log: Log, **settings: Any) -> App:
        app = log.app("queried", **settings)
        app.stream("in", key=str, value=int).map_values(self._step, value=int).to_table(name="latest")
        return app

    def _step(self, value: int) -> int:
        if value == STUCK:
            self.arrived.set()
            assert self.free.wait(300)
        return value


@contextmanager
def stuck(log: Log, **settings: Any) -> Iterator[Streams]:
    """An application of which the thread with the first key is stuck within the block."""
    log.create("in", partitions=PARTITIONS)
    log.write("in", [(key, 1, 1_000) for key in KEYS])
    program = Stuck()
    streams = log.start(program.app(log, **settings))
    caught_up(streams)
    try:
        log.write("in", [(KEYS[0], STUCK, 1_000)])
        assert program.arrived.wait(120)
        yield streams
    finally:
        program.free.set()


@pytest.mark.parametrize("freshness", ["latest", "committed"])
def test_nothing_is_read_before_the_position_is_reached(log: Log, freshness: Freshness) -> None:
    log.create("in")
    streams = log.start(Stuck().app(log))
    log.write("in", [(KEYS[0], 1, 1_000)])
    caught_up(streams)
    beyond = Position.containing([("in", 0, 1_000)])
    reads: list[Any] = []
    store = streams.store("latest", freshness=freshness, at_least=beyond, timeout=1_000)
    with pytest.raises(StateError, match="has not reached the position in time"):
        store.query(reads.append)
    assert reads == []


def test_who_waits_for_commits_gets_a_few_of_them(log: Log) -> None:
    log.create("in")
    streams = log.start(Stuck().app(log, commit_interval_ms=3_600_000))
    caught_up(streams)
    before, began = commits(streams), time.monotonic()
    beyond = Position.containing([("in", 0, 1_000)])
    with pytest.raises(StateError, match="has not reached the position in time"):
        streams.store("latest", freshness="committed", at_least=beyond, timeout=3_000).get(KEYS[0])
    # One every 200 ms at most, and one that was due.
    assert 1 <= commits(streams) - before <= (time.monotonic() - began) / 0.2 + 1


def commits(streams: Streams) -> float:
    return sum(sample.value for sample in streams.metrics.snapshot() if sample.name == COMMITTED)


def test_a_query_that_nobody_waits_for_any_more_is_not_carried_out(log: Log) -> None:
    reads: list[Any] = []
    with stuck(log) as streams:
        store = streams.store("latest", timeout=50)
        for _ in range(3):
            with pytest.raises(StateError, match="could not be read in time"):
                store.query(reads.append)
    # An answer to a later query shows that the earlier ones were passed over.
    assert streams.store("latest").get(KEYS[1]).value == 1
    assert reads == []


def test_an_error_of_the_read_itself_is_not_taken_for_a_busy_thread(log: Log) -> None:
    log.create("in")
    streams = log.start(Stuck().app(log))
    caught_up(streams)

    def late(_: object) -> None:
        raise TimeoutError("the read's own")

    with pytest.raises(TimeoutError, match="the read's own"):
        streams.store("latest").query(late)


def test_a_key_does_not_wait_for_threads_that_do_not_have_it(log: Log) -> None:
    with stuck(log, num_stream_threads=2) as streams:
        store = streams.store("latest", partitioner=partition_for_key)
        eventually(lambda: store.get(KEYS[1]).value == 1)
        with pytest.raises(StateError, match="could not be read in time"):
            streams.store("latest", partitioner=partition_for_key, timeout=50).get(KEYS[0])


def test_a_thread_with_much_to_do_answers_between_two_steps_of_its_work(log: Log) -> None:
    """A step is as long as ten milliseconds while somebody asks, and a round has many of them."""
    processed = count()
    log.create("in")
    log.write("in", [("a", n, 1_000 + n) for n in range(3_000)])

    def slow(value: int) -> int:
        time.sleep(0.002)
        next(processed)
        return value

    app = log.app("queried")
    app.stream("in", key=str, value=int).map_values(slow, value=int).to_table(name="latest")
    streams = log.start(app)
    eventually(lambda: next(processed) > 100)
    store = streams.store("latest")
    at = [store.query(lambda _: next(processed))[0] for _ in range(30)]
    between = [later - earlier for earlier, later in pairwise(at)]
    assert median(between) <= 25
