"""Writes overflow records: the metadata that does not fit beside a task's offsets. Each commit that needs one includes
its own record.

With exactly-once, and on the embedded log, the record is in the transaction of the commit. With at-least-once on Kafka,
it is in its topic before the offsets are committed. Records without a reference from a commit are never used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from pystreams.broker.port import Admin, TopicSpec
from pystreams.clock import Clock
from pystreams.engine.dense_numbers import pack_numbers
from pystreams.engine.overflow import OverflowReference, digest_of, overflow_topic
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import NO_HEADERS, Headers

#: Writes a record as part of the commit: topic, partition, key, value, timestamp, headers.
Send: TypeAlias = Callable[[str, int, bytes, bytes, int, Headers], None]

#: No record is deleted by age, because a task may commit nothing for weeks. ``purge`` deletes old records, and frees
#: whole segments on Kafka.
_TOPIC: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": str(1 << 20)}


class OverflowTopics:
    """Creates topics for the tasks of a thread, when the first of them needs one."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._existing: set[str] = set()

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic, if it does not exist. Raises ``TopicError``, ``BrokerUnavailableError``."""
        if topic not in self._existing:
            self._admin.create_topics([TopicSpec(topic, partitions, _TOPIC)])
            self._existing.add(topic)


class OverflowWriter:
    """Writes for one task. Implements ``offset_metadata.Overflow``."""

    def __init__(
        self,
        application_id: str,
        task: TaskId,
        partitions: int,
        topics: OverflowTopics,
        send: Send,
        clock: Clock,
    ) -> None:
        """``partitions`` counts the tasks of the sub-topology."""
        self._application_id = application_id
        self._task = task
        self._partitions = partitions
        self._send = send
        self._topics = topics
        self._clock = clock
        topic = overflow_topic(application_id, task.subtopology, partitions)
        #: The partition of its records.
        self.place = TopicPartition(topic, task.partition)
        #: The next record comes at this offset or later.
        self._first_offset = 0
        self._sent: OverflowReference | None = None
        self._last: OverflowReference | None = None

    @property
    def in_use(self) -> bool:
        """Whether the last commit with metadata, by this process or another one, has written an overflow record."""
        return self._last is not None

    def go_on(self, references: Collection[OverflowReference]) -> None:
        """Continue after the overflow records of the task's last commit. If the program has changed, there may be
        several, and some may be in other topics than this task's."""
        for reference in references:
            if reference.place(self._application_id) == self.place and (
                reference.first_offset >= self._first_offset
            ):
                self._last, self._first_offset = reference, reference.first_offset

    def __call__(self, numbers: Mapping[str, int], has_emitted: bool) -> OverflowReference:
        """Write these numbers, unless the record of the last commit has them already. Raises ``TopicError`` if there is
        no topic and it cannot be created, ``BrokerUnavailableError``."""
        value = pack_numbers(numbers)
        digest = digest_of(value)
        if self._last is not None and self._last.digest == digest:
            return self._last
        self._topics.create(self.place.topic, self._partitions)
        self._send(*self.place, str(self._task).encode(), value, self._clock.now_ms(), NO_HEADERS)
        subtopology, partition = self._task
        self._sent = OverflowReference(
            subtopology, self._partitions, partition, self._first_offset, digest, has_emitted
        )
        return self._sent

    def after_commit(self, end_offsets: Mapping[TopicPartition, int]) -> None:
        """A commit has succeeded. ``end_offsets`` are those of the partitions that it has written."""
        if self.place in end_offsets:
            self._last, self._first_offset = self._sent, end_offsets[self.place]
