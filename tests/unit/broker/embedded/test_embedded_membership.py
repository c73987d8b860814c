"""Membership on the embedded log: at most one holder of a partition, all are held in the end, zombies are refused."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.embedded.membership import EmbeddedMember
from pystreams.broker.port import Assigned, CommittedOffset, Lost, MemberAssignment
from pystreams.errors import BrokerError, TaskMigratedError
from pystreams.ids import TopicPartition
from tests.unit.broker.log_helpers import create, deal, values

PARTITIONS = tuple(TopicPartition("t", number) for number in range(4))
IN_TURN = deal("t", len(PARTITIONS))


@pytest.fixture(autouse=True)
def topic(broker):
    create(broker, "t", len(PARTITIONS))


@pytest.fixture
def join(broker):
    """Makes members named a, b, ...; those still open are closed at the end."""
    members = []

    def join(name: str, assign=IN_TURN) -> EmbeddedMember:
        member = broker.member(name, "g", ["t"], name.encode, assign)
        members.append(member)
        return member

    yield join
    for member in members:
        member.close()


def held(event: Assigned | Lost) -> list[int]:
    assert isinstance(event, Assigned)
    return [partition.partition for partition in event.partitions]


def follow(member: EmbeddedMember) -> list[int] | None:
    """Poll, and do as told at once; what the member holds if it was told anything."""
    events = member.poll()
    for event in events:
        if isinstance(event, Assigned):
            member.claim(event.partitions)
    return held(events[-1]) if events else None


def commit(
    broker: EmbeddedBroker, member: EmbeddedMember, partitions: Iterable[TopicPartition], offset: int = 1
) -> None:
    producer = broker.producer("test", "test")
    try:
        producer.send("t", 0, None, b"output", 1, ())
        producer.commit(dict.fromkeys(partitions, CommittedOffset(offset)), member)
    finally:
        producer.close()


def test_a_partition_is_handed_over_only_when_its_holder_gives_it_up(join):
    a, b = join("a"), join("b")
    assert follow(a) == [0, 1, 2, 3]
    assert follow(b) == []
    (event,) = a.poll()
    assert held(event) == [0, 2]
    assert follow(b) is None
    a.claim([PARTITIONS[0], PARTITIONS[2], PARTITIONS[3]])
    assert follow(b) == [1]
    a.claim([PARTITIONS[0], PARTITIONS[2]])
    assert follow(b) == [1, 3]
    assert follow(a) is None


def test_the_holder_commits_until_it_gives_up(join, broker):
    a, b = join("a"), join("b")
    follow(a)
    follow(b)
    a.poll()
    commit(broker, a, PARTITIONS)
    a.claim([PARTITIONS[0], PARTITIONS[2]])
    with pytest.raises(TaskMigratedError, match="does not hold t-1, t-3"):
        commit(broker, a, PARTITIONS, offset=2)
    commit(broker, a, [PARTITIONS[0]], offset=2)
    assert follow(b) == [1, 3]
    assert b.committed(PARTITIONS[:2]) == {
        PARTITIONS[0]: CommittedOffset(2),
        PARTITIONS[1]: CommittedOffset(1),
    }


def test_a_refused_commit_writes_nothing_at_all(join, broker):
    a = join("a")
    with pytest.raises(TaskMigratedError):
        commit(broker, a, [PARTITIONS[0]])
    follow(a)
    assert a.committed(PARTITIONS[:1]) == {PARTITIONS[0]: None}
    assert values(broker) == []


def test_who_leaves_frees_its_partitions_at_once(join):
    a, b = join("a"), join("b")
    follow(a), follow(b), follow(a)
    assert follow(b) == [1, 3]
    a.close()
    assert follow(b) == [0, 1, 2, 3]


def test_a_dead_process_is_noticed_by_its_lock(join, broker, clock):
    a, b = join("a"), join("b")
    follow(a), follow(b), follow(a), follow(b)
    a._lock.release()
    clock.advance_ms(250)
    assert follow(b) == [0, 1, 2, 3]
    with pytest.raises(TaskMigratedError, match="was removed"):
        commit(broker, a, [PARTITIONS[0]])


def test_who_slept_through_its_session_is_replaced_and_learns_it_when_it_wakes(join, broker, clock):
    a, b = join("a"), join("b")
    follow(a), follow(b), follow(a), follow(b)
    asleep = a.member_id
    for _ in range(15):
        clock.advance_ms(3_000)
        follow(b)
    assert follow(b) is None
    clock.advance_ms(3_000)
    assert follow(b) == [0, 1, 2, 3]
    with pytest.raises(TaskMigratedError):
        commit(broker, a, [PARTITIONS[0]])
    with pytest.raises(TaskMigratedError):
        commit(broker, a, [])
    (event,) = a.poll()
    assert isinstance(event, Lost)
    assert asleep in event.reason
    assert not a.can_commit()
    assert follow(a) == []
    assert a.member_id != asleep
    assert follow(b) == [1, 3]
    assert follow(a) == [0, 2]


def test_who_is_alone_may_be_busy_for_as_long_as_it_likes(join, broker, clock):
    a = join("a")
    follow(a)
    clock.advance_ms(10_000_000)
    assert a.poll() == []
    commit(broker, a, PARTITIONS)


def test_who_goes_without_leaving_keeps_its_partitions_for_the_session(join, clock):
    a, b = join("a"), join("b")
    follow(a), follow(b), follow(a), follow(b)
    a.close(leave=False)
    clock.advance_ms(30_000)
    assert follow(b) is None
    clock.advance_ms(16_000)
    assert follow(b) == [0, 1, 2, 3]


def test_a_topic_that_appears_has_the_assignor_run_again(broker):
    assignments = []

    def assign(members):
        assignments.append(len(members))
        return IN_TURN(members)

    member = broker.member("a", "g", ["t", "later"], lambda: b"a", assign)
    follow(member)
    create(broker, "unrelated")
    assert follow(member) is None
    create(broker, "later")
    assert follow(member) == [0, 1, 2, 3]
    assert len(assignments) == 2
    member.close()


def test_an_assignor_that_raises_is_asked_again(join):
    answers = [RuntimeError("not yet"), IN_TURN]

    def assign(members):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(members)

    member = join("a", assign)
    with pytest.raises(RuntimeError, match="not yet"):
        member.poll()
    assert follow(member) == [0, 1, 2, 3]


def test_an_assignor_that_gives_a_partition_twice_is_refused(join):
    def assign(members):
        return {member.member_id: MemberAssignment(PARTITIONS[:1], b"") for member in members}

    a, b = join("a", assign), join("b", assign)
    follow(a)
    with pytest.raises(BrokerError, match="two members"):
        b.poll()


def test_a_poll_without_news_writes_nothing(join, broker, clock):
    a, b = join("a"), join("b")
    follow(a), follow(b), follow(a), follow(b)
    watcher = broker.consumer("watcher")
    version = watcher._database.data_version()
    for _ in range(10):
        clock.advance_ms(250)
        assert a.poll() == b.poll() == []
    assert watcher._database.data_version() == version
    watcher.close()


def test_a_join_that_fails_is_tried_again_and_leaves_no_lock_behind(join, broker, tmp_path):
    member = join("a")
    pages = member._database.rows("PRAGMA page_count")[0][0]
    member._database.rows(f"PRAGMA max_page_count = {pages}")
    filler = b"x" * 100_000
    told, member._user_data = member._user_data, lambda: filler
    for _ in range(2):
        with pytest.raises(BrokerError, match="disk is full"):
            member.poll()
    assert not member.can_commit()
    member._database.rows("PRAGMA max_page_count = 1000000")
    member._user_data = told
    assert follow(member) == [0, 1, 2, 3]
    assert len(list((tmp_path / "log.db.locks").glob("member-*"))) == 1
