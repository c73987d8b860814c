"""T1, T2, T10: what the cache keeps back and when it lets go; who joins takes one task, and the others go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest

from pystreams.app import App
from pystreams.clock import SystemClock
from pystreams.ids import TopicPartition
from pystreams.runtime.streams import Streams
from tests.kafka.support import Cluster
from tests.live.support import Read, eventually, processed, running

INPUT = [("A", 1, 1001), ("D", 5, 1002), ("A", 20, 1003), ("A", 300, 1004)]
#: Behind a table's group_by, as new and old value: A (1, 0), D (5, 0), A (21, 1), A (321, 21), and with a cache D (5),
#: A (321) without an old one. The first old value without a cache is the initializer's.
UNCACHED_CHANGES = [
    "100000000000000001000000000000000002",
    "100000000000000005000000000000000002",
    "100000000000000015000000000000000102",
    "100000000000000141000000000000001502",
]
CACHED_CHANGES = ["000000000000000501", "000000000000014101"]


def sums(cluster: Cluster, cache_bytes: int, *, regrouped: bool = False, **settings: object) -> App:
    """The sum of each key, and behind a repartition topic, if wanted, the pairs of new and old ones."""
    app = cluster.app("sums", statestore_cache_max_bytes=cache_bytes, commit_interval_ms=600_000, **settings)
    table = (
        app.stream("in", key=str, value=int)
        .group_by_key()
        .aggregate(lambda: 0, lambda total, value: total + value, name="sum", value=int)
    )
    table.to_stream().to("out")
    if not regrouped:
        return app
    by_total = table.group_by(lambda key, total: (key, total), key=str, value=int, repartition="by-key")
    by_total.reduce(lambda one, two: one + two, lambda one, two: one - two, name="again")
    return app


def changes(cluster: Cluster) -> list[str]:
    return [record.value.hex() for record in cluster.read("sums-by-key-repartition", value=bytes)]


def written(cluster: Cluster, *topics: str) -> int:
    """Records in the log, committed or not: there are no transactions here."""
    return sum(cluster.admin.end_offsets([p for topic in topics for p in cluster.partitions(topic)]).values())


def test_without_a_cache_every_change_is_in_the_log_before_any_commit(cluster: Cluster) -> None:
    cluster.create("in", "out")
    cluster.write("in", INPUT)
    every = [Read("A", 1, 1001), Read("D", 5, 1002), Read("A", 21, 1003), Read("A", 321, 1004)]
    streams = cluster.start(sums(cluster, 0, regrouped=True))
    processed(streams, 4)
    eventually(lambda: written(cluster, "out") == written(cluster, "sums-sum-changelog") == 4)
    assert (cluster.read("out"), cluster.read("sums-sum-changelog")) == (every, every)
    assert cluster.committed("sums") == {}
    streams.close()
    assert (cluster.read("out"), cluster.read("sums-sum-changelog")) == (every, every)
    assert changes(cluster) == UNCACHED_CHANGES


def test_a_cache_keeps_all_changes_back_until_the_close_and_a_restart_goes_on(cluster: Cluster) -> None:
    cluster.create("in", "out")
    cluster.write("in", INPUT)
    last = [Read("D", 5, 1002), Read("A", 321, 1004)]
    streams = cluster.start(sums(cluster, 10 << 20, regrouped=True))
    processed(streams, 4)
    assert streams.store("sum").get("A").value == 321
    assert written(cluster, "out", "sums-sum-changelog", "sums-by-key-repartition") == 0
    streams.close()
    # Nothing but these, so nothing was under way before the close either.
    assert (cluster.read("out"), cluster.read("sums-sum-changelog")) == (last, last)
    assert changes(cluster) == CACHED_CHANGES
    cluster.write("in", [("A", 79, 1005)])
    again = cluster.start(sums(cluster, 10 << 20, regrouped=True))
    processed(again, 1)
    assert again.store("sum").get("A").value == 400
    again.close()
    assert cluster.read("out")[2:] == cluster.read("sums-sum-changelog")[2:] == [Read("A", 400, 1005)]
    assert changes(cluster)[2:] == ["100000000000000190000000000000014102"]


@pytest.mark.parametrize(("threads", "cache_bytes"), [(1, 64), (2, 128)], ids=["one thread", "two threads"])
def test_an_eviction_is_in_the_log_before_any_commit(
    cluster: Cluster, threads: int, cache_bytes: int
) -> None:
    cluster.create("in", "out", partitions=threads)
    streams = cluster.start(sums(cluster, cache_bytes, num_stream_threads=threads))
    # Two tasks that share a thread's cache for a moment would evict other entries.
    eventually(
        lambda: [len(thread.tasks) for thread in streams.metadata_for_local_threads()] == [1] * threads,
        "a task in each thread",
    )
    for partition in range(threads):
        cluster.write("in", INPUT, partition=partition)
    processed(streams, 4 * threads)
    evicted, at_close = [Read("A", 1, 1001), Read("D", 5, 1002)], [Read("A", 321, 1004)]
    eventually(lambda: written(cluster, "out") == 2 * threads, "the evicted entries")
    # The sink's partition follows the key, the changelog's the task.
    assert sorted(cluster.read("out")) == sorted(evicted * threads)
    assert cluster.read("sums-sum-changelog") == evicted * threads
    assert cluster.committed("sums") == {}
    streams.close()
    assert cluster.read("sums-sum-changelog") == (evicted + at_close) * threads
    assert sorted(cluster.read("out")) == sorted((evicted + at_close) * threads)


def test_a_cache_with_room_for_both_keys_evicts_nothing(cluster: Cluster) -> None:
    cluster.create("in", "out")
    cluster.write("in", INPUT)
    streams = cluster.start(sums(cluster, 128))
    processed(streams, 4)
    streams.close()
    assert cluster.read("out") == [Read("D", 5, 1002), Read("A", 321, 1004)]


# Cooperative rebalancing

PARTITIONS = 3
GAP_MS_MAX = 1_000


class Feed:
    """A record for each partition every few milliseconds, from a thread of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._producer = cluster.broker.producer("feed", "feed")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.02):
            number += 1
            for partition in range(PARTITIONS):
                self._producer.send("in", partition, str(partition).encode(), b"", number, ())
        self._producer.commit({}, None)
        self._producer.close()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def feed(cluster: Cluster) -> Iterator[Feed]:
    cluster.create("in", partitions=PARTITIONS)
    # The broker writes down when it appended a record.
    cluster.create("out", partitions=PARTITIONS, config={"message.timestamp.type": "LogAppendTime"})
    feed = Feed(cluster)
    yield feed
    feed.stop()


