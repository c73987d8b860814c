"""What only Kafka's consumer has to see to: what is held, transactions, other clients; the rest: tests/broker."""

from __future__ import annotations

import statistics
import time
from contextlib import closing

import pytest
from confluent_kafka import KafkaError, Producer
from kafka import KafkaProducer as OtherProducer

from pystreams.broker.kafka import consumer as consumer_module
from pystreams.broker.kafka.consumer import KafkaConsumer
from pystreams.broker.kafka.producer import KafkaProducer
from pystreams.errors import (
    BrokerUnavailableError,
    OffsetOutOfRangeError,
)
from pystreams.ids import TopicPartition
from tests.broker.kit import P0, P1, poll_until, send, values
from tests.kafka.server import free_port
from tests.kafka.support import Cluster
from tests.live.support import eventually


class NoUtf8(str):
    """The name of a header, as a client in another language may write it."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return b"\xff\xfe"


def test_a_poll_takes_over_500_records_at_most(consumer: KafkaConsumer, producer: KafkaProducer):
    """Java's would be 1,000."""
    send(producer, 0, *(b"%d" % i for i in range(3_000)))
    consumer.assign({P0: 0})
    taken: list[int] = []

    def all_are_read() -> bool:
        taken.append(sum(len(batch) for batch in consumer.poll(100)))
        return consumer.position(P0) == 3_000

    eventually(all_are_read, "all are read")
    assert max(taken) == 500


def test_topics_are_read_as_soon_as_they_are_assigned(cluster: Cluster, consumer: KafkaConsumer):
    """By itself, librdkafka would begin a second after the one before. A busy machine may spoil some, but not most."""
    topics = [f"topic-{number}" for number in range(6)]
    cluster.create(*topics)
    for topic in topics:
        cluster.write(topic, [("k", 1, 0)])
    took_s = []
    for topic in topics:
        partition = TopicPartition(topic, 0)
        begun = time.monotonic()
        consumer.assign({partition: 0})
        poll_until(consumer, lambda partition=partition: consumer.position(partition) == 1)
        took_s.append(time.monotonic() - begun)
        consumer.unassign([partition])
    assert statistics.median(took_s) < 0.4, took_s


def test_a_record_whose_headers_cannot_be_read_comes_without_them(
    cluster: Cluster, consumer: KafkaConsumer, caplog: pytest.LogCaptureFixture
):
    cluster.create("t")
    with closing(OtherProducer(bootstrap_servers=cluster.bootstrap_servers)) as other:
        for name in ("a", NoUtf8("b"), "c"):
            other.send("t", key=b"k", value=b"v", headers=[(name, b"1")]).get(20)
    consumer.assign({P0: 0})
    batches = poll_until(consumer, lambda: consumer.position(P0) == 3)
    found = [headers for batch in batches for headers in batch.headers or [()] * len(batch)]
    assert found == [(("a", b"1"),), (), (("c", b"1"),)]
    assert "t-0 offset 1: read without headers" in caplog.text


def test_what_is_asked_about_a_topic_in_doubt_is_asked_until_somebody_answers(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(consumer_module, "_METADATA_TIMEOUT_S", 0.05)
    settings = {"bootstrap.servers": f"127.0.0.1:{free_port()}", "group.id": "g", "log_level": 0}
    with closing(KafkaConsumer(settings, "c")) as consumer:
        consumer.assign({P0: 0})
        consumer._on_error(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        for _ in range(2):
            with pytest.raises(BrokerUnavailableError, match="Topics cannot be listed"):
                consumer.poll(0)


def test_the_position_passes_the_marker_of_a_transaction(
    cluster: Cluster, consumer: KafkaConsumer, producer: KafkaProducer
):
    """It is a record that nobody sees."""
    send(producer, 0, b"a", b"b")
    consumer.assign({P0: 2})
    poll_until(consumer, lambda: consumer.known_end_offset(P0) == 2)
    other = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "x"})
    other.init_transactions()
    other.begin_transaction()
    other.produce("t", b"c", None, 0)
    other.commit_transaction()
    batches = poll_until(consumer, lambda: consumer.position(P0) == 4)
    assert values(batches) == [b"c"]
    assert consumer.known_end_offset(P0) == 4


