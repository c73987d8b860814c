"""What tests of the consumer and the producer have in common: two partitions, to be written to and read."""

from __future__ import annotations

import time
from collections.abc import Callable

from pystreams.broker.kafka.consumer import KafkaConsumer
from pystreams.broker.kafka.producer import KafkaProducer
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def send(producer: KafkaProducer, partition: int, *values: bytes) -> None:
    for value in values:
        producer.send("t", partition, b"k", value, 1_000, ())
    producer.commit({}, None)


def poll_until(
    consumer: KafkaConsumer, condition: Callable[[], bool], seconds: float = 20
) -> list[RecordBatch]:
    batches: list[RecordBatch] = []
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, batches
        batches += consumer.poll(100)
    return batches


def values(batches: list[RecordBatch], partition: TopicPartition = P0) -> list[bytes | None]:
    return [v for b in batches if (b.topic, b.partition) == partition for v in b.values]
