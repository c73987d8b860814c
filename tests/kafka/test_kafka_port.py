"""Consumer, producer and admin on Kafka keep the promises that the runtime builds on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from pystreams.broker.kafka import consumer as consumer_module
from pystreams.broker.kafka.consumer import KafkaConsumer
from pystreams.broker.kafka.producer import KafkaProducer
from pystreams.broker.port import CommittedOffset, TopicSpec
from pystreams.clock import SystemClock
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    ConfigError,
    OffsetOutOfRangeError,
    ProductionError,
    SerializationError,
    TopicError,
)
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from pystreams.record import RecordBatch
from tests.kafka.server import free_port
from tests.kafka.support import Cluster, connect

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[KafkaProducer]:
    cluster.create("t", partitions=2)
    producer = cluster.broker.producer("p", "p")
    yield producer
    producer.close()


@pytest.fixture
def consumer(cluster: Cluster) -> Iterator[KafkaConsumer]:
    consumer = cluster.broker.consumer("c")
    yield consumer
    consumer.close()


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


# Consumer


def test_a_batch_has_all_columns(consumer: KafkaConsumer, producer: KafkaProducer):
    producer.send("t", 1, b"k", b"v", 5, (("a", b"1"), ("a", None)))
    producer.send("t", 1, None, None, 6, ())
    producer.send("t", 1, b"", b"", 7, ())
    producer.commit({}, None)
    consumer.assign({P1: 0})
    (batch,) = poll_until(consumer, lambda: consumer.position(P1) == 3)
    assert batch == RecordBatch(
        "t",
        1,
        [b"k", None, b""],
        [b"v", None, b""],
        [5, 6, 7],
        [0, 1, 2],
        [(("a", b"1"), ("a", None)), (), ()],
        3,
    )


def test_a_batch_without_headers_says_so(consumer: KafkaConsumer, producer: KafkaProducer):
    send(producer, 0, b"a")
    consumer.assign({P0: 0})
    (batch,) = poll_until(consumer, lambda: consumer.position(P0) == 1)
    assert batch.headers is None


def test_the_position_passes_a_hole_at_the_end(
    cluster: Cluster, consumer: KafkaConsumer, producer: KafkaProducer
):
    send(producer, 0, b"a", b"b")
    cluster.admin.delete_records({P0: 2})
    consumer.assign({P0: 2})
    assert poll_until(consumer, lambda: consumer.known_end_offset(P0) is not None) == []
    assert (consumer.position(P0), consumer.known_end_offset(P0)) == (2, 2)
    # The marker of a transaction is a record that nobody sees.
    other = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "x"})
    other.init_transactions()
    other.begin_transaction()
    other.produce("t", b"c", None, 0)
    other.commit_transaction()
    batches = poll_until(consumer, lambda: consumer.position(P0) == 4)
    assert values(batches) == [b"c"]
    assert consumer.known_end_offset(P0) == 4


def test_a_paused_partition_gives_nothing_and_loses_nothing(
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


def test_partitions_come_and_go_while_others_go_on(consumer: KafkaConsumer, producer: KafkaProducer):
    send(producer, 0, b"a", b"b")
    send(producer, 1, b"x", b"y")
    consumer.assign({P0: 0})
    assert values(poll_until(consumer, lambda: consumer.position(P0) == 2)) == [b"a", b"b"]
    consumer.assign({P1: 1})
    assert values(poll_until(consumer, lambda: consumer.position(P1) == 2), P1) == [b"y"]
    send(producer, 0, b"c")
    consumer.unassign([P0])
    send(producer, 1, b"z")
    batches = poll_until(consumer, lambda: consumer.position(P1) == 3)
    assert (values(batches), values(batches, P1)) == ([], [b"z"])
    consumer.seek({P1: 0})
    assert values(poll_until(consumer, lambda: consumer.position(P1) == 3), P1) == [b"x", b"y", b"z"]


@pytest.mark.parametrize("position", [1, 9])
def test_a_position_outside_of_the_log_is_an_error(
    cluster: Cluster, consumer: KafkaConsumer, producer: KafkaProducer, position: int
):
    send(producer, 0, b"a", b"b", b"c")
    cluster.admin.delete_records({P0: 2})
    send(producer, 1, b"x")
    consumer.assign({P0: position, P1: 0})
    with pytest.raises(OffsetOutOfRangeError, match=rf"Offset {position} is not in the log\n  where: .*t-0"):
        poll_until(consumer, lambda: False)
    assert consumer.position(P0) == position
    consumer.seek({P0: 2})
    assert values(poll_until(consumer, lambda: consumer.position(P0) == 3)) == [b"c"]


def test_a_waiting_poll_returns_soon_after_a_record_arrives(consumer: KafkaConsumer, producer: KafkaProducer):
    consumer.assign({P0: 0})
    poll_until(consumer, lambda: consumer.known_end_offset(P0) == 0)
    send(producer, 0, b"a")
    started = time.monotonic()
    assert values(consumer.poll(10_000)) == [b"a"]
    assert time.monotonic() - started < 2


# Producer


def test_commit_gives_the_end_offsets_of_changelogs_only(cluster: Cluster, producer: KafkaProducer):
    cluster.create("log", config={"cleanup.policy": "compact"})
    producer.send("t", 0, b"k", b"v", 1, ())
    before = SystemClock().now_ms()
    producer.log_change("log", 0, b"k", b"v", None, ())
    producer.log_change("log", 0, b"k", None, 5, ())
    assert producer.commit({}, None) == {TopicPartition("log", 0): 2}
    assert producer.commit({}, None) == {}
    first, second = cluster.read("log", value=bytes)
    assert before <= first.timestamp <= SystemClock().now_ms()
    assert second == ("k", None, 5)


def test_without_a_partition_the_keys_murmur2_hash_decides(cluster: Cluster, consumer: KafkaConsumer):
    cluster.create("wide", partitions=7)
    producer = cluster.broker.producer("p", "p")
    keys = [b"%d" % i for i in range(50)] + [b""]
    for key in keys:
        producer.send("wide", None, key, b"", 1, ())
    producer.commit({}, None)
    producer.close()
    partitions = [TopicPartition("wide", number) for number in range(7)]
    consumer.assign(dict.fromkeys(partitions, 0))
    batches = poll_until(consumer, lambda: sum(map(consumer.position, partitions)) == len(keys))
    found = {key: batch.partition for batch in batches for key in batch.keys}
    assert found == {key: partition_for_key(key, 7) for key in keys}


def test_more_records_than_the_local_queue_holds_wait_and_all_arrive(
    cluster: Cluster, producer: KafkaProducer
):
    count = 250_000
    for number in range(count):
        producer.send("t", number % 2, None, b"x", 1, ())
    producer.commit({}, None)
    assert sum(cluster.admin.end_offsets([P0, P1]).values()) == count


def test_a_record_that_is_too_large_is_refused_by_send_and_the_rest_goes_on(
    cluster: Cluster, producer: KafkaProducer
):
    producer.send("t", 0, b"k", b"before", 1, ())
    with pytest.raises(ProductionError, match="too large"):
        producer.send("t", 0, b"k", bytes(2_000_000), 1, ())
    producer.send("t", 0, b"k", b"after", 1, ())
    producer.commit({}, None)
    assert [record.value for record in cluster.read("t", value=bytes)] == [b"before", b"after"]


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


def test_a_partition_that_is_missing_is_named(producer: KafkaProducer):
    def write() -> None:
        producer.send("t", 9, b"k", b"v", 1, ())
        producer.commit({}, None)

    with pytest.raises(TopicError, match=r"(?s)no such partition.*topic t, partition 9"):
        write()


@pytest.mark.parametrize("key,value,headers", [("k", b"v", ()), (b"k", 1, ()), (b"k", b"v", (("h", "x"),))])
def test_what_is_no_bytes_is_refused(cluster: Cluster, producer: KafkaProducer, key, value, headers):
    with pytest.raises(SerializationError):
        producer.send("t", 0, key, value, 1, headers)
    send(producer, 0, b"fine")
    assert [record.value for record in cluster.read("t", value=bytes)] == [b"fine"]


def test_a_timestamp_of_0_is_written_as_1_because_librdkafka_takes_it_for_now(
    cluster: Cluster, producer: KafkaProducer
):
    producer.send("t", 0, b"k", b"v", 0, ())
    producer.commit({}, None)
    assert [record.timestamp for record in cluster.read("t", value=bytes)] == [1]


def test_offsets_cannot_be_committed_without_a_member(producer: KafkaProducer):
    with pytest.raises(BrokerError, match="without a member"):
        producer.commit({P0: CommittedOffset(1)}, None)


# Admin


def test_topics_are_created_described_changed_and_deleted(cluster: Cluster):
    admin = cluster.admin
    admin.create_topics([TopicSpec("a", 3, {"cleanup.policy": "compact"}), TopicSpec("b", 1)])
    assert {name: topic.partitions for name, topic in admin.describe_topics().items()} == {"a": 3, "b": 1}
    (a,) = admin.describe_topics(["a", "missing"]).values()
    assert (a.config["cleanup.policy"], a.config["retention.ms"]) == ("compact", "604800000")
    admin.alter_topic_config("a", {"retention.ms": "-1"})
    changed = admin.describe_topics(["a"])["a"].config
    assert (changed["cleanup.policy"], changed["retention.ms"]) == ("compact", "-1")
    admin.create_topics([TopicSpec("a", 3)])
    with pytest.raises(TopicError, match="exists with 3 partitions, not 4"):
        admin.create_topics([TopicSpec("a", 4)])
    with pytest.raises(ConfigError, match="refuses the settings of topic c"):
        admin.create_topics([TopicSpec("c", 1, {"no.such.setting": "1"})])
    with pytest.raises(ConfigError, match="refuses the settings of topic a"):
        admin.alter_topic_config("a", {"retention.ms": "soon"})
    admin.delete_topics(["a", "b"])
    assert admin.describe_topics() == {}
    with pytest.raises(TopicError):
        admin.delete_topics(["a"])


def test_offsets_are_found_and_records_deleted(cluster: Cluster, producer: KafkaProducer):
    admin = cluster.admin
    for timestamp in (10, 20, 30):
        producer.send("t", 0, b"k", b"v", timestamp, ())
    producer.commit({}, None)
    assert admin.offsets_for_times({P0: 15, P1: 15}) == {P0: 1, P1: 0}
    assert admin.offsets_for_times({P0: 31}) == {P0: 3}
    admin.delete_records({P0: 2})
    assert admin.beginning_offsets([P0, P1]) == {P0: 2, P1: 0}
    assert admin.end_offsets([P0, P1]) == {P0: 3, P1: 0}
    with pytest.raises(OffsetOutOfRangeError, match="before offset 9"):
        admin.delete_records({P0: 9})


# Connecting


def test_a_broker_that_is_not_there_is_told_in_time():
    started = time.monotonic()
    with pytest.raises(
        BrokerUnavailableError, match=r"(?s)cannot be reached.*Connection refused.*make kafka"
    ):
        connect(f"127.0.0.1:{free_port()}", connect_timeout_s=1.0)
    assert time.monotonic() - started < 5


def test_an_address_that_does_not_exist_is_told_at_once():
    started = time.monotonic()
    with pytest.raises(BrokerUnavailableError, match=r"(?s)not known.*check bootstrap_servers"):
        connect("no-such-host.invalid:9092", connect_timeout_s=30.0)
    assert time.monotonic() - started < 15


def test_an_unknown_setting_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"sasl\.mechanism"):
        connect("127.0.0.1:1", client_settings={"sasl.mechanisms": "x"})
