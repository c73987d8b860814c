"""On Kafka, too, the changelog of a versioned store is made anew: what live has left is gone, no version is missing,
however old it is, and however soon the broker compacts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import KafkaSource
from pystreams.broker.port import TopicSpec
from pystreams.ids import TopicPartition
from tests.backfill.kit import Backfill, lines
from tests.backfill.live import append, create, raw, visible
from tests.backfill.programs import joined_versions
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import eventually, run_to_the_end

LAG, DAY_MS = "min.compaction.lag.ms", 86_400_000
CHANGELOG = TopicPartition("versions-names-by-time-changelog", 0)
NAMES = [
    ("a", "one", 1_010),
    ("b", "two", 1_020),
    ("a", "three", 1_060),
    ("b", None, 1_065),
    ("a", "late", 1_030),
]
PAST = {"names": [lines(NAMES, value=str)], "amounts": [lines([("a", 1, 1_005)])]}
LATER = {"names": [lines([("a", "later", 1_500), ("d", "new", 1_510)], value=str)], "amounts": [[]]}
EARLY = [
    (b"a", b"one until 1030"),
    (b"a", b"late until 1060"),
    (b"a", b"three until -1"),
    (b"b", b"two until 1065"),
]


def program(cluster: Cluster) -> Any:
    return joined_versions(
        statestore_cache_max_bytes=0, commit_interval_ms=50, state_dir=cluster.path / "state"
    )


def computed(cluster: Cluster, staging: str, **given: Any) -> BackfillResult:
    source = KafkaSource(cluster.bootstrap_servers)
    return Backfill(program(cluster), source, cluster.path / staging, **given).run()


def shown(cluster: Cluster, result: BackfillResult) -> list[tuple[bytes, bytes | None]]:
    (spec,) = (one for one in result.loaded.built.stores if one.kind == "versioned")
    return [(entry.key, entry.value) for entry in visible(raw(cluster, CHANGELOG), spec)]


def test_what_live_has_left_is_replaced_and_live_goes_on(cluster: Cluster) -> None:
    create(cluster, PAST, ["sums"])
    append(cluster, PAST)
    append(cluster, LATER)
    run_to_the_end(cluster, program(cluster))
    ends = {TopicPartition("names", 0): len(NAMES), TopicPartition("amounts", 0): 1}
    result = computed(cluster, "cut", until=ends)
    assert (b"d", b"new until -1") in shown(cluster, result)
    done = hand_over(result, cluster.broker).stores["names-by-time"]
    assert (done.written, done.unchanged, done.deleted) == (5, 0, 0)
    assert shown(cluster, result) == EARLY
    run_to_the_end(cluster, program(cluster))
    assert (b"d", b"new until -1") in shown(cluster, result)


@pytest.fixture(scope="module")
def quick_cleaner(server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker that compacts what it may at once. (``server`` is asked for because it knows whether there is Kafka.)"""
    quick = KafkaServer(tmp_path_factory.mktemp("quick"), properties={"log.cleaner.backoff.ms": "50"})
    quick.start()
    yield quick
    quick.stop()


def wait_for_the_cleaner(cluster: Cluster) -> None:
    """Until it has compacted what may be compacted by now. It takes the dirtiest topic first: one that is clean in part
    comes after all those that have never been compacted."""
    partition = TopicPartition("sentinel", 0)
    # What is written last is never compacted: each transaction ends a segment.
    settings = {"cleanup.policy": "compact", "segment.ms": "1"}
    cluster.admin.create_topics([TopicSpec(partition.topic, 1, settings)])
    for count in (10, 100):
        with closing(cluster.broker.transactional_producer("test", "sentinel")) as producer:
            for _ in range(count):
                producer.send(*partition, b"k", b"of long ago", 1_000, ())
            producer.commit()
        eventually(lambda: len(raw(cluster, partition)) == 1)


def test_versions_of_long_ago_are_not_compacted_before_live_has_read_them(
    quick_cleaner: KafkaServer, tmp_path: Path
) -> None:
    with closing(Cluster(quick_cleaner.bootstrap_servers, tmp_path)) as cluster:
        create(cluster, PAST, ["sums"])
        run_to_the_end(cluster, program(cluster))
        append(cluster, PAST)
        result = computed(cluster, "cut")
        began_ms = time.time_ns() // 1_000_000
        hand_over(result, cluster.broker)
        wait_for_the_cleaner(cluster)
        assert shown(cluster, result) == EARLY
        lag_ms = int(cluster.admin.describe_topics([CHANGELOG.topic])[CHANGELOG.topic].config[LAG])
        # From then on the application has a day to begin, as any has.
        assert DAY_MS < lag_ms - (began_ms - NAMES[3][2]) < 2 * DAY_MS