def copying(cluster: Cluster, process: str) -> App:
    app = cluster.app("copying", state_dir=cluster.path / process)
    # Into the partition that it comes from: the output tells which task was at work when.
    app.stream("in", key=str, value=bytes).to("out", partitioner=lambda topic, key, value, count: int(key))
    return app


def tasks_of(streams: Streams) -> frozenset[int]:
    """Partitions whose tasks a client has."""
    tasks = (task for thread in streams.metadata_for_local_threads() for task in thread.tasks)
    return frozenset(task.task_id.partition for task in tasks)


def closed(streams: Streams) -> float:
    return streams.metrics.total("task-closed-total")


def gaps_ms(cluster: Cluster, partition: int, begin_ms: int, end_ms: int) -> list[int]:
    """Times between two records of the output, of those appended in a span of time."""
    times = [line.timestamp for line in cluster.lines(TopicPartition("out", partition)).values()]
    within = [begin_ms, *(time_ms for time_ms in times if begin_ms < time_ms < end_ms), end_ms]
    return [later - earlier for earlier, later in pairwise(within)]


def test_who_joins_takes_one_task_and_the_others_go_on_without_a_gap(cluster: Cluster, feed: Feed) -> None:
    old = [cluster.start(copying(cluster, name)) for name in ("one", "two")]
    eventually(lambda: sorted(len(tasks_of(client)) for client in old) == [1, 2], "two and one")
    before = [tasks_of(client) for client in old]
    closed_before = [closed(client) for client in old]
    eventually(lambda: all(len(cluster.lines(p)) > 10 for p in cluster.partitions("out")), "all at work")

    begin_ms = SystemClock().now_ms()
    third = cluster.start(copying(cluster, "three"))
    eventually(lambda: len(tasks_of(third)) == 1, "the third has one")
    moved = tasks_of(third)
    running(third)
    end_ms = SystemClock().now_ms() + GAP_MS_MAX // 2
    eventually(lambda: SystemClock().now_ms() > end_ms + GAP_MS_MAX // 2, "some time after both rounds")

    assert [tasks_of(client) for client in old] == [tasks - moved for tasks in before]
    revoked = [closed(client) - were for client, were in zip(old, closed_before, strict=True)]
    assert sorted(revoked) == [0, 1]
    stayed = set(range(PARTITIONS)) - moved
    longest = {partition: max(gaps_ms(cluster, partition, begin_ms, end_ms)) for partition in stayed}
    print(f"longest gap in the output of the tasks that stayed: {max(longest.values())} ms")
    assert max(longest.values()) <= GAP_MS_MAX, longest