def test_what_was_held_of_a_paused_partition_is_not_lost(
    consumer: KafkaConsumer, producer: KafkaProducer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(consumer_module, "HELD_RECORDS_MAX", 10)
    monkeypatch.setattr(consumer_module, "POLL_RECORDS_MAX", 4)
    consumer.assign({P0: 0, P1: 0})
    consumer.pause([P0])
    sent = [b"%d" % i for i in range(100)]
    send(producer, 0, *sent)
    send(producer, 1, *sent)
    batches = poll_until(consumer, lambda: consumer.position(P1) == 100)
    assert values(batches) == []
    assert values(batches, P1) == sent
    assert consumer.position(P0) == 0
    consumer.resume([P0])
    batches = poll_until(consumer, lambda: consumer.position(P0) >= 20)
    consumer.pause([P0])
    at = consumer.position(P0)
    assert consumer.poll(200) == []
    assert consumer.position(P0) == at
    consumer.resume([P0])
    batches += poll_until(consumer, lambda: consumer.position(P0) == 100)
    assert values(batches) == sent


@pytest.mark.parametrize("again", ["assign", "seek"])
def test_a_partition_that_was_given_up_while_it_held_all_it_may_is_read_again(
    consumer: KafkaConsumer, producer: KafkaProducer, monkeypatch: pytest.MonkeyPatch, again: str
):
    monkeypatch.setattr(consumer_module, "HELD_RECORDS_MAX", 10)
    monkeypatch.setattr(consumer_module, "POLL_RECORDS_MAX", 4)
    sent = [b"%d" % i for i in range(100)]
    send(producer, 0, *sent)
    send(producer, 1, *sent)
    consumer.assign({P0: 0, P1: 0})
    consumer.pause([P0])
    # Either may come first.
    poll_until(consumer, lambda: consumer.position(P1) == 100 and consumer._readings[P0].stopped)
    if again == "seek":
        consumer.resume([P0])
        consumer.seek({P0: 3})
    else:
        consumer.unassign([P0])
        consumer.poll(0)
        consumer.assign({P0: 3})
    assert values(poll_until(consumer, lambda: consumer.position(P0) == 100)) == sent[3:]


def test_the_partitions_of_a_consumer_share_what_may_be_held(
    cluster: Cluster, consumer: KafkaConsumer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(consumer_module, "HELD_RECORDS_MAX", 100)
    monkeypatch.setattr(consumer_module, "HELD_PARTITIONS_MAX", 2)
    monkeypatch.setattr(consumer_module, "POLL_RECORDS_MAX", 10)
    cluster.create("wide", partitions=17)
    for number in range(17):
        cluster.write("wide", [("k", i, i + 1) for i in range(200)], partition=number)
    partitions = [TopicPartition("wide", number) for number in range(17)]
    consumer.assign(dict.fromkeys(partitions, 0))
    consumer.pause(partitions[1:])
    poll_until(consumer, lambda: all(consumer._readings[p].stopped for p in partitions[1:]))
    # 2 * 100 records for 17 partitions, past which each may go by one poll.
    assert all(10 < consumer._readings[p].held_records <= 11 + 10 for p in partitions[1:])
    consumer.resume(partitions)
    poll_until(consumer, lambda: all(consumer.position(p) == 200 for p in partitions))


def test_a_reader_of_what_is_committed_is_at_the_end_before_an_open_transaction(
    cluster: Cluster, producer: KafkaProducer
):
    send(producer, 0, b"a")
    other = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "x"})
    other.init_transactions()
    other.begin_transaction()
    other.produce("t", b"b", None, 0)
    other.flush()
    broker = cluster.broker_with(client_settings={"main.consumer.isolation.level": "read_committed"})
    with closing(broker.consumer("c")) as consumer:
        consumer.assign({P0: 0})
        poll_until(consumer, lambda: consumer.known_end_offset(P0) == consumer.position(P0) == 1)
        other.commit_transaction()
        assert values(poll_until(consumer, lambda: consumer.position(P0) == 3)) == [b"b"]
        assert consumer.known_end_offset(P0) == 3


def test_what_was_wrong_with_a_partition_is_forgotten_when_it_is_read_elsewhere_or_given_up(
    cluster: Cluster, consumer: KafkaConsumer, producer: KafkaProducer
):
    cluster.create("u")
    other = TopicPartition("u", 0)
    send(producer, 0, b"a", b"b", b"c")
    send(producer, 1, b"x", b"y")
    consumer.assign({P0: 9, P1: 9, other: 9})
    eventually(lambda: consumer._batches(consumer._consume(100)) or len(consumer._failures) == 3)
    with pytest.raises(OffsetOutOfRangeError):
        consumer.poll(0)
    consumer.seek({P0: 2, P1: 1})
    consumer.unassign([other])
    batches = poll_until(consumer, lambda: (consumer.position(P0), consumer.position(P1)) == (3, 2))
    assert (values(batches), values(batches, P1)) == ([b"c"], [b"y"])
