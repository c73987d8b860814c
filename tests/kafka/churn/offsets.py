"""Every commit of a group in the order in which it was written, out of Kafka's own topic of offsets.

Source: OffsetCommitKey.json and OffsetCommitValue.json of Kafka's group coordinator.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Location

from pystreams.ids import TopicPartition

OFFSETS_TOPIC = "__consumer_offsets"
#: Versions of a key that stand for a committed offset; others are about groups and their members.
_OFFSET_KEYS = (0, 1)


class Commit(NamedTuple):
    """An offset that was committed; None: it was deleted."""

    partition: TopicPartition
    offset: int | None


def commits(bootstrap_servers: str, group: str) -> list[Commit]:
    """All commits of a group that are still there; its own partition's order is the order of writing."""
    return [
        commit
        for key, value in _records(bootstrap_servers)
        if (commit := _decode(key, value, group)) is not None
    ]


def steps_backward(history: list[Commit]) -> list[tuple[TopicPartition, int, int]]:
    """Commits of less than what was committed before: partition, before, after."""
    latest: dict[TopicPartition, int] = {}
    found = []
    for partition, offset in history:
        before = latest.get(partition, -1)
        if offset is None or offset < before:
            found.append((partition, before, -1 if offset is None else offset))
        latest[partition] = -1 if offset is None else offset
    return found


def _records(bootstrap_servers: str) -> Iterator[tuple[bytes, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "reader-of-offsets",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(OFFSETS_TOPIC, timeout=10).topics[OFFSETS_TOPIC].partitions
        consumer.assign([Location(OFFSETS_TOPIC, number, 0) for number in partitions])
        unread = set(partitions)
        while unread:
            for message in consumer.consume(1_000, 1.0):
                error = message.error()
                if error is None:
                    yield message.key(), message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition())
                else:
                    raise RuntimeError(f"{OFFSETS_TOPIC} cannot be read: {error}")
    finally:
        consumer.close()


def _decode(key: bytes, value: bytes | None, group: str) -> Commit | None:
    (version,) = struct.unpack_from(">h", key)
    if version not in _OFFSET_KEYS:
        return None
    found_group, at = _text(key, 2)
    topic, at = _text(key, at)
    (number,) = struct.unpack_from(">i", key, at)
    if found_group != group:
        return None
    # Whatever the version of the value, the offset comes right after it.
    offset = None if value is None else struct.unpack_from(">q", value, 2)[0]
    return Commit(TopicPartition(topic, number), offset)


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length
