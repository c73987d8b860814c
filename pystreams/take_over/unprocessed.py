"""Counts the records of an application's internal topics that it has not processed yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from pystreams.broker.port import Admin
from pystreams.ids import TopicPartition


def unprocessed(admin: Admin, application_id: str, topics: Collection[str]) -> Counter[str]:
    """For each topic the number of records between the application's committed offsets and the ends of its partitions;
    0 for a topic that does not exist. Raises ``BrokerError``."""
    counts = admin.partition_counts()
    partitions = [
        TopicPartition(topic, partition) for topic in topics for partition in range(counts.get(topic, 0))
    ]
    beginnings, ends = admin.beginning_offsets(partitions), admin.end_offsets(partitions)
    committed = admin.group_offsets(application_id)
    waiting: Counter[str] = Counter()
    for partition in partitions:
        reached = committed[partition].offset if partition in committed else 0
        waiting[partition.topic] += max(0, ends[partition] - max(beginnings[partition], reached))
    return waiting
