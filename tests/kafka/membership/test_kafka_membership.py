"""What only Kafka's membership has to see to: joins that last, members that were removed, an assignment that is given
again; what every log promises of members: tests/broker.

These are promises that lean on kafka-python's private names.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import NewPartitions

from pystreams.broker.kafka.member import KafkaMember
from pystreams.broker.port import CommittedOffset, Lost, MemberInfo
from pystreams.errors import BrokerError, TaskMigratedError, TopicError
from pystreams.ids import TopicPartition
from tests.broker.following import (
    HEARTBEAT_INTERVAL_MS,
    SESSION_TIMEOUT_MS,
    Follower,
    balanced,
    follow_until,
)
from tests.kafka.support import Cluster
from tests.live.support import eventually
from tests.unit.broker.log_helpers import deal

PARTITIONS = 4
POLL_S = 0.02

Join = Callable[..., Follower]


@pytest.fixture
def journal():
    return []


@pytest.fixture
def join(cluster: Cluster, journal) -> Iterator[Join]:
    """Makes followers named a, b, ...; those still open are closed at the end."""
    cluster.create("t", partitions=PARTITIONS)
    members: list[KafkaMember] = []

    def join(name: str, assign=None, **settings) -> Follower:
        broker = cluster.broker_with(**settings) if settings else cluster.broker
        member = broker.member(name, "g", ["t"], name.encode, assign or deal("t", PARTITIONS))
        members.append(member)
        return Follower(name, member, journal)

    yield join
    for member in members:
        member.close()


def at(offset: int, *partitions: int) -> dict[TopicPartition, CommittedOffset]:
    return {TopicPartition("t", partition): CommittedOffset(offset, "note") for partition in partitions}


def test_an_assignment_is_given_again_until_it_is_claimed(join: Join):
    member = join("a").member
    first = eventually(member.poll, "an assignment")
    assert member.poll() == first
    member.claim(first[0].partitions)
    assert member.poll() == []


def test_a_text_that_is_too_long_for_the_brokers_is_reported_with_their_setting(join: Join):
    alone = join("a")
    follow_until(balanced(alone), alone)
    with pytest.raises(BrokerError, match=r"cannot be committed(.|\n)*offset\.metadata\.max\.bytes"):
        alone.member.commit({TopicPartition("t", 0): CommittedOffset(7, "x" * 5_000)})


def test_commits_go_on_while_a_join_is_held_up_by_another_member(join: Join):
    first, second = join("a"), join("b")
    follow_until(balanced(first, second), first, second)
    # Both are asked to join again, and only the first does: the broker holds its join until the second does, too.
    first.member.request_rejoin()
    first.poll()
    follow_until(lambda: first.member._coordinator.joining, first)
    for offset in range(5):
        first.poll()
        assert first.member.can_commit()
        first.member.commit(at(offset, *first.held))
        assert first.member.committed(at(0, *first.held).keys()) == at(offset, *first.held)
    follow_until(lambda: not first.member._coordinator.joining, first, second)
    first.member.commit(at(9, *first.held))
    assert not [event for event in first.events + second.events if isinstance(event, Lost)]


def test_a_member_that_is_busy_while_its_join_ends_stays_a_member(join: Join):
    first = join("a")
    follow_until(balanced(first), first)
    second = join("b")
    first.member.request_rejoin()
    first.poll()
    deadline = time.monotonic() + 1.5 * SESSION_TIMEOUT_MS / 1000
    while time.monotonic() < deadline:  # longer than the session
        second.poll()
        time.sleep(POLL_S)
    follow_until(balanced(first, second), first, second)
    assert not [event for event in first.events + second.events if isinstance(event, Lost)]


def test_a_commit_of_who_was_replaced_is_refused_and_nothing_of_it_is_written(join: Join, cluster: Cluster):
    first = join("a")
    follow_until(balanced(first), first)
    first.member.commit(at(1, 0, 1, 2, 3))
    # Somebody removes it from the group, as the coordinator does with a member that it does not hear of.
    first.member._connection.leave(first.member.member_id, 5_000)
    with pytest.raises(TaskMigratedError, match="continued without this member"):
        first.member.commit(at(5, 0, 1, 2, 3))
    assert cluster.committed("g") == at(1, 0, 1, 2, 3)
    assert isinstance(first.member.poll()[0], Lost)


def test_who_has_heard_nothing_for_a_session_asks_before_it_writes(
    join: Join, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    # Between two heartbeats.
    alone = join("a", session_timeout_ms=30_000, heartbeat_interval_ms=20_000)
    follow_until(balanced(alone), alone)
    coordinator, asked = alone.member._coordinator, []
    ask = alone.member._connection.heartbeat
    monkeypatch.setattr(
        alone.member._connection, "heartbeat", lambda *given: (asked.append(given), ask(*given))
    )
    alone.member.confirm()
    assert asked == []
    coordinator._confirmed_ms -= 31_000  # as if it had been frozen
    alone.member.confirm()
    assert len(asked) == 1
    alone.member._connection.leave(alone.member.member_id, 5_000)
    with pytest.raises(TaskMigratedError):
        alone.member.confirm()
    assert isinstance(alone.member.poll()[0], Lost)


def test_who_is_removed_while_it_joins_hears_of_the_loss_before_anything_new(join: Join):
    first, second = join("a"), join("b")
    follow_until(balanced(first, second), first, second)
    first.member.request_rejoin()
    first.poll()
    follow_until(lambda: first.member._coordinator.joining, first)
    first.member._connection.leave(first.member.member_id, 5_000)
    held = first.held
    first.events.clear()
    follow_until(lambda: bool(first.events), first, second)
    assert isinstance(first.events[0], Lost)
    assert held
    follow_until(balanced(first, second), first, second)


def test_the_assignor_sees_what_members_hold(join: Join):
    seen: list[dict[bytes, list[int]]] = []

    def assign(members: list[MemberInfo]):
        seen.append({m.user_data: sorted(p.partition for p in m.owned) for m in members})
        return deal("t", PARTITIONS)(members)

    first, second = join("a", assign), join("b", assign)
    follow_until(balanced(first), first)
    follow_until(balanced(first, second), first, second)
    assert seen == [
        {b"a": []},
        {b"a": [0, 1, 2, 3], b"b": []},
        {b"a": [0, 2], b"b": []},
    ]


def test_polls_of_a_stable_member_cost_next_to_nothing(join: Join):
    alone = join("a")
    follow_until(balanced(alone), alone)
    started = time.thread_time()
    for _ in range(1_000):
        alone.poll()
    assert time.thread_time() - started < 0.5
    assert threading.active_count() < 50


def test_partitions_that_are_added_during_a_join_are_reported_and_the_join_is_read(
    join: Join, cluster: Cluster
):
    first, second = (join(name, client_settings={"metadata.max.age.ms": "300"}) for name in ("a", "b"))
    follow_until(balanced(first, second), first, second)
    # The join of one is held until the other joins, too; meanwhile the topic grows.
    first.member.request_rejoin()
    first.poll()
    follow_until(lambda: first.member._coordinator.joining, first)
    cluster.broker._client.create_partitions([NewPartitions("t", 8)])["t"].result()
    metadata = first.member._connection.client.cluster
    follow_until(lambda: len(metadata.partitions_for_topic("t")) == 8, first)
    with pytest.raises(TopicError, match=r"'t' has 8 partitions, but had 4"):
        follow_until(lambda: False, first, second, timeout_s=10)


def test_the_membership_asks_for_nothing_but_what_it_needs(join: Join):
    asked: Counter[str] = Counter()
    alone = join("a")
    manager = alone.member._connection.client._manager
    send = manager.send

    def count(request, *arguments, **named):
        asked[type(request).__name__] += 1
        return send(request, *arguments, **named)

    manager.send = count
    follow_until(balanced(alone), alone)
    heartbeats = asked["HeartbeatRequest"]
    started = time.monotonic()
    # A while in which nothing happens is what this is about.
    while time.monotonic() < started + 2.0 or asked["HeartbeatRequest"] < heartbeats + 4:
        alone.poll()
        time.sleep(POLL_S)
    took_ms = 1000 * (time.monotonic() - started)
    assert asked["HeartbeatRequest"] - heartbeats <= 1 + took_ms / HEARTBEAT_INTERVAL_MS
    joined = {"FindCoordinatorRequest", "JoinGroupRequest", "SyncGroupRequest"}
    assert asked.keys() - joined == {"HeartbeatRequest", "MetadataRequest"}, asked
    assert asked["MetadataRequest"] <= 2
    # One to learn the member's id, one to join.
    assert asked["JoinGroupRequest"] == 2
    assert asked["SyncGroupRequest"] == 1
