"""The content of a changelog partition at the moment that is compared.

It is read to its present end. The keys of later records have changed since then; their records before that moment may
have been compacted away.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Final, Self

from pystreams.backfill.exchange.bounded_map import BoundedMap
from pystreams.backfill.exchange.store_entries import StoreEntry
from pystreams.backfill.local_disks import local_folder
from pystreams.backfill.verification.entry_form import EntryForm, gather
from pystreams.broker.port import Broker
from pystreams.clock import SystemClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TopicPartition
from pystreams.record import ContextCell, RecordBatch
from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64
from pystreams.state.task_stores import TaskStores
from pystreams.state.value_forms import with_headers_joined
from pystreams.stream_time import NO_TIME
from pystreams.topics.committed_batches import SilentPartitionError, committed_batches

#: The part of a partition that is kept in memory; the rest is on disk.
MEMORY_BYTES: Final = 64 * 1024 * 1024
#: If no record of a changelog arrives for this time, although there must be more, it cannot be read now.
_SILENCE_MS_MAX: Final = 60_000.0
#: The number of keys that are noted at once.
_NOTED: Final = 10_000


class LiveEntries:
    """The entries of a store partition before offset ``end`` of its changelog, by their places."""

    def __init__(self, broker: Broker, changelog: TopicPartition, end: int, form: EntryForm) -> None:
        self._broker = broker
        self._changelog = changelog
        self._end = end
        self._form = form
        self._stack = ExitStack()
        #: The greatest time of an entry (ms) that was ever written, as far as it is known.
        self.observed_ms = NO_TIME
        try:
            self._changed = self._map()
            #: The keys of a versioned store.
            self._versions = self._map()
            self.content = self._map()
            self._read()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def changed_since(self, place: bytes) -> bool:
        """Whether the application has written to the key of this place after the moment."""
        return self._changed.get(self._form.key_of(place) if self._form.versioned else place) is not None

    def has_versions(self, key: bytes) -> bool:
        """Whether a versioned store has any version of a key."""
        return self._versions.get(key) is not None

    def _map(self) -> BoundedMap:
        return self._stack.enter_context(BoundedMap(local_folder(self._changelog.partition), MEMORY_BYTES))

    def _read(self) -> None:
        if self._form.versioned:
            self._restore_versions()
            return
        if self._form.by_key:
            self._read_last_values(self.content)
            return
        with BoundedMap(local_folder(self._changelog.partition), MEMORY_BYTES) as last:
            self._read_last_values(last)
            gather(self._form, _unpacked(last), self.content)

    def _read_last_values(self, into: BoundedMap) -> None:
        for batch in self._before_end():
            values = with_headers_joined(batch) if self._form.spec.headers else batch.values
            changes: dict[bytes, bytes | None] = {}
            for key, value, timestamp in zip(batch.keys, values, batch.timestamps, strict=True):
                if key is not None:
                    changes[key] = self._packed(value, timestamp)
                    self._observe(key, value)
            into.update(changes)

    def _packed(self, value: bytes | None, timestamp: int) -> bytes | None:
        if value is None:
            return None
        return self._form.content(value, timestamp) if self._form.by_key else pack_int64(timestamp) + value

    def _observe(self, key: bytes, value: bytes | None) -> None:
        form = self._form
        # A store on disk that keeps duplicates logs a null, but does not write it, so its time does not advance.
        if form.expires and not (value is None and form.spec.retain_duplicates and form.spec.persistent):
            self.observed_ms = max(self.observed_ms, form.time_of(key) or NO_TIME)

    def _restore_versions(self) -> None:
        """The versions that the store has when it is restored from the changelog."""
        folder = Path(
            tempfile.mkdtemp(prefix="pystreams-versions-", dir=local_folder(self._changelog.partition))
        )
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        spec = self._form.of_bytes
        stores = TaskStores.open(folder / "task", [spec], cell=ContextCell(), log_of=lambda _: None)
        with closing(stores):
            for batch in self._before_end():
                stores.restore(spec.name, batch)
            logged = ((key, value, since or 0) for key, value, since in stores.stores[spec.name].logged())
            gather(self._form, logged, self.content)
        places = iter(self.content)
        while some := {self._form.key_of(place): b"" for place in islice(places, _NOTED)}:
            self._versions.update(some)

    def _before_end(self) -> Iterator[RecordBatch]:
        """The records before the end; those after it are noted."""
        position = 0
        # Compaction may delete records before they are read here. The newer records of their keys are then behind the
        # end that was known at first, so a second pass finds them.
        for _ in range(2):
            for batch in self._batches(position):
                if len(batch) and batch.offsets[0] < self._end:
                    yield batch.before(self._end)
                if batch.next_offset > self._end:
                    self._note_changed(batch)
                position = batch.next_offset

    def _batches(self, start: int) -> Generator[RecordBatch]:
        with closing(self._broker.admin()) as admin:
            try:
                yield from committed_batches(
                    self._broker, admin, self._changelog, SystemClock(), _SILENCE_MS_MAX, start_offset=start
                )
            except SilentPartitionError as silent:
                raise BrokerUnavailableError(
                    f"changelog {self._changelog} cannot be read to its end",
                    where=f"{self._broker.description}, position {silent.position} of {silent.end_offset}",
                    why=f"nothing arrived for {_SILENCE_MS_MAX / 1000:g} s: an open transaction hides the records "
                    "after it, or the partition's leader is down",
                    hint="the transaction of a killed writer ends after its transaction.timeout.ms; verify again after "
                    "that",
                ) from silent

    def _note_changed(self, batch: RecordBatch) -> None:
        form = self._form
        changed = {
            key if form.versioned else form.place(key, 0): b""
            for key, offset in zip(batch.keys, batch.offsets, strict=True)
            if key is not None and offset >= self._end
        }
        self._changed.update(changed)


def _unpacked(last: BoundedMap) -> Iterator[StoreEntry]:
    for key, packed in last.items():
        yield key, packed[TIMESTAMP_BYTES:], int(unpack_int64(packed)[0])
