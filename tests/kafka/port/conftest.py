"""A producer and a consumer of Kafka's own kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pystreams.broker.kafka.consumer import KafkaConsumer
from pystreams.broker.kafka.producer import KafkaProducer
from tests.kafka.support import Cluster


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[KafkaProducer]:
    """Of topic ``t``, which has two partitions."""
    cluster.create("t", partitions=2)
    producer = cluster.broker.producer("p", "p")
    yield producer
    producer.close()


@pytest.fixture
def consumer(cluster: Cluster) -> Iterator[KafkaConsumer]:
    consumer = cluster.broker.consumer("c")
    yield consumer
    consumer.close()
