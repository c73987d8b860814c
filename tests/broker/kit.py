"""What tests of consumers and producers have in common: two partitions, to be written to and read."""

from __future__ import annotations

import time
from collections.abc import Callable

from pystreams.broker.port import Consumer, Producer
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from tests.live.support import TIMEOUT_S

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def send(producer: Producer, partition: int, *values: bytes) -> None:
    """Send values to a partition of ``t``, with the key ``k``, and commit."""
    for value in values:
        producer.send("t", partition, b"k", value, 1_000, ())
    producer.commit({}, None)


def poll_until(
    consumer: Consumer, condition: Callable[[], bool], timeout_s: float = TIMEOUT_S
) -> list[RecordBatch]:
    """What is polled until something has come true."""
    batches: list[RecordBatch] = []
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, batches
        batches += consumer.poll(100)
    return batches


def values(batches: list[RecordBatch], partition: TopicPartition = P0) -> list[bytes | None]:
    return [v for b in batches if (b.topic, b.partition) == partition for v in b.values]
