"""Repartition topics on Kafka: what is processed and committed is deleted from them, and nothing else."""

from __future__ import annotations

import logging

import pytest

from pystreams.app import App
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually

REPARTITION = "purging-by-word-repartition"


def counting(cluster: Cluster) -> App:
    app = cluster.app("purging", repartition_purge_interval_ms=0)
    words = app.stream("in", value=str).group_by(lambda word: word, repartition="by-word")
    words.count(name="counts").to_stream().to("out")
    return app


def write(cluster: Cluster, records: int) -> None:
    cluster.write("in", [(None, "ab"[i % 2], i + 1) for i in range(records)], value=str)


def test_never_more_than_what_is_committed_is_deleted_and_never_from_other_topics(cluster: Cluster):
    cluster.create("in", "out", partitions=2)
    streams = cluster.start(counting(cluster))
    eventually(lambda: REPARTITION in cluster.admin.describe_topics(), "the topic")
    partitions = cluster.partitions(REPARTITION)
    purges = 0
    for _ in range(5):
        write(cluster, 4_000)
        before = cluster.admin.beginning_offsets(partitions)
        while (beginnings := cluster.admin.beginning_offsets(partitions)) == before:
            pass
        committed = cluster.committed("purging")
        assert all(beginning <= committed[p].offset for p, beginning in beginnings.items() if beginning)
        purges += 1
    caught_up(streams)
    assert purges == 5
    assert cluster.table("out") == {"a": 10_000, "b": 10_000}
    for topic in ("in", "out", "purging-counts-changelog"):
        assert set(cluster.admin.beginning_offsets(cluster.partitions(topic)).values()) == {0}


def test_a_refusal_is_reported_once_and_disturbs_nothing(cluster: Cluster, caplog: pytest.LogCaptureFixture):
    cluster.create("in", "out")
    with caplog.at_level(logging.WARNING, "pystreams.runtime.tasks.purge"):
        streams = cluster.start(counting(cluster))
        write(cluster, 10)
        (partition,) = cluster.partitions(REPARTITION)
        eventually(lambda: cluster.admin.beginning_offsets([partition])[partition] == 10, "the first purge")
        # Kafka deletes no records of a compacted topic.
        cluster.admin.alter_topic_config(REPARTITION, {"cleanup.policy": "compact"})
        for round in range(5):
            write(cluster, 10)
            eventually(
                lambda r=round: cluster.committed("purging")[partition].offset >= 20 + 10 * r, "a commit"
            )
        told = [
            record.getMessage() for record in caplog.records if "repartition topics" in record.getMessage()
        ]
        assert len(told) == 1
        assert REPARTITION in told[0]
        assert "POLICY_VIOLATION" in told[0]
        cluster.admin.alter_topic_config(REPARTITION, {"cleanup.policy": "delete"})
        write(cluster, 10)
        eventually(lambda: cluster.admin.beginning_offsets([partition])[partition] == 70, "it is mended")
    caught_up(streams)
    assert cluster.table("out") == {"a": 35, "b": 35}
