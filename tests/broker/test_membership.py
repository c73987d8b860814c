"""Members of a group: nobody holds what another holds, all is held in the end, and who was replaced cannot commit."""

from __future__ import annotations

import time

import pytest

from pystreams.broker.port import Assigned, Broker, CommittedOffset, GroupDescription, Lost
from pystreams.errors import BrokerError, TaskMigratedError
from pystreams.ids import MemberName, TopicPartition
from tests.broker.conftest import Join
from tests.broker.following import (
    HEARTBEAT_INTERVAL_MS,
    LONG_SESSION_MS,
    SESSION_TIMEOUT_MS,
    Follower,
    Journal,
    balanced,
    follow_until,
    overlaps,
)
from tests.live.support import Log, eventually
from tests.unit.broker.log_helpers import deal

PARTITIONS = [TopicPartition("t", number) for number in range(4)]


def lost(*followers: Follower) -> list[Lost]:
    return [event for follower in followers for event in follower.events if isinstance(event, Lost)]


def test_who_is_alone_gets_everything_with_its_plan(join: Join):
    alone = join("a")
    assert not alone.member.can_commit()
    follow_until(balanced(alone), alone)
    (event,) = alone.events
    assert isinstance(event, Assigned)
    assert event.partitions == tuple(PARTITIONS)
    assert event.user_data == b"plan for a"
    assert alone.member.can_commit()
    assert alone.member.poll() == []


def test_a_partition_is_opened_only_after_its_holder_has_closed_it(join: Join, journal: Journal):
    first = join("a")
    follow_until(balanced(first), first)
    second, third = join("b"), join("c")
    follow_until(balanced(first, second, third), first, second, third)
    second.close_all()
    second.member.close()
    follow_until(balanced(first, third), first, third)
    assert overlaps(journal) == []
    assert not lost(first, second, third)


def test_what_was_given_is_reserved_before_it_is_claimed(join: Join, log: Log):
    first, second = join("a"), join("b")
    given = eventually(first.member.poll, "an assignment")
    assert given[-1].partitions == tuple(PARTITIONS)

    def polled_in_vain() -> bool:
        nonlocal given
        given = first.member.poll() or given
        second.poll()
        return second.held == frozenset()

    eventually(lambda: polled_in_vain() and len(log.admin.group_members("g")) == 2, "the second has joined")
    # Nothing can be waited for: nothing is to happen.
    assert all(polled_in_vain() for _ in range(50))
    first.member.claim(given[-1].partitions)
    first.held = frozenset(partition.partition for partition in given[-1].partitions)
    follow_until(balanced(first, second), first, second)


def test_a_partition_that_was_not_given_cannot_be_claimed(join: Join):
    with pytest.raises(BrokerError, match="not assigned to it"):
        join("a").member.claim([PARTITIONS[0]])


def test_who_leaves_frees_its_partitions_at_once_and_who_does_not_after_the_session(join: Join, log: Log):
    patient = log.broker_with(session_timeout_ms=LONG_SESSION_MS, heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS)
    first, second = join("a"), join("b", broker=patient)
    follow_until(balanced(first, second), first, second)
    second.member.close()
    follow_until(balanced(first), first)
    third = join("c")
    follow_until(balanced(first, third), first, third)
    started = time.monotonic()
    third.member.close(leave=False)
    follow_until(balanced(first), first)
    assert time.monotonic() - started > SESSION_TIMEOUT_MS / 1000 / 2


def impatient(log: Log) -> Broker:
    """One that waits only a second for the next poll of a member."""
    return log.broker_with(
        max_poll_interval_ms=1_000,
        session_timeout_ms=LONG_SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    )


def test_who_does_not_poll_is_replaced_in_the_end_and_learns_it_when_it_wakes(join: Join, log: Log):
    slow, other = join("a", broker=impatient(log)), join("b")
    follow_until(balanced(slow, other), slow, other)
    asleep = slow.member.member_id
    follow_until(balanced(other), other)
    with pytest.raises(TaskMigratedError):
        commit(log, slow, 3)
    (event,) = slow.member.poll()
    assert isinstance(event, Lost)
    assert not slow.member.can_commit()
    slow.member.claim(())
    slow.held = frozenset()
    follow_until(balanced(slow, other), slow, other)
    assert slow.member.member_id != asleep
    assert log.committed("g") == {}


def test_who_keeps_alive_during_a_long_step_stays_a_member(join: Join, log: Log):
    busy, other = join("a", broker=impatient(log)), join("b")
    follow_until(balanced(busy, other), busy, other)
    deadline = time.monotonic() + 2.5

    def has_worked() -> bool:
        busy.member.keep_alive()
        return time.monotonic() > deadline

    follow_until(has_worked, other)
    commit(log, busy, 3)
    follow_until(balanced(busy, other), busy, other)
    assert not lost(busy, other)


def test_who_works_for_longer_than_a_session_without_polling_stays_a_member(join: Join, log: Log):
    busy, other = join("a"), join("b")
    follow_until(balanced(busy, other), busy, other)
    deadline = time.monotonic() + 2 * SESSION_TIMEOUT_MS / 1000
    follow_until(lambda: time.monotonic() > deadline, other)
    assert len(other.held) == 2
    commit(log, busy, 3)
    follow_until(balanced(busy, other), busy, other)
    assert not lost(busy, other)


