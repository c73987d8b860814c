"""Counts the records of an application's internal topics that it has not processed yet."""

from __future__ import annotations

from pystreams.broker.port import Admin
from pystreams.ids import TopicPartition


def unprocessed(admin: Admin, application_id: str, topic: str) -> int:
    """How many records of ``topic`` are behind the committed offsets of the application; 0 if there is no such topic.
    Raises ``BrokerError``."""
    count = admin.partition_counts().get(topic, 0)
    partitions = [TopicPartition(topic, partition) for partition in range(count)]
    beginnings, ends = admin.beginning_offsets(partitions), admin.end_offsets(partitions)
    committed = admin.group_offsets(application_id)
    reached = {p: max(beginnings[p], committed[p].offset if p in committed else 0) for p in partitions}
    return sum(max(0, ends[p] - reached[p]) for p in partitions)
