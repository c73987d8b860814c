"""T13: a static member that comes back is the same and disturbs nobody; one that was replaced gets an error, and
commits nothing."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import ConsumerGroupState

from pystreams.broker.kafka import KafkaBroker
from pystreams.broker.kafka.member import KafkaMember
from pystreams.broker.port import CommittedOffset, Lost
from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition
from pystreams.metrics import names
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.streams import Streams
from tests.broker.following import LONG_SESSION_MS, SESSION_TIMEOUT_MS, Follower, follow_until
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually, running
from tests.unit.broker.log_helpers import deal

PARTITIONS = 4


@pytest.fixture
def journal():
    return []


@pytest.fixture
def join(cluster: Cluster, journal):
    cluster.create("t", partitions=PARTITIONS)
    members: list[KafkaMember] = []

    def join(name: str, instance_id: str | None, broker: KafkaBroker | None = None) -> Follower:
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


def generation(cluster: Cluster, *followers: Follower) -> int:
    """The generation of a group that is at rest, as the coordinator has confirmed it to each member."""
    describe = cluster.broker._client.describe_consumer_groups
    follow_until(lambda: describe(["g"])["g"].result().state is ConsumerGroupState.STABLE, *followers)
    for follower in followers:
        # The coordinator refuses a commit with another generation than its own.
        follower.member.commit({TopicPartition("t", p): CommittedOffset(3) for p in follower.held})
    (found,) = {follower.member.identity().generation for follower in followers}
    return found


@pytest.mark.parametrize("role", ["leader", "another member"])
def test_a_static_member_that_comes_back_in_time_changes_no_generation_and_revokes_nothing(
    join, journal, cluster: Cluster, role: str
):
    patient = cluster.broker_with(session_timeout_ms=LONG_SESSION_MS)
    a, b = join("a", "one", patient), join("b", "two", patient)
    follow_until(lambda: len(a.held) == len(b.held) == 2, a, b)
    before = generation(cluster, a, b)
    leader, follower = (a, b) if a.member._coordinator._is_leader else (b, a)
    leaves, stays = (leader, follower) if role == "leader" else (follower, leader)
    held, seen, noted = leaves.held, len(stays.events), len(journal)
    leaves.member.close()
    back = join(leaves.name, {"a": "one", "b": "two"}[leaves.name], patient)
    follow_until(lambda: back.held == held, back, stays)
    assert generation(cluster, back, stays) == before
    assert stays.events[seen:] == []
    assert [(name, what, partitions) for _, name, what, partitions in journal[noted:]] == [
        (back.name, "open", held)
    ]


def test_a_dynamic_member_that_comes_back_has_the_other_one_rebalance_twice(join, journal, cluster: Cluster):
    """Once when it leaves, once when it joins. The second rebalance takes two generations: in the first one the other
    member gives partitions up, and in the second one they are given to who has joined. So it revokes once."""
    patient = cluster.broker_with(session_timeout_ms=LONG_SESSION_MS)
    stays, leaves = join("a", None, patient), join("b", None, patient)
    follow_until(lambda: len(stays.held) == len(leaves.held) == 2, stays, leaves)
    before = generation(cluster, stays, leaves)
    seen, noted = len(stays.events), len(journal)

    leaves.member.close()
    follow_until(lambda: len(stays.held) == PARTITIONS, stays)
    assert generation(cluster, stays) == before + 1
    back = join("b", None, patient)
    follow_until(lambda: len(stays.held) == len(back.held) == 2, stays, back)
    assert generation(cluster, stays, back) == before + 3

    assert [(event.generation, len(event.partitions)) for event in stays.events[seen:]] == [
        (before + 1, PARTITIONS),
        (before + 2, 2),
        (before + 3, 2),
    ]
    assert [what for _, name, what, _ in journal[noted:] if name == "a"] == ["open", "close"]


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


def test_an_application_does_not_rebalance_while_its_other_process_is_restarted(cluster: Cluster):
    cluster.create("in", "out", partitions=PARTITIONS)
    cluster.broker = cluster.broker_with(session_timeout_ms=LONG_SESSION_MS)

    def start(name: str) -> Streams:
        app = cluster.app("static", state_dir=cluster.path / name, group_instance_id=name)
        app.stream("in", key=str, value=int).to("out")
        return cluster.start(app, prepare=listen_to)

    states: dict[Streams, list[ClientState]] = {}

    def listen_to(streams: Streams) -> None:
        states[streams] = []
        streams.set_state_listener(lambda new, _: states[streams].append(new))

    def share(*processes: Streams) -> bool:
        return all(
            process.state is ClientState.RUNNING and [len(t.tasks) for t in process.progress().threads] == [2]
            for process in processes
        )

    stays, leaves = start("one"), start("two")
    running(stays)
    running(leaves)
    eventually(lambda: share(stays, leaves), "each has two tasks")
    seen, rebalances = len(states[stays]), stays.metrics.total(names.REBALANCES)
    assert rebalances > 0
    assert leaves.close(30_000)
    back = start("two")
    running(back)
    eventually(lambda: share(stays, back), "each has two tasks again")
    cluster.write("in", [(f"k{i}", i, i + 1) for i in range(100)])
    eventually(lambda: cluster.all_committed("static", "in"), "all is committed")
    assert len(cluster.read("out")) == 100
    assert stays.metrics.total(names.REBALANCES) == rebalances
    assert states[stays][seen:] == []
