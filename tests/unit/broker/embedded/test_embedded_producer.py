"""A commit of the embedded log is all or nothing, and a record that cannot be written is refused where it is sent."""

from __future__ import annotations

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.errors import BrokerError, ProductionError, TopicError
from pystreams.ids import TopicPartition
from tests.unit.broker.log_helpers import T0, create, values, write


@pytest.fixture
def producer(broker):
    producer = broker.producer("test", "test")
    yield producer
    producer.close()


def test_nothing_can_be_read_before_the_commit(broker, producer):
    create(broker)
    producer.send("t", 0, b"k", b"v", 1, ())
    assert values(broker) == []
    producer.commit({}, None)
    assert values(broker) == [b"v"]


def test_a_producer_that_is_closed_without_a_commit_has_written_nothing(broker):
    create(broker)
    producer = broker.producer("test", "test")
    producer.send("t", 0, b"k", b"v", 1, ())
    producer.close()
    assert values(broker) == []


def test_records_without_key_and_partition_stay_together_and_then_spread(broker, producer):
    create(broker, "t", 4)
    for _ in range(400):
        producer.send("t", None, None, b"v", 1, ())
    producer.commit({}, None)
    counts = [len(values(broker, TopicPartition("t", partition))) for partition in range(4)]
    assert sorted(counts) == [0, 0, 0, 400]
    for _ in range(40):
        for _ in range(600):
            producer.send("t", None, None, b"v", 1, ())
        producer.commit({}, None)
    assert all(len(values(broker, TopicPartition("t", partition))) > 400 for partition in range(4))


def test_a_topic_that_is_missing_is_named_when_something_is_sent_to_it(broker, producer):
    with pytest.raises(TopicError, match="'nowhere' does not exist"):
        producer.send("nowhere", 0, b"k", b"v", 1, ())
    with pytest.raises(TopicError, match="'nowhere' does not exist"):
        producer.send("nowhere", None, b"k", b"v", 1, ())


@pytest.mark.parametrize("partition", [-1, 2])
def test_a_partition_that_is_missing_is_named(broker, producer, partition):
    create(broker, "t", 2)
    with pytest.raises(TopicError, match=f"no partition {partition}"):
        producer.send("t", partition, b"k", b"v", 1, ())


def test_a_value_of_20_mb_is_refused_by_a_default_topic_and_the_rest_goes_on(broker, producer):
    create(broker)
    producer.send("t", 0, b"k", b"before", 1, ())
    with pytest.raises(ProductionError, match=r"max\.message\.bytes of the topic is 1,048,588"):
        producer.send("t", 0, b"k", b"x" * 20_000_000, 1, ())
    producer.send("t", 0, b"k", b"after", 1, ())
    producer.commit({}, None)
    assert values(broker) == [b"before", b"after"]


def test_a_value_of_20_mb_goes_through_a_topic_that_allows_it(broker, producer):
    create(broker, config={"max.message.bytes": "30000000"})
    large = bytes(range(256)) * 80_000
    write(broker, [(b"a", b"small", 1), (b"b", large, 2), (b"c", b"small", 3)])
    assert values(broker) == [b"small", large, b"small"]


def test_a_limit_that_is_raised_holds_at_once(broker, producer):
    create(broker, config={"max.message.bytes": "1000"})
    with pytest.raises(ProductionError):
        producer.send("t", 0, b"k", b"x" * 2000, 1, ())
    admin = broker.admin()
    admin.alter_topic_config("t", {"max.message.bytes": "3000"})
    admin.close()
    producer.send("t", 0, b"k", b"x" * 2000, 1, ())
    producer.commit({}, None)
    assert values(broker) == [b"x" * 2000]


def test_a_key_that_is_too_large_fails_the_commit(broker, producer):
    create(broker, config={"max.message.bytes": "1000"})
    producer.send("t", 0, b"k" * 2000, None, 1, ())
    with pytest.raises(ProductionError, match="2,000 bytes"):
        producer.commit({}, None)
    producer.abort()
    assert values(broker) == []


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(broker, producer):
    create(broker, config={"cleanup.policy": "compact"})
    with pytest.raises(ProductionError, match="without a key"):
        producer.send("t", 0, None, b"v", 1, ())


def test_a_topic_that_is_deleted_meanwhile_fails_the_commit_as_a_whole(broker, producer):
    create(broker, "gone")
    create(broker, "stays")
    producer.send("stays", 0, b"k", b"v", 1, ())
    producer.send("gone", 0, b"k", b"v", 1, ())
    admin = broker.admin()
    admin.delete_topics(["gone"])
    admin.close()
    with pytest.raises(TopicError, match="'gone' was deleted"):
        producer.commit({}, None)
    assert values(broker, TopicPartition("stays", 0)) == []


def test_what_was_sent_is_still_there_after_a_failed_commit(broker, producer):
    create(broker)
    producer.send("t", 0, b"k", b"v", 1, ())
    with pytest.raises(BrokerError):
        producer.commit({T0: CommittedOffset(1)}, None)
    producer.commit({}, None)
    assert values(broker) == [b"v"]
