"""An application of Java's is stopped in full load, goes on here, and goes back: nothing is lost or twice.

With caches off every update is written: each word's counts must read 1, 2, ... n, over all hand-overs.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from functools import partial

import pytest

from apps import wordcount
from pystreams import Streams
from pystreams.take_over.last_run import topology_topic
from tests.interop.java_side import JavaSide
from tests.kafka.support import Cluster
from tests.live.support import eventually, running

WORDS = ["to", "be", "or", "not", "that", "is", "the", "question", "whether", "tis", "nobler", "in", "mind"]
LINES = 24_000
PARTITIONS = 3
REPARTITION = "wordcount-counts-repartition"


def write_lines(cluster: Cluster) -> Counter[str]:
    choose = random.Random(1)
    lines = [" ".join(choose.choices(WORDS, k=4)) for _ in range(LINES)]
    cluster.write("lines", [(str(i), line, i + 1) for i, line in enumerate(lines)], value=str)
    return Counter(word for line in lines for word in line.split())


def counts_in_order(cluster: Cluster) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for record in cluster.read("word-counts"):
        found[record.key].append(record.value)
    return found


def done(cluster: Cluster, topic: str) -> int:
    """Records of a topic's partitions that are processed and committed."""
    return sum(at.offset for p, at in cluster.committed("wordcount").items() if p.topic == topic)


class Shifts:
    """Java's and our turns at the same application; each does a part and stops in the middle."""

    def __init__(self, cluster: Cluster, java: JavaSide) -> None:
        self._cluster = cluster
        self._java = java
        self.at_hand_overs: list[int] = []

    def java(self, **settings: str) -> None:
        before = done(self._cluster, REPARTITION)
        self._java.start("words", "wordcount", self._cluster.path / "java", **settings)
        self._wait(before, until_done=False)
        self._java.stop("wordcount")
        self._note()

    def ours(self, *, until_done: bool = False) -> None:
        before = done(self._cluster, REPARTITION)
        config = wordcount.app.config.override(
            {
                "state_dir": self._cluster.path / "ours",
                "poll_ms": 10,
                "commit_interval_ms": 100,
                "statestore_cache_max_bytes": 0,
                "buffered_records_per_partition": 100,
            }
        )
        streams = Streams(wordcount.app, config, self._cluster.broker)
        try:
            streams.start()
            running(streams)
            self._wait(before, until_done)
        finally:
            assert streams.close(60_000)
        self._note()

    def _wait(self, before: int, until_done: bool) -> None:
        if until_done:
            everything = partial(self._cluster.all_committed, "wordcount", "lines", REPARTITION)
            eventually(everything, "everything is done")
        else:
            eventually(lambda: done(self._cluster, REPARTITION) > before, "a commit")

    def _note(self) -> None:
        self.at_hand_overs.append(done(self._cluster, REPARTITION))
        assert self._cluster.admin.group_members("wordcount") == []


@pytest.mark.parametrize(
    "settings",
    [{"processing.guarantee": "exactly_once_v2"}, {"group.protocol": "streams"}],
    ids=["exactly once", "in a group of the new protocol"],
)
def test_a_count_goes_from_java_to_us_and_back_and_every_record_is_counted_once(
    cluster: Cluster, java: JavaSide, settings: dict[str, str]
):
    cluster.create("lines", "word-counts", partitions=PARTITIONS)
    expected = write_lines(cluster)
    shifts = Shifts(cluster, java)
    shifts.java(**settings)
    names = set(cluster.admin.describe_topics())
    shifts.ours()
    shifts.java(**settings)  # with the state that it left: what we did comes from the changelog
    shifts.ours(until_done=True)
    print(f"words counted at each hand-over: {shifts.at_hand_overs} of {expected.total()}")
    assert set(cluster.admin.describe_topics()) == {*names, topology_topic("wordcount")}
    assert all(a < b for a, b in zip(shifts.at_hand_overs, shifts.at_hand_overs[1:], strict=False))
    assert counts_in_order(cluster) == {word: list(range(1, n + 1)) for word, n in expected.items()}
    assert cluster.table("wordcount-counts-changelog") == expected


def test_a_consumer_of_javas_reads_word_counts(cluster: Cluster, java: JavaSide):
    cluster.create("lines", "word-counts", partitions=PARTITIONS)
    cluster.write("lines", [(None, "to be or not to be", 1_000)], value=str)
    Shifts(cluster, java).ours()
    read = java.ask("read", topic="word-counts", key="string", value="long")
    assert {(key, value) for _, key, value, _ in read} >= {("to", 2), ("be", 2), ("or", 1), ("not", 1)}
    assert {at for *_, at in read} == {1_000}
