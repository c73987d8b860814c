"""On Kafka, too, the changelog of a versioned store is made anew: what live has left is gone, no version is missing."""

from __future__ import annotations

from typing import Any

from pystreams.backfill.handover import hand_over
from pystreams.backfill.result import BackfillResult
from pystreams.backfill.sources import KafkaSource
from pystreams.ids import TopicPartition
from tests.backfill.kit import Backfill, lines
from tests.backfill.live import append, create, raw, visible
from tests.backfill.programs import joined_versions
from tests.kafka.support import Cluster
from tests.live.support import run_to_the_end

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
