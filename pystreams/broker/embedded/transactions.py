"""Writing with a transactional id: one writer at a time, identified by a lock that the kernel releases if it dies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from pystreams.broker.embedded import groups, log
from pystreams.broker.embedded.columns import Columns, encode
from pystreams.broker.embedded.database import Database
from pystreams.broker.embedded.file_lock import FileLock
from pystreams.broker.embedded.membership import evict_dead
from pystreams.broker.embedded.producer import EmbeddedProducer
from pystreams.broker.embedded.topics import load_topic, partition_id
from pystreams.broker.port import CommittedOffset, Write, has_members
from pystreams.clock import Clock
from pystreams.errors import BrokerError, TopicError
from pystreams.ids import TopicPartition
from pystreams.record import Headers

#: The maximum number of records that a commit keeps in memory, and writes while others wait.
TRANSACTION_RECORDS_MAX = 20_000


def _locked(locks: Path, transactional_id: str, where: str) -> FileLock:
    """The lock of an id. Raises ``BrokerError`` if another writer has it."""
    # Ids contain names of stores, which may have any characters.
    lock = FileLock(locks / f"transaction-{sha256(transactional_id.encode()).hexdigest()[:32]}")
    if not lock.acquire():
        raise BrokerError(
            f"another process is writing as {transactional_id}",
            where=where,
            why="the log allows one writer for each transactional id, and the other one is still running",
            hint="wait until it has ended, or stop it, then try again",
        )
    return lock


class EmbeddedTransactionalProducer:
    """See ``port.TransactionalProducer``."""

    transaction_records_max = TRANSACTION_RECORDS_MAX

    def __init__(self, producer: EmbeddedProducer, locks: Path, transactional_id: str, where: str) -> None:
        self._producer = producer
        try:
            self._lock = _locked(locks, transactional_id, where)
        except BrokerError:
            producer.close()
            raise

    def send(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        self._producer.send(topic, partition, key, value, timestamp, headers)

    def commit(self) -> None:
        self._producer.commit({}, None)

    def close(self) -> None:
        self._producer.close()
        self._lock.release()


class EmbeddedGroupCommitter:
    """See ``port.GroupCommitter``. One transaction checks the members and writes the records and offsets."""

    def __init__(
        self,
        database: Database,
        locks: Path,
        clock: Clock,
        group: str,
        transactional_id: str,
        closed: Callable[[Database], None],
    ) -> None:
        self._database = database
        self._locks = locks
        self._clock = clock
        self._group = group
        self._closed = closed
        self._where = f"embedded log {database.path}"
        try:
            self._lock = _locked(locks, transactional_id, self._where)
        except BrokerError:
            closed(database)
            raise

    def probe(self, partitions: Collection[TopicPartition]) -> None:
        """Does nothing: a process that can open the file may write to it."""

    def commit(self, records: Sequence[Write], offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Also raises ``TopicError`` for a topic that does not exist."""
        evict_dead(self._database, self._group, self._locks, self._clock.monotonic_ms())
        with self._database.transaction():
            members = groups.member_ids(self._database, self._group)
            if members:
                raise has_members(self._group, members, self._where)
            for record in records:
                self._append(record)
            groups.commit_offsets(self._database, self._group, offsets)

    def close(self) -> None:
        self._closed(self._database)
        self._lock.release()

    def _append(self, record: Write) -> None:
        topic = load_topic(self._database, record.topic)
        columns = Columns([record.key], [record.value], [record.timestamp], None, None)
        number = partition_id(self._database, topic, record.partition)
        if log.append(self._database, number, list(encode(columns)), self._clock.now_ms()) is None:
            raise TopicError(f"Topic {record.topic!r} does not exist", where=self._where)
