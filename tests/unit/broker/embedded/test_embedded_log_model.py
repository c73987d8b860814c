"""The embedded log is a list of lists: whatever is committed comes back, once, in order, from any position, also if the
log is closed, or if its process is killed at any moment."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.embedded.database import Database
from pystreams.broker.port import CommittedOffset, Write
from pystreams.clock import ManualClock
from pystreams.errors import OffsetOutOfRangeError, TopicError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, RecordBatch
from tests.examples import examples
from tests.unit.broker.log_helpers import Row, create, read

PARTITIONS = 2

keys = st.sampled_from([b"a", b"b", b"c", b"d"])
payloads = st.one_of(st.none(), st.binary(max_size=8))
headers = st.sampled_from([(), (("h", b"1"),), (("h", None), ("h", b"2"))])
records = st.tuples(st.integers(0, PARTITIONS - 1), keys, payloads, st.integers(0, 10_000), headers)


class Killed(Exception):  # noqa: N818 - it stands for no error
    """The process is killed at this place."""


@contextmanager
def before_commit(database: Database, look: Callable[[], object]) -> Iterator[None]:
    """Look when a transaction has done everything but its commit."""
    execute = database.rows

    def watched(statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if statement == "COMMIT":
            look()
        return execute(statement, parameters)

    with patch.object(database, "rows", watched):
        yield


def rows_of(batch: RecordBatch) -> list[Row]:
    headers = batch.headers or [NO_HEADERS] * len(batch)
    return list(zip(batch.offsets, batch.keys, batch.values, batch.timestamps, headers, strict=True))


class LogModel(RuleBasedStateMachine):
    """Topic ``d`` is only ever trimmed, topic ``c`` is compacted. One process writes, and another one reads."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.clock = ManualClock(1_000_000)
        self.copies = count(1)
        self.log: dict[TopicPartition, list[Row]] = {
            TopicPartition(topic, partition): [] for topic in "cd" for partition in range(PARTITIONS)
        }
        self.starts = dict.fromkeys(self.log, 0)
        self.compacted_to = dict.fromkeys(self.log, 0)
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        #: How far the other process has followed the log.
        self.followed = dict.fromkeys(self.log, 0)
        self.open(Path(self.directory.name) / "0" / "log.db")
        create(self.broker, "d", PARTITIONS)
        create(self.broker, "c", PARTITIONS, {"cleanup.policy": "compact", "delete.retention.ms": "0"})
        self.follow_on()

    def open(self, path: Path) -> None:
        self.path = path
        self.broker = EmbeddedBroker(path, self.clock)
        self.producer = self.broker.producer("model", "model")
        self.committer = self.broker.group_committer("model", "g", "model")
        self.admin = self.broker.admin()
        self.reader = EmbeddedBroker(path, self.clock)

    def follow_on(self) -> None:
        self.follower = self.reader.consumer("follower")
        self.follower.assign(self.followed)

    def close(self) -> None:
        for client in (self.producer, self.committer, self.admin, self.follower, self.broker, self.reader):
            client.close()

    def teardown(self) -> None:
        self.close()
        self.directory.cleanup()

    def send(self, topic, sent) -> None:
        for partition, key, value, timestamp, record_headers in sent:
            self.producer.send(topic, partition, key, value, timestamp, record_headers)

    def committed(self, topic, sent) -> None:
        for partition, key, value, timestamp, record_headers in sent:
            rows = self.log[TopicPartition(topic, partition)]
            rows.append((len(rows), key, value, timestamp, record_headers))

    @rule(
        topic=st.sampled_from("cd"),
        sent=st.lists(records, max_size=12),
        repeat=st.sampled_from([1, 1, 1, 60]),
        followed=st.booleans(),
    )
    def commit(self, topic, sent, repeat, followed) -> None:
        self.send(topic, sent * repeat)
        # Others see nothing of it before.
        with before_commit(self.producer._database, self.the_log_is_what_was_committed):
            self.producer.commit({}, None)
        self.committed(topic, sent * repeat)
        if followed:
            self.follow()

    @rule(topic=st.sampled_from("cd"), sent=st.lists(records, min_size=1, max_size=5))
    def abort(self, topic, sent) -> None:
        self.send(topic, sent)
        self.producer.abort()
        self.producer.commit({}, None)

    @rule(
        topic=st.sampled_from("cd"),
        sent=st.lists(records, max_size=3),
        offset=st.integers(0, 100),
        fails=st.booleans(),
    )
    def commit_offsets(self, topic, sent, offset, fails) -> None:
        """Of a transaction that fails at its last record, nothing stays."""
        written = [Write(topic, *record[:4]) for record in sent]
        offsets = {TopicPartition("d", offset % PARTITIONS): CommittedOffset(offset)}
        if fails:
            with pytest.raises(TopicError):
                self.committer.commit([*written, Write("gone", 0, b"k", b"v", 1)], offsets)
        else:
            with before_commit(self.committer._database, self.the_log_is_what_was_committed):
                self.committer.commit(written, offsets)
            self.committed(topic, [(*record[:4], ()) for record in sent])
            self.offsets |= offsets

    @rule(topic=st.sampled_from("cd"), sent=st.lists(records, max_size=5))
    def close_and_open(self, topic, sent) -> None:
        """What was sent and not committed is gone."""
        self.send(topic, sent)
        self.close()
        self.open(self.path)
        self.follow_on()

    @rule(
        topic=st.sampled_from("cd"),
        sent=st.lists(records, min_size=1, max_size=5),
        repeat=st.sampled_from([1, 60]),
        moment=st.sampled_from(["before the commit", "in the commit", "after the commit"]),
    )
    def crash(self, topic, sent, repeat, moment) -> None:
        """All processes are killed: what is in their files is all that stays."""
        left = self.path.parent.with_name(str(next(self.copies))) / self.path.name

        def kill() -> None:
            self.copy_files(left)
            raise Killed

        self.send(topic, sent * repeat)
        if moment == "in the commit":
            # SQLite writes pages to its files before the commit, if they are too many for its cache.
            self.producer._database.rows("PRAGMA cache_size = 1")
            with before_commit(self.producer._database, kill), suppress(Killed):
                self.producer.commit({}, None)
        else:
            if moment == "after the commit":
                self.producer.commit({}, None)
                self.committed(topic, sent * repeat)
            self.copy_files(left)
        self.close()
        self.open(left)
        self.follow_on()

    def copy_files(self, left: Path) -> None:
        """Without the index of the write-ahead log, which SQLite makes anew when all processes are gone."""
        left.parent.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{self.path}{suffix}", f"{left}{suffix}")

    @rule(partition=st.integers(0, PARTITIONS - 1), part=st.floats(0, 1))
    def delete_records(self, partition, part) -> None:
        d = TopicPartition("d", partition)
        offset = int(part * len(self.log[d]))
        self.admin.delete_records({d: offset}).wait()
        self.starts[d] = max(self.starts[d], offset)

    @rule()
    def compact(self) -> None:
        self.clock.advance_ms(1)
        self.admin.clean()
        for partition, rows in self.log.items():
            self.compacted_to[partition] = len(rows) if partition.topic == "c" else 0

    @rule()
    def follow(self) -> None:
        """The other process reads what has come since it read last."""
        behind = {p: start for p, start in self.starts.items() if self.followed[p] < start}
        if behind:
            with pytest.raises(OffsetOutOfRangeError):
                self.follower.poll(0)
            self.follower.seek(behind)
            self.followed |= behind
        found: dict[TopicPartition, list[Row]] = {partition: [] for partition in self.log}
        ends = {partition: len(rows) for partition, rows in self.log.items()}
        while (before := self.positions()) != ends:
            for batch in self.follower.poll(0):
                found[TopicPartition(batch.topic, batch.partition)] += rows_of(batch)
            assert self.positions() != before
        for partition, rows in found.items():
            start = self.followed[partition]
            assert rows == [row for row in self.expected(partition) if row[0] >= start]
        self.followed = ends

    def positions(self) -> dict[TopicPartition, int]:
        return {partition: self.follower.position(partition) for partition in self.log}

    @rule(data=st.data())
    def read_from_anywhere(self, data) -> None:
        for partition in self.log:
            expected = self.expected(partition)
            start = data.draw(st.integers(self.starts[partition], len(self.log[partition])))
            assert read(self.broker, partition, start) == [row for row in expected if row[0] >= start]

    @invariant()
    def the_log_is_what_was_committed(self) -> None:
        for partition in self.log:
            assert read(self.reader, partition) == self.expected(partition)
        ends = self.admin.end_offsets(self.log)
        assert ends == {partition: len(rows) for partition, rows in self.log.items()}
        assert self.admin.beginning_offsets(self.log) == self.starts
        assert self.admin.group_offsets("g") == self.offsets

    def expected(self, partition: TopicPartition) -> list[Row]:
        """Of what was compacted only the last of each key, tombstones gone; all of the rest."""
        rows = self.log[partition]
        clean = rows[: self.compacted_to[partition]]
        last = {row[1]: row[0] for row in clean}
        kept = [row for row in clean if last[row[1]] == row[0] and row[2] is not None]
        return [row for row in kept + rows[len(clean) :] if row[0] >= self.starts[partition]]


LogModel.TestCase.settings = examples(6, stateful_step_count=30, suppress_health_check=list(HealthCheck))
test_the_log_equals_its_model = LogModel.TestCase


def test_offsets_with_metadata_come_back_as_they_were_committed(broker) -> None:
    admin = broker.admin()
    offsets = {
        TopicPartition("t", 0): CommittedOffset(7, "AgAAAA=="),
        TopicPartition("t", 1): CommittedOffset(0),
    }
    admin.set_group_offsets("g", offsets)
    admin.set_group_offsets("g", {TopicPartition("t", 1): CommittedOffset(3, "x")})
    assert admin.group_offsets("g") == {**offsets, TopicPartition("t", 1): CommittedOffset(3, "x")}
    assert admin.group_offsets("other") == {}
    admin.delete_group("g")
    assert admin.group_offsets("g") == {}
    admin.close()
