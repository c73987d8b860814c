"""A transaction that is over, but that a broker has left open in some partitions, is ended there as everywhere.

A broker that is killed just after a commit may forget some partitions (``long_broker_kill.py`` has it happen). Here the
producer writes to partitions of a transaction that is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from kafka.errors import NotLeaderForPartitionError
from kafka.protocol.producer import ProduceRequest
from kafka.record.memory_records import MemoryRecordsBuilder

from pystreams.broker.kafka import KafkaBroker
from pystreams.broker.kafka.coordination import raise_for
from pystreams.broker.kafka.exactly_once import ExactlyOnceProducer
from pystreams.broker.kafka.member import MemberIdentity
from pystreams.broker.kafka.transaction_coordination import ProducerId
from pystreams.broker.port import CommittedOffset, TransactionContent
from pystreams.ids import TaskId, TopicPartition
from tests.kafka.support import Cluster
from tests.live.support import eventually

ID, GROUP = "shop-0b1e6c0e-6a54-4f0a-9d7e-2a3c6c2f3b11-1-1", "shop"
CONTENT = TransactionContent(GROUP, frozenset({"t"}))
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSETS = {FIRST: CommittedOffset(7)}
LOST = KafkaError(KafkaError._TRANSPORT, "the broker has closed the connection")


@pytest.fixture
def cluster(cluster: Cluster) -> Iterator[Cluster]:
    """One whose brokers take records of a transaction that is over, as those before Kafka 3.6 did."""
    verify(cluster, "false")
    cluster.create("t", partitions=2)
    cluster.broker = cluster.broker_with(exactly_once=True)
    yield cluster
    verify(cluster, "true")


def verify(cluster: Cluster, value: str) -> None:
    name = "transaction.partition.verification.enable"
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    for done in cluster.broker._client.incremental_alter_configs([resource]).values():
        done.result(10)


class Writer:
    """What a producer of transactions asks of brokers, request by request."""

    def __init__(self, broker: KafkaBroker, producer: ProducerId | None = None) -> None:
        self._connection = broker._transactions()
        self.id = producer or self._connection.take_over(ID, 60_000)

    def transaction(self, *, committed: bool) -> None:
        """One with a record in the first partition, whose outcome is certain afterwards."""
        self._connection.add_partitions(self.id, [FIRST, SECOND])
        self.write(FIRST, b"whole")
        self._connection.announce_offsets(self.id, GROUP)
        self._connection.end(self.id, committed=committed)
        eventually(lambda: self._connection.last_transaction(ID).state.startswith("Complete"), "it is over")

    def leave_hanging(self) -> None:
        self.write(SECOND, b"hanging")
        announce, self._connection.announce_offsets = self._connection.announce_offsets, lambda *_: None
        try:
            self._connection.add_offsets(self.id, MemberIdentity(GROUP, -1, "", None), OFFSETS)
        finally:
            self._connection.announce_offsets = announce

    def write(self, partition: TopicPartition, value: bytes) -> None:
        batch = MemoryRecordsBuilder(
            2,
            0,
            10_000,
            transactional=True,
            producer_id=self.id.producer_id,
            producer_epoch=self.id.epoch,
            base_sequence=0,
        )
        batch.append(1, b"k", value)
        batch.close()
        topic = ProduceRequest.TopicProduceData
        request = ProduceRequest(
            transactional_id=ID,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                topic(
                    name=partition.topic,
                    partition_data=[
                        topic.PartitionProduceData(index=partition.partition, records=batch.buffer())
                    ],
                )
            ],
            max_version=11,
        )

        def accepted() -> bool:
            (answer,) = self._connection.ask_broker(request, None, 10_000).responses
            code = answer.partition_responses[0].error_code
            if code == NotLeaderForPartitionError.errno:
                return False  # the topic is new
            raise_for(code, str(partition))
            return True

        eventually(accepted, "the leader takes it")


@pytest.fixture
def successor(cluster: Cluster) -> Iterator[ExactlyOnceProducer]:
    with closing(cluster.broker.producer("p", ID, CONTENT)) as producer:
        yield producer


def all_is_stable(cluster: Cluster) -> bool:
    partitions = cluster.partitions("t")
    return cluster.admin.end_offsets(partitions) == cluster.admin.stable_end_offsets(partitions)


def read(cluster: Cluster) -> list[bytes]:
    return sorted(record.value for record in cluster.read("t", value=bytes))


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "aborted"])
def test_who_takes_the_id_over_ends_what_hangs(cluster: Cluster, successor, committed: bool, caplog):
    writer = Writer(cluster.broker)
    writer.transaction(committed=committed)
    writer.leave_hanging()
    assert not all_is_stable(cluster)
    successor.settle()
    eventually(lambda: all_is_stable(cluster), "every partition has its marker")
    assert read(cluster) == ([b"hanging", b"whole"] if committed else [])
    assert cluster.committed(GROUP) == (OFFSETS if committed else {})
    assert "t-1" in caplog.text
    assert ("was committed" if committed else "was aborted") in caplog.text


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "aborted"])
def test_who_takes_tasks_over_ends_what_hangs_of_a_member_that_is_gone(cluster: Cluster, committed: bool):
    """Its id may never be used again, and the offsets of the tasks stay unstable until then."""
    writer = Writer(cluster.broker)
    writer.transaction(committed=committed)
    writer.leave_hanging()
    assert not all_is_stable(cluster)
    cluster.broker.fence(CONTENT, [TaskId(0, 0)])
    eventually(lambda: all_is_stable(cluster), "every partition has its marker")
    assert read(cluster) == ([b"hanging", b"whole"] if committed else [])
    assert cluster.committed(GROUP) == (OFFSETS if committed else {})


def test_who_has_the_id_ends_what_hangs_after_a_connection_was_lost(cluster: Cluster, successor):
    successor.send("t", 0, b"k", b"whole", 1, ())
    successor.commit({}, None)
    Writer(cluster.broker, successor._id).leave_hanging()
    successor.settle()
    assert not all_is_stable(cluster)
    successor._errors(LOST)
    successor.settle()
    successor.send("t", 1, b"k", b"dropped", 1, ())
    successor.abort()
    successor.settle()
    eventually(lambda: all_is_stable(cluster), "every partition has its marker")
    assert read(cluster) == [b"hanging", b"whole"]
    assert cluster.committed(GROUP) == OFFSETS
