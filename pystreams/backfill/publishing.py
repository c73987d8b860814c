"""Brings a store partition's changelog to what a backfill has computed: the last value of each key, and tombstones for
what an earlier run has left. What is there already is not written again.

It runs where the executor works, and bears to be killed and done again: its transactional id ends what a former attempt
has begun, and the changelog is read after that. What the changelog held goes to a database on the disk, so memory is
bounded whatever its size.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pystreams.backfill.records import Arrow
from pystreams.broker.port import Broker, TransactionalProducer
from pystreams.clock import SystemClock
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS
from pystreams.runtime.hand_over_check import read_record
from pystreams.state.formats import pack_int64
from pystreams.state.resources import shared_resources
from pystreams.state.rocksdb import RocksDatabase, RocksTable

_POLL_MS = 100.0
_TABLE = "left"


@dataclass(frozen=True, slots=True)
class Published:
    """What was done to a changelog: records written, left as they were, and tombstones."""

    written: int = 0
    unchanged: int = 0
    deleted: int = 0

    def __add__(self, other: Published) -> Published:
        return Published(
            self.written + other.written, self.unchanged + other.unchanged, self.deleted + other.deleted
        )

    def to_json(self) -> bytes:
        return json.dumps([self.written, self.unchanged, self.deleted]).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Published:
        return cls(*json.loads(text))


@dataclass(frozen=True, slots=True)
class PublishStore:
    """An ``executor.PartitionFunction`` for one store. ``attempt`` names the hand-over that it is part of; tombstones
    get the time ``cut_time_ms``."""

    open_broker: Callable[[], Broker]
    application_id: str
    store: str
    changelog: str
    attempt: str
    cut_time_ms: int

    def __call__(self, partition: int, batches: Iterator[Arrow]) -> bytes:
        """Raises ``StateError`` if another hand-over has begun since."""
        with ExitStack() as stack:
            broker = stack.enter_context(closing(self.open_broker()))
            producer = stack.enter_context(
                closing(
                    broker.transactional_producer(
                        "backfill", f"{self.application_id}-backfill-{self.store}-{partition}"
                    )
                )
            )
            # Asked now: a later hand-over's publisher ends our transaction, an earlier one's is ended by it.
            require_attempt(broker, self.application_id, self.attempt)
            changelog = TopicPartition(self.changelog, partition)
            left = stack.enter_context(LastValues(broker, changelog))
            return _Publishing(producer, changelog, left, self.cut_time_ms).run(batches).to_json()


def require_attempt(broker: Broker, application_id: str, attempt: str) -> None:
    """Raises ``StateError`` if another hand-over has begun since this one."""
    with closing(broker.admin()) as admin:
        record = read_record(broker, admin, application_id, SystemClock())
    if record is None or record.attempt != attempt:
        raise StateError(
            f"another hand-over to {application_id} has begun meanwhile",
            where=broker.description,
            why="two at once would mix their results",
            hint="let the other one finish; if it does not, hand over again",
        )


class _Publishing:
    """One changelog partition at work."""

    def __init__(
        self, producer: TransactionalProducer, changelog: TopicPartition, left: LastValues, cut_time_ms: int
    ) -> None:
        self._producer = producer
        self._changelog = changelog
        self._left = left
        self._cut_time_ms = cut_time_ms
        self._sent = 0

    def run(self, batches: Iterator[Arrow]) -> Published:
        written = unchanged = deleted = 0
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("key", "value", "timestamp"))
            taken: dict[bytes, bytes | None] = {}
            for key, value, timestamp in zip(*columns, strict=True):
                last = self._left.get(key)
                if last is not None:
                    taken[key] = None
                if last is not None and last == pack_int64(timestamp) + value:
                    unchanged += 1
                else:
                    self._send(key, value, timestamp)
                    written += 1
            self._left.update(taken)
        for key in self._left.remaining():
            self._send(key, None, self._cut_time_ms)
            deleted += 1
        self._producer.commit()
        return Published(written, unchanged, deleted)

    def _send(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        self._producer.send(*self._changelog, key, value, timestamp, NO_HEADERS)
        self._sent += 1
        limit = self._producer.transaction_records_max
        if limit is not None and self._sent % limit == 0:
            # Readers may see a part: that the whole is there is told when the hand-over is complete.
            self._producer.commit()


class LastValues:
    """What a changelog partition holds, compacted: by key the timestamp and value of its last record. On the disk."""

    def __init__(self, broker: Broker, changelog: TopicPartition) -> None:
        self._folder: Path | None = None
        self._database: RocksDatabase | None = None
        self._table: RocksTable | None = None
        self._load(broker, changelog)

    def __enter__(self) -> LastValues:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: bytes) -> bytes | None:
        """Timestamp (int64) and value; None if there is nothing."""
        return None if self._table is None else self._table.get(key)

    def update(self, changes: Mapping[bytes, bytes | None]) -> None:
        """None deletes."""
        if not changes:
            return
        if self._database is None:
            self._folder = Path(tempfile.mkdtemp(prefix="pystreams-changelog-", dir=local_directory()))
            self._database = RocksDatabase(self._folder / "rocksdb", [_TABLE], shared_resources())
            self._table = self._database.tables[_TABLE]
        assert self._table is not None
        self._database.write([(self._table, changes)])

    def remaining(self) -> Iterator[bytes]:
        """The keys that have not been deleted."""
        if self._table is None:
            return
        for key, _ in self._table.scan(None, None, upper_inclusive=False, reverse=False):
            yield key

    def close(self) -> None:
        database, self._database, self._table = self._database, None, None
        if database is not None:
            database.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _load(self, broker: Broker, changelog: TopicPartition) -> None:
        try:
            for keys, packed in _records(broker, changelog):
                self.update(dict(zip(keys, packed, strict=True)))
        except BaseException:
            self.close()
            raise


def _records(broker: Broker, partition: TopicPartition) -> Iterator[tuple[list[bytes], list[bytes | None]]]:
    """The committed records of a changelog, batch by batch: keys, and timestamps with values (None: deleted)."""
    with closing(broker.admin()) as admin:
        start = admin.beginning_offsets([partition])[partition]
        end = admin.end_offsets([partition])[partition]
    if start >= end:
        return
    # A restoring consumer's: what a transaction has not committed does not count.
    with closing(broker.consumer("backfill-changelog", "restore")) as consumer:
        consumer.assign({partition: start})
        while consumer.position(partition) < end:
            for batch in consumer.poll(_POLL_MS):
                rows = [
                    (key, None if value is None else pack_int64(timestamp) + value)
                    for key, value, timestamp in zip(batch.keys, batch.values, batch.timestamps, strict=True)
                    if key is not None
                ]
                yield [key for key, _ in rows], [packed for _, packed in rows]


def local_directory() -> str | None:
    """Where a worker keeps large temporary files: on Spark in its local folders, else where the machine has them."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