def test_a_requested_rejoin_shows_the_assignor_fresh_user_data(log: Log):
    log.create("t", partitions=4)
    seen: list[list[tuple[bytes, int]]] = []
    told = [b"one"]

    def assign(members):
        seen.append([(member.user_data, len(member.owned)) for member in members])
        return deal("t", 4)(members)

    follower = Follower("a", log.broker.member("a", "g", ["t"], lambda: told[0], assign), [])
    follow_until(balanced(follower), follower)
    told[0] = b"two"
    follower.poll()
    follower.member.request_rejoin()
    follow_until(lambda: len(follower.events) == 2, follower)
    assert follower.events[1].user_data == b"plan for two"
    assert seen == [[(b"one", 0)], [(b"two", 4)]]
    follower.member.close()


def test_what_the_assignor_raises_comes_out_of_the_poll_of_who_asked_it(join: Join):
    def fail(members):
        raise ValueError("no idea")

    with pytest.raises(ValueError, match="no idea"):
        follow_until(lambda: False, join("a", fail))


def test_the_assignor_may_ask_the_log_itself(join: Join, log: Log):
    def assign(members):
        log.create("internal", partitions=2)
        assert log.admin.partition_counts()["t"] == 4
        return deal("t", 4)(members)

    alone = join("a", assign)
    follow_until(balanced(alone), alone)
    assert log.admin.partition_counts() == {"t": 4, "internal": 2}


def test_groups_do_not_see_each_other(join: Join, log: Log):
    one = join("a")
    follow_until(balanced(one), one)
    other = Follower("o", log.broker.member("o", "other", ["t"], lambda: b"o", deal("t", 4)), [])
    follow_until(balanced(other), other, one)
    assert len(one.events) == 1
    other.member.close()


# Commits


def commit(log: Log, follower: Follower, offset: int, *partitions: int) -> None:
    """As a task does it: outputs, and the offsets of inputs (without a number: of all that it holds)."""
    producer = log.broker.producer("p", "p")
    try:
        producer.send("out", 0, b"k", b"output", 1, ()) if "out" in log.admin.partition_counts() else None
        producer.commit(at(offset, *(partitions or follower.held)), follower.member)
    finally:
        producer.close()


def at(offset: int, *partitions: int) -> dict[TopicPartition, CommittedOffset]:
    return {PARTITIONS[partition]: CommittedOffset(offset, "note: ü") for partition in partitions}


def test_offsets_come_back_with_their_text_byte_for_byte(join: Join, log: Log):
    log.create("out")
    alone = join("a")
    follow_until(balanced(alone), alone)
    commit(log, alone, 7, 0, 2)
    assert alone.member.committed(PARTITIONS[:2]) == {**at(7, 0), PARTITIONS[1]: None}
    assert log.committed("g") == at(7, 0, 2)
    assert len(log.read("out", value=bytes)) == 1


def test_who_has_not_joined_commits_nothing(join: Join, log: Log):
    stranger = join("a")
    with pytest.raises(TaskMigratedError):
        commit(log, stranger, 1, 0)
    assert log.committed("g") == {}


def test_the_holder_commits_until_it_gives_up(join: Join, log: Log):
    first, second = join("a"), join("b")
    follow_until(balanced(first), first)
    commit(log, first, 1)
    follow_until(balanced(first, second), first, second)
    commit(log, first, 2)
    commit(log, second, 3)
    assert {offset.offset for offset in log.committed("g").values()} == {2, 3}
    second.member.confirm()
    assert second.member.committed([PARTITIONS[p] for p in first.held]) == at(2, *first.held)
    assert log.admin.group_offsets("g", stable=False) == log.admin.group_offsets("g")


def test_offsets_of_a_group_with_members_cannot_be_overwritten(join: Join, log: Log):
    alone = join("a")
    follow_until(balanced(alone), alone)
    assert log.admin.group_members("g") == [alone.member.member_id]
    with pytest.raises(BrokerError, match="has 1 member:"):
        log.admin.set_group_offsets("g", at(3, 0))
    with pytest.raises(BrokerError, match="has 1 member:"):
        log.admin.delete_group("g")
    assert log.committed("g") == {}
    alone.member.close()
    assert log.admin.group_members("g") == []
    log.admin.set_group_offsets("g", at(3, 0))
    assert log.committed("g") == at(3, 0)
    log.admin.delete_group("g")
    assert log.committed("g") == {}


def test_a_group_without_members_is_not_rebalancing(join: Join, log: Log):
    nobody = GroupDescription()
    assert log.admin.describe_group("g") == nobody
    first, second = join("a"), join("b")
    follow_until(balanced(first, second), first, second)
    follow_until(lambda: not log.admin.describe_group("g").rebalancing, first, second)
    second.member.close()
    follow_until(balanced(first), first)
    first.member.close()
    # The last member that leaves changes the group, as each member did before it.
    eventually(lambda: log.admin.describe_group("g") == nobody, "nobody is a member")


def test_who_was_removed_as_dead_frees_its_partitions_and_learns_it(join: Join, log: Log):
    patient = log.broker_with(session_timeout_ms=LONG_SESSION_MS, heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS)
    first, second = join("a"), join("b", broker=patient)
    follow_until(balanced(first, second), first, second)
    log.admin.remove_members("g", [MemberName(second.member.member_id), MemberName("nobody")])
    first.member.look()
    follow_until(balanced(first), first)
    follow_until(lambda: bool(lost(second)), second)
