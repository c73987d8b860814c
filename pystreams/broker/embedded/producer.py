"""The producer of the embedded log: columns in memory, one SQLite transaction per commit."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from pystreams.broker.embedded import log
from pystreams.broker.embedded.cleaner import Cleaner
from pystreams.broker.embedded.columns import BATCH_RECORDS_MAX, Columns, EncodedBatch, encode
from pystreams.broker.embedded.database import Database
from pystreams.broker.embedded.groups import commit_offsets, require_claims
from pystreams.broker.embedded.membership import EmbeddedMember
from pystreams.broker.embedded.topics import Topic, load_topic, partition_id
from pystreams.broker.port import CommittedOffset, Member, check_headers, no_bytes
from pystreams.clock import Clock
from pystreams.errors import BrokerError, ProductionError, TopicError
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from pystreams.record import NO_HEADERS, Headers


class _Buffer:
    """The records sent to one partition since the last commit."""

    __slots__ = (
        "compacted",
        "headers",
        "keys",
        "partition_id",
        "timestamps",
        "topic",
        "unsuspected_bytes",
        "values",
    )

    def __init__(self, topic: Topic, partition_id: int) -> None:
        self.topic = topic
        self.partition_id = partition_id
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self.headers: dict[int, Headers] = {}  # by index: few records have any
        self.compacted = topic.config.compacts
        # Only larger values need a check of the whole record's size.
        self.unsuspected_bytes = topic.config.max_message_bytes // 2

    def encoded(self, now_ms: int) -> list[EncodedBatch]:
        timestamps = [now_ms] * len(self.values) if self.topic.config.log_append_time else self.timestamps
        headers = None
        if self.headers:
            headers = [self.headers.get(index, NO_HEADERS) for index in range(len(self.values))]
        return list(encode(Columns(self.keys, self.values, timestamps, None, headers)))

    def clear(self) -> None:
        self.keys.clear()
        self.values.clear()
        self.timestamps.clear()
        self.headers.clear()


class EmbeddedProducer:
    """See ``port.Producer``. ``send`` itself refuses a record that its topic does not accept (larger than
    ``max.message.bytes``, no key in a compacted topic), with ``ProductionError``; the other records are kept."""

    def __init__(
        self, database: Database, locks: Path, clock: Clock, closed: Callable[[Database], None]
    ) -> None:
        self._database = database
        self._clock = clock
        self._closed = closed
        self._cleaner = Cleaner(database, clock, locks)
        self._topics: dict[str, Topic] = {}
        self._buffers: dict[str, dict[int, _Buffer]] = {}
        self._sticky: dict[str, int] = {}
        self._changelogs: set[str] = set()

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        if (value.__class__ is not bytes and value is not None) or (
            key.__class__ is not bytes and key is not None
        ):
            raise no_bytes(topic, key, value)
        if partition is None:
            partition = self._choose_partition(topic, key)
        try:
            buffer = self._buffers[topic][partition]
        except KeyError:
            buffer = self._open_buffer(topic, partition)
        if value is not None and len(value) > buffer.unsuspected_bytes:
            self._check_size(buffer, partition, key, value, headers)
        if key is None and buffer.compacted:
            raise _without_key(buffer, partition)
        if headers:
            check_headers(topic, headers)
            buffer.headers[len(buffer.values)] = headers
        buffer.keys.append(key)
        buffer.values.append(value)
        buffer.timestamps.append(timestamp)

    def send_to_changelog(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        self.send(
            topic, partition, key, value, self._clock.now_ms() if timestamp is None else timestamp, headers
        )
        if topic not in self._changelogs:
            self._changelogs.add(topic)

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Member | None
    ) -> dict[TopicPartition, int]:
        """Commit in one transaction. If it raises, the records stay buffered: commit again, or ``abort``."""
        embedded_member = _own(member, offsets)
        now_ms = self._clock.now_ms()
        # Encode before taking the write lock, so that others wait only for the insertion.
        written = [
            (TopicPartition(topic, partition), buffer, buffer.encoded(now_ms))
            for topic, buffers in self._buffers.items()
            for partition, buffer in buffers.items()
            if buffer.values
        ]
        if not written and not offsets:
            return {}
        for partition_written, buffer, batches in written:
            self._check_batches(buffer, partition_written.partition, batches)
        end_offsets = {}
        with self._database.transaction():
            if embedded_member is not None:
                require_claims(self._database, embedded_member.group, embedded_member.member_id, offsets)
            for partition_written, buffer, batches in written:
                end_offset = log.append(self._database, buffer.partition_id, batches, now_ms)
                if end_offset is None:
                    self._forget_topic(partition_written.topic)
                    raise _deleted(partition_written.topic)
                if partition_written.topic in self._changelogs:
                    end_offsets[partition_written] = end_offset
            if embedded_member is not None:
                commit_offsets(self._database, embedded_member.group, offsets)
        for _, buffer, _ in written:
            buffer.clear()
        self._sticky.clear()
        self._cleaner.maybe_clean()
        return end_offsets

    def abort(self) -> None:
        self._buffers.clear()
        self._topics.clear()
        self._sticky.clear()

    def settle(self) -> None:
        """Does nothing: a commit is one transaction, whose outcome is known when it returns."""

    def postpones(self, member: Member) -> bool:
        """False: a commit checks the membership in its own transaction."""
        return False

    def close(self) -> None:
        """Close the producer. Records sent since the last commit are dropped."""
        self.abort()
        self._cleaner.close()
        self._closed(self._database)

    def _choose_partition(self, topic_name: str, key: bytes | None) -> int:
        topic = self._topics.get(topic_name)
        if topic is None:
            topic = self._topics[topic_name] = load_topic(self._database, topic_name)
        count = len(topic.partition_ids)
        if key is not None:
            return partition_for_key(key, count)
        partition = self._sticky.get(topic_name)
        buffers = self._buffers.get(topic_name, {})
        full = partition in buffers and len(buffers[partition].values) % BATCH_RECORDS_MAX == 0
        if partition is None or full:
            # Like Kafka's producer: use one partition for a whole batch, then switch to another.
            partition = self._sticky[topic_name] = random.randrange(count)  # noqa: S311
        return partition

    def _open_buffer(self, topic_name: str, partition: int) -> _Buffer:
        topic = self._topics.get(topic_name)
        if topic is None:
            topic = self._topics[topic_name] = load_topic(self._database, topic_name)
        buffer = _Buffer(topic, partition_id(self._database, topic, partition))
        self._buffers.setdefault(topic_name, {})[partition] = buffer
        return buffer

    def _check_size(
        self, buffer: _Buffer, partition: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        size = _record_bytes(key, value, headers)
        if size <= buffer.topic.config.max_message_bytes:
            return
        # The setting may have been raised since it was last read.
        buffer.topic = load_topic(self._database, buffer.topic.name)
        limit = buffer.topic.config.max_message_bytes
        if size > limit:
            raise ProductionError(
                f"A record of {size:,} bytes is too large for its topic",
                where=f"topic-partition {TopicPartition(buffer.topic.name, partition)}",
                why=f"max.message.bytes of the topic is {limit:,}",
                hint="write smaller records, or raise the limit:"
                f" pystreams topics alter {buffer.topic.name} --config max.message.bytes={size}",
            )

    def _check_batches(self, buffer: _Buffer, partition: int, batches: list[EncodedBatch]) -> None:
        """Check the sizes that ``send`` does not check: of records with large keys or headers."""
        if all(len(batch.data) <= buffer.topic.config.max_message_bytes for batch in batches):
            return
        for index, (key, value) in enumerate(zip(buffer.keys, buffer.values, strict=True)):
            self._check_size(buffer, partition, key, value, buffer.headers.get(index, NO_HEADERS))

    def _forget_topic(self, topic: str) -> None:
        self._topics.pop(topic, None)


def _own(member: Member | None, offsets: Mapping[TopicPartition, CommittedOffset]) -> EmbeddedMember | None:
    if member is None and offsets:
        raise BrokerError(
            "Offsets cannot be committed without a member",
            why="offsets belong to a group, which the member names",
            hint="pass the member, or use Admin.set_group_offsets",
        )
    if member is not None and not isinstance(member, EmbeddedMember):
        raise TypeError(f"a member of the embedded log is needed, not {type(member).__name__}")
    return member


def _record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    size = len(key or b"") + len(value or b"")
    return size + sum(len(name.encode()) + len(content or b"") for name, content in headers)


def _without_key(buffer: _Buffer, partition: int) -> ProductionError:
    return ProductionError(
        "A record without a key cannot be written to a compacted topic",
        where=f"topic-partition {TopicPartition(buffer.topic.name, partition)}",
        why="compaction keeps the last record of every key",
        hint="give the record a key, or set cleanup.policy=delete on the topic",
    )


def _deleted(topic: str) -> TopicError:
    return TopicError(
        f"Topic {topic!r} was deleted while records were being written to it",
        why="nothing of this commit was written",
        hint="create the topic again, then restart the application",
    )
