"""``open_log`` on a real Kafka does what it does on the embedded log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest

from pystreams import open_log
from pystreams.errors import ConfigError, ProductionError, TopicError
from pystreams.log import Log
from pystreams.partitioning import partition_for_key
from tests.kafka.support import Cluster
from tests.live.support import eventually

KEPT = {"retention.ms": -1}


class Order(msgspec.Struct):
    amount: int


@pytest.fixture
def log(cluster: Cluster) -> Iterator[Log]:
    with open_log(bootstrap_servers=cluster.bootstrap_servers) as log:
        yield log


def test_records_come_out_as_they_went_in(log: Log):
    log.create_topic("orders", 3, config=KEPT)
    records = [
        ("a", Order(1), 1, ()),
        ("b", None, 2, (("h", b"\xff"), ("h", None))),
        ("c", Order(3), 1_700_000_000_000, ()),
    ]
    assert log.produce_many("orders", records) == 3
    read = list(log.consume("orders", key=str, value=Order))
    assert sorted((r.key, r.value, r.timestamp, r.headers) for r in read) == records
    assert all(r.partition == partition_for_key(r.key.encode(), 3) for r in read)


def test_places_are_those_of_the_embedded_log(log: Log):
    log.create_topic("t", config=KEPT)
    log.produce_many("t", [(None, number, 1000 * number) for number in range(1, 6)])

    def read(**options) -> list[int]:
        return [record.value for record in log.consume("t", value=int, **options)]

    assert read(from_=3000) == [3, 4, 5]
    assert read(until=3000) == [1, 2]
    assert read(from_=-2) == [4, 5]
    assert read(from_={0: 1}, until={0: 2}) == [2]
    assert read(from_="latest") == []
    assert read(from_=-1, follow=True, timeout=500) == [5]
    assert log.delete_records("t", before=3000) == 2
    assert read() == [3, 4, 5]


def test_topics_are_created_described_and_deleted(log: Log):
    log.create_topic("t", 2, config=KEPT)
    log.create_topic("t", if_not_exists=True)
    with pytest.raises(TopicError, match="exists with 2 partitions, not 3"):
        log.create_topic("t", 3, if_not_exists=True)
    log.produce("t", "x", partition=1)
    found = log.describe_topic("t")
    assert (found.partitions, found.end_offsets, found.config["retention.ms"]) == (2, {0: 0, 1: 1}, "-1")
    assert log.topics() == ["t"]
    log.delete_topic("t")
    assert log.topics() == []
    with pytest.raises(ConfigError):
        log.create_topic("t", config={"retention.mss": 1})


def test_what_is_not_committed_is_not_read_and_not_waited_for(log: Log, cluster: Cluster):
    log.create_topic("t")
    log.produce("t", "kept")
    log.flush()
    with closing(cluster.broker.transactional_producer("p", "open")) as producer:
        producer.send("t", 0, None, b"open", 1, ())
        eventually(lambda: log.describe_topic("t").records == 2)
        log.produce("t", "behind")
        assert [record.value for record in log.consume("t", value=str)] == ["kept"]

    def all_are_read() -> bool:
        return [record.value for record in log.consume("t", value=str)] == ["kept", "behind"]

    # Kafka marks the end of a transaction in its partitions after it has answered.
    eventually(all_are_read, "what is behind the transaction that was aborted")


def test_a_record_that_the_broker_refuses_is_reported_with_those_that_may_be_lost(log: Log):
    log.create_topic("t", config={"max.message.bytes": 1000})
    log.produce("t", b"1")
    log.flush()
    log.produce("t", bytes(range(256)) * 8)
    with pytest.raises(ProductionError, match="The record sent may not have been written") as failed:
        log.flush()
    assert "too large" in failed.value.why
    log.produce("t", b"2")
    assert [record.value for record in log.consume("t")] == [b"1", b"2"]


def test_a_record_that_is_refused_with_its_neighbours_is_known_by_its_own_fault(log: Log):
    log.create_topic("orders", config=KEPT)
    far_ahead = 4_000_000_000_000
    with pytest.raises(ProductionError) as refused:
        log.produce_many("orders", [("a", b"x", 1), ("a", b"x", 2), ("a", b"x", far_ahead)])
    assert "different" not in refused.value.why
    assert "timestamp" in refused.value.why
