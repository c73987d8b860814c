"""A user function that hangs longer than the poll interval: its member leaves, others take over, it joins again, and
the results are those of a run without it.

What such a thread does when it wakes up must not reach the log: its successor has gone on, and an old value behind a
newer one would be the last word of outputs and changelog.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable

import pytest

from pystreams.app import App
from pystreams.partitioning import partition_for_key
from pystreams.runtime.streams import Streams
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually, running

pytestmark = pytest.mark.slow

MAX_POLL_INTERVAL_MS = 2_000
PARTITIONS = 4
KEYS = [f"k{number}" for number in range(20)]
HANGS_AT, RECORDS = 777, 3_000


#: Records after it are slow, too. Those that wait behind it take longer than records stay with the producer.
SLOW = range(HANGS_AT + 1, HANGS_AT + 400)
SLOW_S = 0.005


class Hang:
    """A function that hangs at one record, once, until it is released, and is slow for a while after that."""

    def __init__(self) -> None:
        self.hangs = threading.Event()
        self.released = threading.Event()
        #: What somebody works at after others have done it.
        self.late: list[int] = []

    def __call__(self, value: int) -> int:
        if self.released.is_set() and value < RECORDS:
            self.late.append(value)
        if value == HANGS_AT and not self.hangs.is_set():
            self.hangs.set()
            assert self.released.wait(60)
        if value in SLOW:
            time.sleep(SLOW_S)  # slow by itself: that is what this is about
        return value


def counting(cluster: Cluster, process: str, hang: Hang, cache_bytes: int) -> App:
    app = cluster.app("hanging", state_dir=cluster.path / process, statestore_cache_max_bytes=cache_bytes)
    counted = app.stream("in", key=str, value=int).map_values(hang).group_by_key().count(name="counts")
    counted.to_stream().to("out")
    return app


def partition_of(value: int) -> int:
    return partition_for_key(KEYS[value % len(KEYS)].encode(), PARTITIONS)


def tasks_of(streams: Streams) -> int:
    return sum(len(thread.tasks) for thread in streams.metadata_for_local_threads())


@pytest.mark.parametrize("cache_bytes", [0, 10 << 20], ids=["without a cache", "with a cache"])
def test_others_take_over_from_a_function_that_hangs_and_the_counts_are_right(
    cluster: Cluster, cache_bytes: int
) -> None:
    cluster.create("in", "out", partitions=PARTITIONS)
    broker = cluster.broker_with(max_poll_interval_ms=MAX_POLL_INTERVAL_MS, session_timeout_ms=30_000)
    hang, truth = Hang(), Counter[str]()
    clients = []
    for process in ("one", "two"):
        streams = Streams(counting(cluster, process, hang, cache_bytes), broker=broker)
        cluster._stack.callback(streams.close, 60_000)
        streams.start()
        clients.append(streams)
    for streams in clients:
        running(streams)
    eventually(lambda: [tasks_of(streams) for streams in clients] == [2, 2], "two tasks each")

    def write(values: Iterable[int]) -> None:
        records = [(KEYS[value % len(KEYS)], value, value + 1) for value in values]
        cluster.write("in", records)
        truth.update(key for key, _, _ in records)

    # Committed, so that nothing has to be done again: what comes out twice would come from the one that hung.
    write(range(HANGS_AT))
    eventually(lambda: cluster.all_committed("hanging", "in"), "all is committed")
    # Many records wait behind the one that hangs, which is the first of its partition. Its thread's other task gets
    # its records when the thread hangs already: what it had done before would rightly be done again.
    behind = [value for value in range(HANGS_AT, RECORDS) if partition_of(value) == partition_of(HANGS_AT)]
    write(behind)
    assert hang.hangs.wait(30)
    write(sorted(set(range(HANGS_AT, RECORDS)) - set(behind)))
    eventually(lambda: PARTITIONS in map(tasks_of, clients), "one client has all tasks")
    eventually(lambda: cluster.all_committed("hanging", "in"), "all is processed by the other one")
    assert cluster.table("out") == truth
    hang.released.set()
    eventually(lambda: [tasks_of(streams) for streams in clients] == [2, 2], "it has joined again")
    for streams in clients:
        caught_up(streams)
    assert hang.late == []
    # Nothing more has come in: the last word is that of the one that took over.
    assert cluster.table("out") == truth
    assert cluster.table("hanging-counts-changelog") == truth
    write(range(RECORDS, RECORDS + 100))
    for streams in clients:
        eventually(streams.caught_up, "caught up")
    assert cluster.table("out") == truth
    found = {key: item.value for streams in clients for key, item in streams.store("counts").all()}
    assert found == truth
    assert [streams.metrics.total("failed-stream-threads") for streams in clients] == [0, 0]
