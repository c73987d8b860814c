"""Producers: what is committed is in the log as it was sent, and what cannot be written is refused by its name."""

from __future__ import annotations

import re

import pytest

from pystreams.broker.port import CommittedOffset, Consumer, Producer
from pystreams.clock import SystemClock
from pystreams.errors import BrokerError, ProductionError, SerializationError, TopicError
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from tests.broker.kit import P0, poll_until, send
from tests.live.support import KEPT, Log


def values_of(log: Log, topic: str = "t") -> list[bytes | None]:
    return [record.value for record in log.read(topic, key=bytes, value=bytes)]


def test_commit_gives_the_end_offsets_of_changelogs_only(log: Log, producer: Producer):
    log.create("changelog", partitions=2)
    for _ in range(3):
        producer.send_to_changelog("changelog", 1, b"k", b"v", 5, ())
    producer.send("t", 0, b"k", b"v", 5, ())
    assert producer.commit({}, None) == {TopicPartition("changelog", 1): 3}
    producer.send("t", 0, b"k", b"v", 5, ())
    assert producer.commit({}, None) == {}


def test_a_change_without_a_timestamp_is_of_now(log: Log, producer: Producer):
    log.create("changelog", config={"cleanup.policy": "compact"})
    before = SystemClock().now_ms()
    producer.send_to_changelog("changelog", 0, b"k", b"v", None, ())
    producer.send_to_changelog("changelog", 0, b"k", None, 5, ())
    producer.commit({}, None)
    first, second = log.read("changelog", value=bytes)
    assert before <= first.timestamp <= SystemClock().now_ms()
    assert second == ("k", None, 5)


def test_without_a_partition_the_keys_murmur2_hash_decides(log: Log, producer: Producer, consumer: Consumer):
    log.create("wide", partitions=7)
    keys = [b"%d" % number for number in range(50)] + [b""]
    for key in keys:
        producer.send("wide", None, key, key, 1, ())
    producer.commit({}, None)
    partitions = [TopicPartition("wide", number) for number in range(7)]
    consumer.assign(dict.fromkeys(partitions, 0))
    batches = poll_until(consumer, lambda: sum(map(consumer.position, partitions)) == len(keys))
    found = {key: batch.partition for batch in batches for key in batch.keys}
    assert found == {key: partition_for_key(key, 7) for key in keys}
    # In one partition, the order is that of sending.
    assert all(batch.keys == sorted(batch.keys, key=keys.index) for batch in batches)


@pytest.mark.parametrize(
    "key, value, headers",
    [
        ("k", b"v", ()),
        (b"k", "v", ()),
        (b"k", 7, ()),
        (b"k", b"v", (("name", "text"),)),
        (b"k", b"v", ("name",)),
        (b"k", b"v", {"name": b"1"}),
    ],
)
@pytest.mark.parametrize("partition", [0, None])
def test_what_is_not_bytes_is_refused_before_it_spoils_its_batch(
    log: Log, producer: Producer, key, value, headers, partition
):
    producer.send("t", 0, b"k", b"good", 1, (("name", b"1"), ("none", None)))
    with pytest.raises(SerializationError, match="bytes"):
        producer.send("t", partition, key, value, 1, headers)
    producer.commit({}, None)
    assert values_of(log) == [b"good"]


@pytest.mark.parametrize("partition", [2, 9])
def test_a_partition_that_is_missing_is_named(producer: Producer, partition: int):
    def write() -> None:
        producer.send("t", partition, b"k", b"v", 1, ())
        producer.commit({}, None)

    with pytest.raises(TopicError, match=rf"(?s)partition {partition}\b") as told:
        write()
    assert re.search(r"[Tt]opic '?t\b", str(told.value))


def test_a_record_that_is_too_large_is_refused_by_send_and_the_rest_goes_on(log: Log, producer: Producer):
    producer.send("t", 0, b"k", b"before", 1, ())
    with pytest.raises(ProductionError, match="too large"):
        producer.send("t", 0, b"k", bytes(2_000_000), 1, ())
    producer.send("t", 0, b"k", b"after", 1, ())
    producer.commit({}, None)
    assert values_of(log) == [b"before", b"after"]


def test_what_a_topic_does_not_take_is_never_written_and_the_rest_goes_on(log: Log, producer: Producer):
    log.create("small", config={"max.message.bytes": "1000"})
    log.create("compacted", config={**KEPT, "cleanup.policy": "compact"})

    def write(topic: str, key: bytes | None, value: bytes) -> None:
        producer.send(topic, 0, key, value, 1, ())
        producer.commit({}, None)

    with pytest.raises(ProductionError, match="too large"):
        write("small", b"k", bytes(5_000))
    producer.abort()
    with pytest.raises(ProductionError, match="compacted"):
        write("compacted", None, b"v")
    producer.abort()
    send(producer, 0, b"fine")
    assert values_of(log) == [b"fine"]
    assert values_of(log, "small") == values_of(log, "compacted") == []


def test_offsets_cannot_be_committed_without_a_member(log: Log, producer: Producer):
    with pytest.raises(BrokerError, match="without a member"):
        producer.commit({P0: CommittedOffset(1)}, None)
    assert log.committed("g") == {}


def test_headers_of_some_records_do_not_move_to_others(log: Log, producer: Producer):
    header = (("h", b"1"), ("h", None))
    for headers in ((), header, ()):
        producer.send("t", 0, b"k", b"v", 1, headers)
    producer.commit({}, None)
    producer.send("t", 0, b"k", b"v", 1, ())
    producer.commit({}, None)
    assert [line.headers for line in log.lines(P0).values()] == [(), header, (), ()]


def test_a_topic_with_log_append_time_stamps_records_itself(log: Log, producer: Producer):
    log.create("stamped", config={"message.timestamp.type": "LogAppendTime"})
    before = SystemClock().now_ms()
    producer.send("stamped", 0, b"k", b"v", 5, ())
    producer.commit({}, None)
    (record,) = log.read("stamped", value=bytes)
    assert before <= record.timestamp <= SystemClock().now_ms()
