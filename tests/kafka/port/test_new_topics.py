"""Whoever has created a topic may write to it at once: all its partitions have leaders that answer.

Kafka shows a new partition before its leader takes records. A producer whose first request is refused then, and whose
second is taken, loses the first, idempotent or not (KAFKA-15591)."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition as Location
from confluent_kafka.admin import OffsetSpec

from pystreams.broker.kafka import admin
from pystreams.broker.kafka.admin import KafkaAdmin
from pystreams.broker.port import TopicSpec
from pystreams.errors import TopicError
from tests.kafka.support import Cluster

#: With so many, the last leaders always take longer than the topic needs to be shown.
PARTITIONS = 100


def test_every_partition_of_a_created_topic_has_a_leader_that_answers(cluster: Cluster):
    cluster.admin.create_topics([TopicSpec("new", PARTITIONS)])
    asked = {Location("new", partition): OffsetSpec.latest() for partition in range(PARTITIONS)}
    answers = cluster.broker._client.list_offsets(asked, request_timeout=10)
    assert [answer.result().offset for answer in answers.values()] == [0] * PARTITIONS


def test_a_leader_that_does_not_know_the_topic_yet_is_asked_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    real, refused = KafkaAdmin.end_offsets, [TopicError("Offsets cannot be listed")] * 2

    def end_offsets(*arguments, **named):
        if refused:
            raise refused.pop()
        return real(*arguments, **named)

    monkeypatch.setattr(KafkaAdmin, "end_offsets", end_offsets)
    cluster.admin.create_topics([TopicSpec("new", 1)])
    assert not refused
    # It may have been another process that has created the topic, a moment before.
    refused.append(TopicError("Offsets cannot be listed"))
    cluster.admin.create_topics([TopicSpec("new", 1)])
    assert not refused


def test_more_partitions_than_a_controller_creates_at_once_are_asked_for_in_several_requests(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    """It refuses requests that need more than 10,000 records: an application with 50 stores in 200 partitions."""
    monkeypatch.setattr(admin, "_NEW_RECORDS_MAX", 6)
    client = cluster.admin._client
    requests: list[list[str]] = []
    real = client.create_topics

    def create_topics(topics, **named):
        requests.append([topic.topic for topic in topics])
        return real(topics, **named)

    monkeypatch.setattr(client, "create_topics", create_topics)
    wanted = {"a": 3, "b": 1, "c": 2, "d": 9, "e": 1, "f": 1, "g": 2}
    settings = {"f": {"cleanup.policy": "compact", "segment.ms": "60000"}}
    cluster.admin.create_topics([TopicSpec(*spec, settings.get(spec[0], {})) for spec in wanted.items()])
    assert requests == [["a", "b"], ["c"], ["d"], ["e", "f"], ["g"]]
    counts = cluster.admin.partition_counts()
    assert {name: counts[name] for name in wanted} == wanted
