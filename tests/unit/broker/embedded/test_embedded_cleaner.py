"""Retention and compaction: what Kafka would delete goes, the rest stays, offsets never move."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from pystreams.broker.embedded import cleaner
from pystreams.broker.embedded.database import lock_directory
from pystreams.broker.embedded.file_lock import FileLock
from tests.unit.broker.log_helpers import T0, create, read, values, write

DAY_MS = 86_400_000


@pytest.fixture
def admin(broker):
    admin = broker.admin()
    yield admin
    admin.close()


def offsets(broker) -> list[int]:
    return [row[0] for row in read(broker)]


def test_compaction_keeps_the_last_value_of_every_key_at_its_offset(broker, admin):
    create(broker, config={"cleanup.policy": "compact"})
    for round_ in range(10):
        write(broker, [(b"%d" % key, b"%d" % round_, round_) for key in range(300)])
    admin.clean()
    rows = read(broker)
    assert [row[0] for row in rows] == list(range(2700, 3000))
    assert {row[2] for row in rows} == {b"9"}
    assert admin.end_offsets([T0]) == {T0: 3000}
    write(broker, [(b"0", b"new", 1)])
    assert read(broker, position=3000) == [(3000, b"0", b"new", 1, ())]


def test_a_tombstone_stays_for_readers_until_its_time_is_up(broker, admin, clock):
    create(broker, config={"cleanup.policy": "compact", "delete.retention.ms": "1000"})
    write(broker, [(b"a", b"1", 1), (b"b", b"1", 1), (b"a", None, 2)])
    admin.clean()
    assert [(row[0], row[2]) for row in read(broker)] == [(1, b"1"), (2, None)]
    clock.advance_ms(1001)
    admin.clean()
    assert [(row[0], row[2]) for row in read(broker)] == [(1, b"1")]


def test_the_time_of_a_tombstone_begins_when_what_it_deletes_is_compacted_away(broker, admin, clock):
    create(broker, config={"cleanup.policy": "compact", "delete.retention.ms": "1000"})
    write(broker, [(b"a", b"1", 1), (b"b", b"1", 1)])
    write(broker, [(b"a", None, 2)])
    clock.advance_ms(5000)
    consumer = broker.consumer("slow")
    consumer.assign({T0: 2})
    admin.clean()
    (batch,) = consumer.poll(0)
    consumer.close()
    assert (batch.keys, batch.values) == ([b"a"], [None]), "who has read a's value must see it deleted"
    clock.advance_ms(1001)
    admin.clean()
    assert offsets(broker) == [1]


def test_what_is_younger_than_the_compaction_lag_stays(broker, admin, clock):
    create(broker, config={"cleanup.policy": "compact", "min.compaction.lag.ms": "1000"})
    write(broker, [(b"a", b"1", 1), (b"a", b"2", 2)])
    clock.advance_ms(600)
    write(broker, [(b"a", b"3", 3), (b"a", b"4", 4)])
    clock.advance_ms(600)
    admin.clean()
    assert offsets(broker) == [1, 2, 3]


def test_many_small_batches_become_few(broker, admin, tmp_path):
    def count_batches() -> int:
        with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
            return connection.execute("SELECT count(*) FROM batches").fetchone()[0]

    create(broker, config={"cleanup.policy": "compact"})
    for number in range(300):
        write(broker, [(b"%d" % number, b"v", number)])
    assert count_batches() == 300
    admin.clean()
    assert offsets(broker) == list(range(300))
    assert count_batches() <= 3


def test_more_dirty_keys_than_one_pass_remembers_take_more_passes(broker, admin, monkeypatch):
    monkeypatch.setattr(cleaner, "PASS_KEYS_MAX", 10)
    monkeypatch.setattr(cleaner, "SLICE_ROWS", 2)
    create(broker, config={"cleanup.policy": "compact"})
    for round_ in range(3):
        for number in range(30):
            write(broker, [(b"%d" % number, b"%d" % round_, 1)])
    admin.clean()
    assert sorted(int(row[1] or b"") for row in read(broker)) == list(range(30))
    assert set(values(broker)) == {b"2"}


def test_records_older_than_the_retention_are_deleted_from_the_head_on(broker, admin, clock):
    create(broker, config={"retention.ms": str(DAY_MS)})
    now = clock.now_ms()
    write(broker, [(b"k", b"old", now - 2 * DAY_MS)])
    write(broker, [(b"k", b"mixed", now - 2 * DAY_MS), (b"k", b"young", now)])
    write(broker, [(b"k", b"old behind young", now - 2 * DAY_MS)])
    admin.clean()
    assert values(broker) == [b"mixed", b"young", b"old behind young"]
    assert admin.beginning_offsets([T0]) == {T0: 1}
    clock.advance_ms(2 * DAY_MS)
    admin.clean()
    assert values(broker) == []
    assert admin.beginning_offsets([T0]) == admin.end_offsets([T0]) == {T0: 4}


def test_a_topic_without_retention_keeps_records_of_2013(broker, admin):
    create(broker)
    write(broker, [(b"k", b"v", 1_357_000_000_000)])
    admin.clean()
    assert values(broker) == [b"v"]


def test_retention_by_size_leaves_at_least_the_limit(broker, admin):
    create(broker, config={"retention.bytes": "25000"})
    for _ in range(10):
        write(broker, [(b"k", b"x" * 10_000, 1)])
    admin.clean()
    assert offsets(broker) == [7, 8, 9]


def test_a_topic_can_be_compacted_and_expire(broker, admin, clock):
    create(broker, config={"cleanup.policy": "compact,delete", "retention.ms": "1000"})
    now = clock.now_ms()
    write(broker, [(b"old", b"1", now - 5000)])
    write(broker, [(b"k", b"1", now), (b"k", b"2", now)])
    admin.clean()
    clock.advance_ms(1001)
    assert values(broker) in ([b"1", b"2"], [b"2"])
    admin.clean()
    assert values(broker) == []


def test_cleaning_runs_behind_commits_by_itself(broker, clock):
    create(broker, config={"cleanup.policy": "compact"})
    producer = broker.producer("test", "test")
    for number in range(40):
        producer.send("t", 0, b"k", b"%d" % number, number, ())
        producer.commit({}, None)
        clock.advance_ms(1000)
    producer.close()
    assert len(values(broker)) < 35
    assert values(broker)[-1] == b"39"


def test_a_clean_partition_is_left_alone_until_enough_of_it_is_dirty(broker, clock):
    create(broker, config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.9"})
    admin = broker.admin()
    write(broker, [(b"%d" % number, b"x" * 100, 1) for number in range(100)])
    admin.clean()
    producer = broker.producer("test", "test")
    for _ in range(50):
        producer.send("t", 0, b"1", b"y", 1, ())
        producer.commit({}, None)
        clock.advance_ms(1000)
    producer.close()
    assert len(values(broker)) == 150
    admin.clean()
    admin.close()
    assert len(values(broker)) == 100


def test_only_one_cleans_at_a_time(broker, admin, tmp_path):
    create(broker, config={"cleanup.policy": "compact"})
    write(broker, [(b"k", b"1", 1), (b"k", b"2", 2)])
    other = FileLock(lock_directory(tmp_path / "log.db") / "cleaner")
    assert other.acquire()
    admin.clean()
    assert values(broker) == [b"1", b"2"]
    other.release()
    admin.clean()
    assert values(broker) == [b"2"]
