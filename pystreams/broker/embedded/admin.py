"""Administration of the embedded log: topics, offsets and groups."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from pystreams.broker.embedded import groups, log
from pystreams.broker.embedded import topics as catalog
from pystreams.broker.embedded.cleaner import SLICE_ROWS, Cleaner
from pystreams.broker.embedded.database import Database
from pystreams.broker.embedded.log import Bounds
from pystreams.broker.embedded.membership import evict_dead
from pystreams.broker.embedded.topic_config import effective
from pystreams.broker.port import (
    ANSWER_TIMEOUT_MS,
    CommittedOffset,
    Deletion,
    GroupDescription,
    TopicDescription,
    TopicSpec,
    has_members,
)
from pystreams.clock import Clock
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import MemberName, TopicPartition


class _Deleted:
    """See ``port.Deletion``."""

    done = True

    def wait(self) -> None:
        """Return at once: the deletion is complete."""


class EmbeddedAdmin:
    """See ``port.Admin``. Threads may share it."""

    def __init__(
        self, database: Database, locks: Path, clock: Clock, closed: Callable[[Database], None]
    ) -> None:
        self._database = database
        self._locks = locks
        self._clock = clock
        self._closed = closed
        self._mutex = threading.RLock()

    def partition_counts(self) -> dict[str, int]:
        with self._mutex:
            found = catalog.load_topics(self._database, None)
        return {name: len(topic.partition_ids) for name, topic in found.items()}

    def partition_racks(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, frozenset[str]]:
        """A log on one machine has no racks."""
        return {}

    def topic_id(self, name: str) -> str | None:
        with self._mutex:
            found = catalog.load_topics(self._database, [name])
        return str(found[name].topic_id) if name in found else None

    def describe_topics(self, names: Collection[str] | None = None) -> dict[str, TopicDescription]:
        """``config`` has every setting that the log supports, defaults included."""
        with self._mutex:
            found = catalog.load_topics(self._database, names)
        return {
            name: TopicDescription(name, len(topic.partition_ids), effective(topic.given_config))
            for name, topic in found.items()
        }

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        """Create all topics or none. Also raises ``ConfigError`` for settings that Kafka does not have."""
        with self._mutex:
            catalog.create_topics(self._database, topics)

    def alter_topic_config(self, name: str, config: Mapping[str, str]) -> None:
        """Change these settings and keep the others. Raises ``TopicError``, ``ConfigError``."""
        with self._mutex:
            catalog.alter_config(self._database, name, config)

    def delete_topics(self, names: Collection[str]) -> None:
        """Delete topics. Raises ``TopicError`` if one does not exist."""
        with self._mutex:
            for name in names:
                topic = catalog.load_topic(self._database, name)
                for partition_id, bounds in self._bounds(topic.partition_ids).items():
                    self._delete_before(partition_id, bounds.end_offset)
                catalog.remove_topic(self._database, name)

    def require_remaking(self, names: Collection[str]) -> None:
        """Never raises: a user who can open the file may do everything."""

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> Deletion:
        """Delete all records before the given offsets, at once.

        Raises ``TopicError``, and ``OffsetOutOfRangeError`` for an offset past the end.
        """
        with self._mutex:
            ids = catalog.partition_ids(self._database, offsets)
            bounds = self._bounds(ids.values())
            for partition, offset in offsets.items():
                if offset > bounds[ids[partition]].end_offset:
                    raise OffsetOutOfRangeError(
                        f"Records before offset {offset} cannot be deleted: the log ends before it",
                        where=f"topic-partition {partition}",
                        why=f"its end offset is {bounds[ids[partition]].end_offset}",
                    )
            for partition, offset in offsets.items():
                self._delete_before(ids[partition], offset)
        return _Deleted()

    def clean(self) -> None:
        """Apply retention and compaction to all topics now. Does nothing while another process does so."""
        with self._mutex:
            for _ in Cleaner(self._database, self._clock, self._locks).sweep(force=True):
                pass

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        return {partition: bounds.start_offset for partition, bounds in self._bounds_of(partitions).items()}

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        return {partition: bounds.end_offset for partition, bounds in self._bounds_of(partitions).items()}

    def stable_end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        """The end offsets: records of a transaction are written only when it is committed."""
        return self.end_offsets(partitions, timeout_ms)

    def offsets_for_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        with self._mutex:
            ids = catalog.partition_ids(self._database, times_ms)
            # Read the ends first: a record that arrives meanwhile lies at or after them.
            ends = self.end_offsets(times_ms.keys())
            found = {
                partition: log.first_offset_at(self._database, ids[partition], timestamp)
                for partition, timestamp in times_ms.items()
            }
        return {
            partition: ends[partition] if offset is None else offset for partition, offset in found.items()
        }

    def group_offsets(
        self, group: str, *, stable: bool = True, timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, CommittedOffset]:
        """A commit is one transaction of the log, so none is ever seen under way."""
        with self._mutex:
            return groups.committed_offsets(self._database, group)

    def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        with self._mutex:
            self._evict_dead(group)
            with self._database.transaction():
                self._require_empty(group)
                groups.commit_offsets(self._database, group, offsets)

    def delete_group(self, group: str) -> None:
        with self._mutex:
            self._evict_dead(group)
            with self._database.transaction():
                self._require_empty(group)
                self._database.write("DELETE FROM group_offsets WHERE group_id = ?", (group,))
                self._database.write("DELETE FROM consumer_groups WHERE group_id = ?", (group,))

    def group_members(self, group: str) -> list[str]:
        with self._mutex:
            self._evict_dead(group)
            return groups.member_ids(self._database, group)

    def describe_group(self, group: str) -> GroupDescription:
        with self._mutex:
            self._evict_dead(group)
            with self._database.snapshot():
                return groups.describe(self._database, group)

    def remove_members(self, group: str, members: Collection[MemberName]) -> list[MemberName]:
        with self._mutex, self._database.transaction():
            for member in members:
                groups.remove_member(self._database, group, member.member_id)
        return list(members)

    def close(self) -> None:
        self._closed(self._database)

    def _evict_dead(self, group: str) -> None:
        evict_dead(self._database, group, self._locks, self._clock.monotonic_ms())

    def _require_empty(self, group: str) -> None:
        members = groups.member_ids(self._database, group)
        if members:
            raise has_members(group, members, f"embedded log {self._database.path}")

    def _bounds_of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Bounds]:
        with self._mutex:
            ids = catalog.partition_ids(self._database, partitions)
            bounds = self._bounds(ids.values())
        return {partition: bounds[partition_id] for partition, partition_id in ids.items()}

    def _bounds(self, partition_ids: Collection[int]) -> dict[int, Bounds]:
        every = log.all_bounds(self._database)
        return {partition_id: every[partition_id] for partition_id in partition_ids}

    def _delete_before(self, partition_id: int, offset: int) -> None:
        """Delete in slices, so that other writers can write in between."""
        deleted = SLICE_ROWS
        while deleted == SLICE_ROWS:
            with self._database.transaction():
                deleted = log.delete_before(self._database, partition_id, offset, SLICE_ROWS)
