"""What only Kafka can promise of producers, and what its client would do otherwise; the rest: tests/broker."""

from __future__ import annotations

import pytest

from pystreams.broker.kafka.producer import KafkaProducer
from pystreams.errors import ProductionError, SupersededError
from tests.broker.kit import P0, P1, send
from tests.kafka.support import Cluster
from tests.live.support import eventually


def test_more_records_than_the_local_queue_holds_wait_and_all_arrive(
    cluster: Cluster, producer: KafkaProducer
):
    count = 250_000
    for number in range(count):
        producer.send("t", number % 2, None, b"x", 1, ())
    producer.commit({}, None)
    assert sum(cluster.admin.end_offsets([P0, P1]).values()) == count


def test_what_the_broker_refuses_fails_the_commit(cluster: Cluster, producer: KafkaProducer):
    cluster.create("small", config={"max.message.bytes": "1000"})
    cluster.create("compacted", config={"cleanup.policy": "compact"})
    producer.send("small", 0, b"k", bytes(5_000), 1, ())
    with pytest.raises(ProductionError, match="too large"):
        producer.commit({}, None)
    producer.abort()
    producer.send("compacted", 0, None, b"v", 1, ())
    with pytest.raises(ProductionError, match=r"compacted, partition 0"):
        producer.commit({}, None)
    producer.abort()
    send(producer, 0, b"fine")
    assert [record.value for record in cluster.read("t", value=bytes)] == [b"fine"]


def test_a_timestamp_of_0_is_written_as_1_because_librdkafka_takes_it_for_now(
    cluster: Cluster, producer: KafkaProducer
):
    producer.send("t", 0, b"k", b"v", 0, ())
    producer.commit({}, None)
    assert [record.timestamp for record in cluster.read("t", value=bytes)] == [1]


def test_a_writer_whose_id_another_one_took_over_says_so_when_it_sends(cluster: Cluster):
    cluster.create("t")
    first, second = (cluster.broker.transactional_producer("c", "id") for _ in range(2))

    def refused() -> SupersededError | None:
        try:
            first.send("t", 0, b"k", b"never", 1, ())
        except SupersededError as error:
            return error
        return None

    assert "another process writes as id now" in str(eventually(refused, "a record is refused"))
    first.close()
    second.send("t", 0, b"k", b"second", 1, ())
    second.commit()
    second.close()
    assert [record.value for record in cluster.read("t", value=bytes)] == [b"second"]
