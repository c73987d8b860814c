"""Whoever has created a topic may write to it at once: all its partitions have leaders that answer.

Kafka shows a new partition before its leader takes records. A producer whose first request is refused then, and whose
second is taken, loses the first, idempotent or not (KAFKA-15591)."""

from __future__ import annotations

from confluent_kafka import TopicPartition as Location
from confluent_kafka.admin import OffsetSpec

from pystreams.broker.port import TopicSpec
from tests.kafka.support import Cluster

PARTITIONS = 100


def test_every_partition_of_a_created_topic_has_a_leader_that_answers(cluster: Cluster):
    cluster.admin.create_topics([TopicSpec("new", PARTITIONS)])
    asked = {Location("new", partition): OffsetSpec.latest() for partition in range(PARTITIONS)}
    answers = cluster.broker._client.list_offsets(asked, request_timeout=10)
    assert [answer.result().offset for answer in answers.values()] == [0] * PARTITIONS
