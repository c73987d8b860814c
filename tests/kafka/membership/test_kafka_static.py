"""T13: a static member that comes back is the same and disturbs nobody; one that was replaced gets an error, and
commits nothing."""

from __future__ import annotations

import time

import pytest

from pystreams.broker.kafka import KafkaBroker
from pystreams.broker.kafka.member import KafkaMember
from pystreams.broker.port import CommittedOffset, Lost
from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition
from tests.broker.following import LONG_SESSION_MS, SESSION_TIMEOUT_MS, Follower, follow_until
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually
from tests.unit.broker.log_helpers import deal

PARTITIONS = 4


@pytest.fixture
def journal():
    return []


@pytest.fixture
def join(cluster: Cluster, journal):
    cluster.create("t", partitions=PARTITIONS)
    members: list[KafkaMember] = []

    def join(name: str, instance_id: str, broker: KafkaBroker | None = None) -> Follower:
        member = (broker or cluster.broker).member(
            name, "g", ["t"], name.encode, deal("t", PARTITIONS), instance_id=instance_id
        )
        members.append(member)
        return Follower(name, member, journal)

    yield join
    for member in members:
        member.close(leave=True)


def two(join, broker: KafkaBroker | None = None) -> tuple[Follower, Follower]:
    """``broker``: of the second."""
    first, second = join("a", "one"), join("b", "two", broker)
    follow_until(lambda: len(first.held) == len(second.held) == 2, first, second)
    return first, second


def test_who_comes_back_in_time_has_its_partitions_again_and_nobody_else_notices(join, cluster: Cluster):
    patient = cluster.broker_with(session_timeout_ms=LONG_SESSION_MS)
    first, second = two(join, patient)
    held, seen = second.held, len(first.events)
    second.member.close()
    back = join("b", "two", patient)
    follow_until(lambda: back.held == held, back, first)
    assert len(first.events) == seen
    back.member.commit({TopicPartition("t", p): CommittedOffset(3) for p in held})


def test_who_does_not_come_back_is_waited_for_until_its_session_is_over(join):
    first, second = two(join)
    second.member.close()
    started = time.monotonic()
    follow_until(lambda: len(first.held) == PARTITIONS, first)
    assert time.monotonic() - started > SESSION_TIMEOUT_MS / 1000 / 2


def test_who_leaves_for_good_is_not_waited_for(join, cluster: Cluster):
    patient = cluster.broker_with(session_timeout_ms=LONG_SESSION_MS)
    first, second = two(join, patient)
    second.member.close(leave=True)
    follow_until(lambda: len(first.held) == PARTITIONS, first)


def test_who_was_replaced_learns_it_without_a_commit(join):
    first, second = two(join)
    held = second.held
    other = join("b", "two")
    follow_until(lambda: other.held == held, other, first)
    with pytest.raises(BrokerError, match=r"taken the place of this one(.|\n)*group_instance_id two"):
        follow_until(lambda: False, second, first, other, timeout_s=10)
    assert not [event for event in second.events if isinstance(event, Lost)]


def test_who_was_replaced_commits_nothing(join, cluster: Cluster):
    first, second = two(join)
    offsets = {TopicPartition("t", p): CommittedOffset(3) for p in second.held}
    other = join("b", "two")
    follow_until(lambda: other.held == second.held, other, first)
    with pytest.raises(BrokerError, match="taken the place of this one"):
        second.member.commit(offsets)
    assert cluster.committed("g") == {}


def test_a_thread_that_is_removed_makes_room_at_once(cluster: Cluster):
    cluster.create("in", "out", partitions=PARTITIONS)
    app = cluster.app("static", num_stream_threads=2, group_instance_id="host")
    app.stream("in", key=str, value=int).to("out")
    cluster.broker = cluster.broker_with(session_timeout_ms=60_000, heartbeat_interval_ms=200)
    streams = cluster.start(app)
    caught_up(streams)
    assert streams.remove_stream_thread(10_000) is not None
    eventually(
        lambda: sum(len(thread.tasks) for thread in streams.progress().threads) == PARTITIONS, "it has all"
    )
    cluster.write("in", [(f"k{i}", i, i + 1) for i in range(100)])
    caught_up(streams)
    assert len(cluster.read("out")) == 100
    assert streams.close(30_000)
