"""Under a transactional id one writer at a time; offsets of a group and records together, or neither."""

from __future__ import annotations

import re
from contextlib import closing

import pytest

from pystreams.broker.port import CommittedOffset, Write
from pystreams.errors import BrokerError
from tests.broker.conftest import Join
from tests.broker.following import balanced, follow_until
from tests.broker.kit import P0
from tests.live.support import Log, eventually


@pytest.fixture(autouse=True)
def topic(log: Log) -> None:
    log.create("t", partitions=4)


def sees(log: Log, *values: bytes | None) -> None:
    """Readers of committed records come to see these, and no others: Kafka shows soon after a commit what is in it."""
    eventually(lambda: seen(log) == [*values], f"{values} are seen")


def seen(log: Log) -> list[bytes | None]:
    consumer = log.broker.consumer("reader", "restore")
    found: list[bytes | None] = []
    with closing(consumer):
        consumer.assign({P0: 0})
        while consumer.position(P0) < log.admin.stable_end_offsets([P0])[P0]:
            found += [value for batch in consumer.poll(100) for value in batch.values]
    return found


def test_records_are_seen_once_they_are_committed_and_never_if_they_are_not(log: Log):
    with closing(log.broker.transactional_producer("c", "id")) as producer:
        producer.send("t", 0, b"k", b"one", 1, (("h", None),))
        assert log.admin.stable_end_offsets([P0]) == {P0: 0}
        producer.commit()
        sees(log, b"one")
        producer.send("t", 0, b"k", b"dropped", 1, ())
    with closing(log.broker.transactional_producer("c", "id")) as producer:
        producer.send("t", 0, b"k", b"two", 1, ())
        producer.commit()
    sees(log, b"one", b"two")


@pytest.mark.parametrize("kind", ["transactional_producer", "group_committer"])
def test_of_two_writers_with_one_id_one_writes_at_most(log: Log, kind: str):
    """The second one is refused, or the first one can do nothing more."""
    group = ["g"] if kind == "group_committer" else []

    def make(transactional_id: str):
        return getattr(log.broker, kind)("c", *group, transactional_id)

    def write(writer, value: bytes) -> None:
        if kind == "group_committer":
            writer.commit([Write("t", 0, b"k", value, 1)], {})
        else:
            writer.send("t", 0, b"k", value, 1, ())
            writer.commit()

    first = make("id")
    write(first, b"first")
    try:
        second = make("id")
    except BrokerError as refused:
        told, expected = str(refused), [b"first", b"goes on", b"second"]
        make("another").close()
        write(first, b"goes on")
        first.close()
        second = make("id")
    else:
        with pytest.raises(BrokerError) as fenced:
            write(first, b"never")
        told, expected = str(fenced.value), [b"first", b"second"]
        first.close()
    assert re.search("another process (is writing|writes) as id", told)
    write(second, b"second")
    second.close()
    sees(log, *expected)


def test_offsets_and_records_come_together(log: Log):
    offsets = {P0: CommittedOffset(7, "text: ü")}
    with closing(log.broker.group_committer("c", "g", "id")) as committer:
        committer.probe([P0])
        assert (log.committed("g"), seen(log)) == ({}, [])
        committer.commit([Write("t", 0, b"k", b"one", 1), Write("t", 0, b"k", None, 2)], offsets)
        sees(log, b"one", None)
    eventually(lambda: log.committed("g") == offsets, "the offsets")


def test_offsets_of_a_group_with_members_are_refused_with_the_records(log: Log, join: Join):
    member = join("a")
    follow_until(balanced(member), member)
    with closing(log.broker.group_committer("c", "g", "id")) as committer:
        with pytest.raises(BrokerError, match="has 1 member:"):
            committer.commit([Write("t", 0, b"k", b"never", 1)], {P0: CommittedOffset(7)})
        assert (log.committed("g"), seen(log)) == ({}, [])
        member.member.close()
        committer.commit([Write("t", 0, b"k", b"now", 1)], {P0: CommittedOffset(7)})
        sees(log, b"now")
    eventually(lambda: log.committed("g") == {P0: CommittedOffset(7)}, "the offsets")
