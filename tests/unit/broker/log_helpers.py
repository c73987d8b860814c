"""Short words for what the tests of logs do all the time."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import MemberAssignment, MemberInfo, TopicSpec
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers

T0 = TopicPartition("t", 0)

#: offset, key, value, timestamp, headers
Row = tuple[int, bytes | None, bytes | None, int, Headers]


def create(
    broker: EmbeddedBroker, name: str = "t", partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    admin = broker.admin()
    admin.create_topics([TopicSpec(name, partitions, {"retention.ms": "-1", **(config or {})})])
    admin.close()


def write(
    broker: EmbeddedBroker,
    records: Iterable[tuple[bytes | None, bytes | None, int]],
    partition: TopicPartition = T0,
) -> None:
    """Commit records (key, value, timestamp) to a partition."""
    producer = broker.producer("test", "test")
    for key, value, timestamp in records:
        producer.send(partition.topic, partition.partition, key, value, timestamp, NO_HEADERS)
    producer.commit({}, None)
    producer.close()


def read(broker: EmbeddedBroker, partition: TopicPartition = T0, position: int | None = None) -> list[Row]:
    """Everything from ``position`` (None: from the beginning) to the end."""
    admin = broker.admin()
    start = admin.beginning_offsets([partition])[partition] if position is None else position
    end = admin.end_offsets([partition])[partition]
    admin.close()
    consumer = broker.consumer("test")
    consumer.assign({partition: start})
    rows: list[Row] = []
    while (before := consumer.position(partition)) < end:
        batches = consumer.poll(0)
        assert consumer.position(partition) > before
        for batch in batches:
            headers = batch.headers or [NO_HEADERS] * len(batch)
            rows += zip(batch.offsets, batch.keys, batch.values, batch.timestamps, headers, strict=True)
    consumer.close()
    return rows


def deal(topic: str, partitions: int) -> Callable[[Sequence[MemberInfo]], Mapping[str, MemberAssignment]]:
    """An assignor: partitions in turn to the members by user data. Not sticky: most changes move something."""
    every = tuple(TopicPartition(topic, number) for number in range(partitions))

    def assign(members: Sequence[MemberInfo]) -> Mapping[str, MemberAssignment]:
        order = sorted(members, key=lambda member: (member.user_data, member.member_id))
        return {
            member.member_id: MemberAssignment(every[index :: len(order)], b"plan for " + member.user_data)
            for index, member in enumerate(order)
        }

    return assign


def values(broker: EmbeddedBroker, partition: TopicPartition = T0) -> list[bytes | None]:
    return [row[2] for row in read(broker, partition)]


def freeze(pid: int, log: Path) -> None:
    """Stop a process while it does not write: one that is stopped within a transaction locks the log for everyone."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        with closing(sqlite3.connect(log, timeout=1.0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
            else:
                connection.execute("ROLLBACK")
                return
