"""Offsets that the group refuses between two of its generations are offered again: the transaction is not dropped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from pystreams.broker.kafka import exactly_once
from pystreams.broker.kafka.coordinator import StreamsCoordinator
from pystreams.broker.kafka.member import KafkaMember, MemberIdentity
from pystreams.broker.port import CommittedOffset
from pystreams.errors import DeliveryError, TaskMigratedError
from pystreams.ids import TopicPartition
from tests.kafka.support import Cluster
from tests.live.support import eventually
from tests.unit.broker.log_helpers import deal

OFFSETS = {TopicPartition("t", 0): CommittedOffset(3)}


@pytest.fixture
def member(cluster: Cluster) -> Iterator[KafkaMember]:
    cluster.create("t")
    cluster.broker = cluster.broker_with(exactly_once=True)
    with closing(
        cluster.broker.member("c", "g", ["t"], bytes, deal("t", 1), transactional_id="g-1")
    ) as member:
        for event in eventually(member.poll, "it is a member"):
            member.claim(event.partitions)
        yield member


@pytest.fixture
def producer(cluster: Cluster, member: KafkaMember):
    with closing(cluster.broker.producer("p", "g-1")) as producer:
        producer.send("t", 0, b"k", b"v", 1, ())
        yield producer


@pytest.fixture
def stale(member: KafkaMember, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many times more the member knows only the generation that has ended."""
    left = [3]

    def identity() -> MemberIdentity:
        now = KafkaMember.identity(member)
        if not left[0]:
            return now
        left[0] -= 1
        return now._replace(generation=now.generation - 1)

    monkeypatch.setattr(member, "identity", identity)
    return left


def read(cluster: Cluster) -> list[bytes]:
    return [record.value for record in cluster.read("t", value=bytes)]


def test_a_transaction_is_committed_with_the_next_generation(
    cluster: Cluster, producer, member, stale: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(StreamsCoordinator, "joining", True)
    producer.commit(OFFSETS, member)
    assert stale == [0]
    assert read(cluster) == [b"v"]
    assert cluster.committed("g") == OFFSETS


def test_a_group_that_does_not_come_to_its_next_generation_costs_the_transaction(
    cluster: Cluster, producer, member, stale: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(StreamsCoordinator, "joining", True)
    monkeypatch.setattr(exactly_once, "_OFFSETS_TIMEOUT_S", 0.2)
    stale[0] = 1_000_000
    with pytest.raises(DeliveryError, match="between two generations"):
        producer.commit(OFFSETS, member)
    producer.abort()
    producer.settle()
    assert read(cluster) == []
    assert cluster.committed("g") == {}


def test_a_member_without_which_the_group_goes_on_commits_nothing(
    cluster: Cluster, producer, member, stale: list[int]
):
    with pytest.raises(TaskMigratedError, match="continued without this member"):
        producer.commit(OFFSETS, member)
    producer.abort()
    producer.settle()
    assert read(cluster) == []
