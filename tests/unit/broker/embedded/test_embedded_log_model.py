"""The embedded log is a list of lists: whatever is committed comes back, once, in order, from any position."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import CommittedOffset
from pystreams.clock import ManualClock
from pystreams.ids import TopicPartition
from tests.unit.broker.log_helpers import Row, create, read

PARTITIONS = 2

keys = st.sampled_from([b"a", b"b", b"c", b"d"])
payloads = st.one_of(st.none(), st.binary(max_size=8))
headers = st.sampled_from([(), (("h", b"1"),), (("h", None), ("h", b"2"))])
records = st.tuples(st.integers(0, PARTITIONS - 1), keys, payloads, st.integers(0, 10_000), headers)


class LogModel(RuleBasedStateMachine):
    """Topic ``d`` is only ever trimmed, topic ``c`` is compacted."""

    @initialize()
    def open(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.clock = ManualClock(1_000_000)
        self.broker = EmbeddedBroker(Path(self.directory.name) / "log.db", self.clock)
        create(self.broker, "d", PARTITIONS)
        create(self.broker, "c", PARTITIONS, {"cleanup.policy": "compact", "delete.retention.ms": "0"})
        self.producer = self.broker.producer("model", "model")
        self.admin = self.broker.admin()
        self.log: dict[TopicPartition, list[Row]] = {
            TopicPartition(topic, partition): [] for topic in "cd" for partition in range(PARTITIONS)
        }
        self.starts = dict.fromkeys(self.log, 0)
        self.compacted_to = dict.fromkeys(self.log, 0)

    def teardown(self) -> None:
        self.producer.close()
        self.admin.close()
        self.broker.close()
        self.directory.cleanup()

    @rule(
        topic=st.sampled_from("cd"),
        sent=st.lists(records, max_size=12),
        repeat=st.sampled_from([1, 1, 1, 60]),
    )
    def commit(self, topic, sent, repeat) -> None:
        for partition, key, value, timestamp, record_headers in sent * repeat:
            self.producer.send(topic, partition, key, value, timestamp, record_headers)
            rows = self.log[TopicPartition(topic, partition)]
            rows.append((len(rows), key, value, timestamp, record_headers))
        self.producer.commit({}, None)

    @rule(sent=st.lists(records, min_size=1, max_size=5))
    def abort(self, sent) -> None:
        for partition, key, value, timestamp, record_headers in sent:
            self.producer.send("d", partition, key, value, timestamp, record_headers)
        self.producer.abort()
        self.producer.commit({}, None)

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

    @rule(data=st.data())
    def read_from_anywhere(self, data) -> None:
        for partition in self.log:
            expected = self.expected(partition)
            start = data.draw(st.integers(self.starts[partition], len(self.log[partition])))
            assert read(self.broker, partition, start) == [row for row in expected if row[0] >= start]

    @invariant()
    def the_log_is_what_was_committed(self) -> None:
        for partition in self.log:
            assert read(self.broker, partition) == self.expected(partition)
        ends = self.admin.end_offsets(self.log)
        assert ends == {partition: len(rows) for partition, rows in self.log.items()}
        assert self.admin.beginning_offsets(self.log) == self.starts

    def expected(self, partition: TopicPartition) -> list[Row]:
        """Of what was compacted only the last of each key, tombstones gone; all of the rest."""
        rows = self.log[partition]
        clean = rows[: self.compacted_to[partition]]
        last = {row[1]: row[0] for row in clean}
        kept = [row for row in clean if last[row[1]] == row[0] and row[2] is not None]
        return [row for row in kept + rows[len(clean) :] if row[0] >= self.starts[partition]]


LogModel.TestCase.settings = settings(
    max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
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
