"""A log in memory with all its clients, whose calls fail when a test wants it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from pystreams.broker.port import CommittedOffset, TopicDescription, TopicSpec, TransactionContent
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import Headers, RecordBatch

Line = tuple[bytes | None, bytes | None, int]


class MemoryLog:
    """Records by partition, and the committed offsets of one group. A broker, its admin and its member in one.

    ``transactional``: what is sent shows with the commit; else at once.
    """

    log_id = description = "memory"

    def __init__(self, *, transactional: bool) -> None:
        self.transactional = self.reads_committed = transactional
        self.partitions: defaultdict[TopicPartition, list[Line]] = defaultdict(list)
        self.topics: dict[str, int] = {}
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        #: What a coordinator that still loads its offsets answers first, one answer after the other.
        self.loading: list[dict[TopicPartition, CommittedOffset]] = []
        self.claimed: frozenset[TopicPartition] = frozenset()
        self.fenced: list[list[TaskId]] = []
        #: How often each method was called, and how many more times it is to fail.
        self.calls: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        #: What decides what is written, in its order: commits, aborts, and inputs that are given up.
        self.journal: list[str] = []

    def called(self, method: str) -> None:
        self.calls[method] += 1
        if self.faults[method]:
            self.faults[method] -= 1
            raise BrokerUnavailableError(f"{method} is not answered")

    # Broker

    def consumer(self, client_id: str, purpose: str = "main") -> MemoryConsumer:
        return MemoryConsumer(self, purpose)

    def fence(self, content: TransactionContent, tasks: Collection[TaskId]) -> None:
        self.called("fence")
        self.fenced.append(list(tasks))

    # Admin

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        self.called("create_topics")
        self.topics.update({topic.name: topic.partitions for topic in topics})

    def partition_counts(self) -> dict[str, int]:
        """Only of topics that were created here."""
        return dict(self.topics)

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = 0
    ) -> dict[TopicPartition, int]:
        self.called("beginning_offsets")
        return dict.fromkeys(partitions, 0)

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = 0
    ) -> dict[TopicPartition, int]:
        self.called("end_offsets")
        return {partition: len(self.partitions[partition]) for partition in partitions}

    def describe_topics(self, names: Collection[str] | None = None) -> dict[str, TopicDescription]:
        """All that is known of the topics is what is usual."""
        return {}

    def stable_end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = 0
    ) -> dict[TopicPartition, int]:
        """What is not committed yet is not in the log."""
        self.called("stable_end_offsets")
        return {partition: len(self.partitions[partition]) for partition in partitions}

    def group_offsets(
        self, group: str, *, stable: bool = True, timeout_ms: float = 0
    ) -> dict[TopicPartition, CommittedOffset]:
        self.called("group_offsets")
        return dict(self.offsets)

    # Member

    def confirm(self) -> None:
        self.called("confirm")

    def keep_alive(self) -> None:
        self.called("keep_alive")

    def can_commit(self) -> bool:
        return True

    def claim(self, partitions: Collection[TopicPartition]) -> None:
        self.called("claim")
        self.claimed = frozenset(partitions)

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        self.called("committed")
        offsets = self.loading.pop(0) if self.loading else self.offsets
        return {partition: offsets.get(partition) for partition in partitions}


class MemoryConsumer:
    """Reads what it is told to; gives 10 records of a partition at once."""

    def __init__(self, log: MemoryLog, purpose: str) -> None:
        self._log = log
        self._purpose = purpose
        self.positions: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self._log.called(f"{self._purpose} assign")
        assert not self.positions.keys() & positions.keys(), "read twice"
        self.positions.update(positions)

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        if self._purpose == "main":
            self._log.journal.append("unassign")
        for partition in partitions:
            del self.positions[partition]
            self._paused.discard(partition)

    def read_anew(self, positions: Mapping[TopicPartition, int]) -> None:
        assert positions.items() <= self.positions.items(), "it goes on elsewhere"

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        self._paused.update(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        self._paused.difference_update(partitions)

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        self._log.called(f"{self._purpose} poll")
        return [self._read(partition) for partition in list(self.positions) if self._has_more(partition)]

    def _has_more(self, partition: TopicPartition) -> bool:
        return partition not in self._paused and self.positions[partition] < len(
            self._log.partitions[partition]
        )

    def _read(self, partition: TopicPartition) -> RecordBatch:
        start = self.positions[partition]
        lines = self._log.partitions[partition][start : start + 10]
        self.positions[partition] = end = start + len(lines)
        keys, values, times = (list(column) for column in zip(*lines, strict=True))
        return RecordBatch(*partition, keys, values, times, range(start, end), None, end)

    def position(self, partition: TopicPartition) -> int:
        return self.positions[partition]

    def known_end_offset(self, partition: TopicPartition) -> int | None:
        return len(self._log.partitions[partition])

    def close(self) -> None:
        self.positions.clear()


class MemoryProducer:
    """Writes to a ``MemoryLog``."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        #: What is neither committed nor aborted yet, if it shows with the commit.
        self.sent: list[tuple[TopicPartition, Line]] = []
        self._changelogs: set[TopicPartition] = set()

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        self._write(TopicPartition(topic, partition or 0), (key, value, timestamp))

    def send_to_changelog(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        self._changelogs.add(TopicPartition(topic, partition))
        self._write(TopicPartition(topic, partition), (key, value, timestamp or 0))

    def _write(self, partition: TopicPartition, line: Line) -> None:
        if self._log.transactional:
            self.sent.append((partition, line))
        else:
            self._log.partitions[partition].append(line)

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Any
    ) -> dict[TopicPartition, int]:
        self._log.called("commit")
        self._log.journal.append("commit")
        for partition, line in self.sent:
            self._log.partitions[partition].append(line)
        self.sent.clear()
        self._log.offsets.update(offsets)
        written, self._changelogs = self._changelogs, set()
        return {partition: len(self._log.partitions[partition]) for partition in written}

    def abort(self) -> None:
        self._log.journal.append("abort")
        self.sent.clear()
        self._changelogs.clear()

    def settle(self) -> None:
        self._log.called("settle")

    def postpones(self, member: Any) -> bool:
        return False

    def close(self) -> None:
        """Nothing to release."""
