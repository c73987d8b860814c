"""The compacted content of a changelog: in memory while it is small, else on the disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Final

from pystreams.backfill.local_disks import local_folder
from pystreams.broker.port import Broker
from pystreams.clock import SystemClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TopicPartition
from pystreams.state.disk.rocksdb import RocksDatabase, RocksTable
from pystreams.state.disk.rocksdb_memory import shared_resources
from pystreams.state.formats import pack_int64
from pystreams.state.value_forms import with_headers_joined
from pystreams.topics.committed_batches import SilentPartitionError, committed_batches

#: So much of a partition is kept in memory: less than half of the time that the disk takes for each entry.
MEMORY_BYTES: Final = 64 * 1024 * 1024
#: The memory that Python needs for an entry beside its bytes.
_ENTRY_BYTES: Final = 200

#: A changelog that gives nothing for so long, though there must be more, cannot be read now.
_SILENCE_MS_MAX = 60_000.0
_TABLE = "left"


class LastValues:
    """By key the timestamp and value of the last record of a changelog partition; ``with_headers``: they stand before
    the value."""

    def __init__(self, broker: Broker, changelog: TopicPartition, *, with_headers: bool = False) -> None:
        self._parent = local_folder(changelog.partition)
        self._memory: dict[bytes, bytes] = {}
        self._size = 0
        self._folder: Path | None = None
        self._database: RocksDatabase | None = None
        self._table: RocksTable | None = None
        self._load(broker, changelog, with_headers)

    def __enter__(self) -> LastValues:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: bytes) -> bytes | None:
        """Timestamp (int64) and value; None if there is nothing."""
        return self._memory.get(key) if self._table is None else self._table.get(key)

    def update(self, changes: Mapping[bytes, bytes | None]) -> None:
        """None deletes."""
        if self._database is not None and self._table is not None:
            self._database.write([(self._table, changes)])
            return
        for key, value in changes.items():
            old = self._memory.pop(key, None)
            if old is not None:
                self._size -= _ENTRY_BYTES + len(key) + len(old)
            if value is not None:
                self._memory[key] = value
                self._size += _ENTRY_BYTES + len(key) + len(value)
        if self._size > MEMORY_BYTES:
            self._go_to_disk()

    def remaining(self) -> Iterator[bytes]:
        """The keys that have not been deleted."""
        if self._table is None:
            yield from self._memory
            return
        for key, _ in self._table.scan(None, None, upper_inclusive=False, reverse=False):
            yield key

    def close(self) -> None:
        database, self._database, self._table = self._database, None, None
        if database is not None:
            database.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _go_to_disk(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pystreams-changelog-", dir=self._parent))
        self._database = RocksDatabase(self._folder / "rocksdb", [_TABLE], shared_resources())
        self._table = self._database.tables[_TABLE]
        self._database.write([(self._table, self._memory)])
        self._memory = {}

    def _load(self, broker: Broker, changelog: TopicPartition, with_headers: bool) -> None:
        try:
            for keys, packed in committed_records(broker, changelog, with_headers=with_headers):
                self.update(dict(zip(keys, packed, strict=True)))
        except BaseException:
            self.close()
            raise


def committed_records(
    broker: Broker, partition: TopicPartition, *, with_headers: bool = False
) -> Generator[tuple[list[bytes], list[bytes | None]]]:
    """The committed records of a changelog, batch by batch: keys, and timestamps with values (None: deleted), before
    which headers stand if they are wanted."""
    with closing(broker.admin()) as admin:
        try:
            for batch in committed_batches(broker, admin, partition, SystemClock(), _SILENCE_MS_MAX):
                values = with_headers_joined(batch) if with_headers else batch.values
                rows = [
                    (key, None if value is None else pack_int64(timestamp) + value)
                    for key, value, timestamp in zip(batch.keys, values, batch.timestamps, strict=True)
                    if key is not None
                ]
                yield [key for key, _ in rows], [packed for _, packed in rows]
        except SilentPartitionError as error:
            raise _silent(broker, partition, error.position, error.end_offset) from error


def _silent(broker: Broker, partition: TopicPartition, position: int, end: int) -> BrokerUnavailableError:
    return BrokerUnavailableError(
        f"changelog {partition} cannot be read to its end",
        where=f"{broker.description}, position {position} of {end}",
        why=f"nothing arrived for {_SILENCE_MS_MAX / 1000:g} s: an open transaction hides the records after it, or the "
        "partition's leader is down",
        hint="the transaction of a killed writer ends after its transaction.timeout.ms; hand over again after that "
        "(resume)",
    )
