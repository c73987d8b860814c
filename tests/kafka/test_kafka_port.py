"""Producer and admin on Kafka keep the promises that the runtime builds on."""

from __future__ import annotations

import time

import pytest

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
from tests.kafka.port_support import P0, P1, poll_until, send
from tests.kafka.server import free_port
from tests.kafka.support import Cluster, connect

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
    admin.delete_records({P0: 2}).wait()
    assert admin.beginning_offsets([P0, P1]) == {P0: 2, P1: 0}
    assert admin.end_offsets([P0, P1]) == {P0: 3, P1: 0}
    with pytest.raises(OffsetOutOfRangeError, match="before offset 9"):
        admin.delete_records({P0: 9}).wait()


# Connecting


def test_a_broker_that_is_not_there_is_told_in_time():
    started = time.monotonic()
    with pytest.raises(
        BrokerUnavailableError, match=r"(?s)cannot be reached.*Connection refused.*is it running"
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
