"""A task's stores out of files: entries sorted as a table has them, which RocksDB takes over as they are."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import rocksdict

from pystreams.record import ContextCell, RecordBatch
from pystreams.state.directory import (
    FORMAT_VERSION,
    OFFSETS_FILE,
    ROCKSDB_DIRECTORY,
    DirectoryLock,
    write_json,
)
from pystreams.state.formats import TIMESTAMP_BYTES, WINDOW_SUFFIX_BYTES, pack_int64, unpack_int64
from pystreams.state.resources import shared_resources
from pystreams.state.rocksdb import RocksDatabase
from pystreams.state.spec import TIMESTAMPED_KINDS, WINDOWED_KINDS, StoreKind, StoreSpec
from pystreams.state.task_state import TaskState
from pystreams.state.window_layer import SegmentedLayout

#: Entries are sorted in memory, so many bytes at a time.
SORTED_BYTES = 32 * 1024 * 1024
#: What Python needs for an entry beside the bytes themselves: a tuple, two headers of bytes, their place in a list.
_ENTRY_BYTES = 2 * sys.getsizeof(b"") + sys.getsizeof(()) + 3 * 8


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How a persistent store of this kind and retention keeps what its changelog holds."""

    kind: StoreKind
    retention_ms: int

    @property
    def timestamped(self) -> bool:
        """The table holds the timestamps of changes."""
        return self.kind in TIMESTAMPED_KINDS

    @property
    def windowed(self) -> bool:
        return self.kind in WINDOWED_KINDS

    def to_table(self, key: bytes, value: bytes, timestamp: int) -> tuple[bytes, bytes]:
        """Key and value of the table for those of the changelog."""
        if self.windowed:
            key = SegmentedLayout(self.retention_ms).of_changelog(key, window_start(key))
        return key, pack_int64(timestamp) + value if self.timestamped else value

    def from_table(self, key: bytes, value: bytes) -> tuple[bytes, bytes, int | None]:
        """Back; the timestamp is None where the table has none."""
        if self.windowed:
            key = key[TIMESTAMP_BYTES:]
        if not self.timestamped:
            return key, value, None
        return key, value[TIMESTAMP_BYTES:], unpack_int64(value)[0]


def window_start(changelog_key: bytes) -> int:
    """The start (ms) of the window that a key of a window store's changelog is about."""
    start: int = unpack_int64(changelog_key, len(changelog_key) - WINDOW_SUFFIX_BYTES)[0]
    return start


class SortedFiles:
    """Files ``<name>-0.sst`` and so on in a folder, in the making. Each key is added once, in any order."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._waiting: list[tuple[bytes, bytes]] = []
        self._size = 0
        self._files: list[Path] = []

    def add(self, key: bytes, value: bytes) -> None:
        self._waiting.append((key, value))
        self._size += len(key) + len(value) + _ENTRY_BYTES
        if self._size >= SORTED_BYTES:
            self._flush()

    def finish(self) -> list[Path]:
        """The files; none if nothing was added."""
        if self._waiting:
            self._flush()
        return self._files

    def _flush(self) -> None:
        path = self._folder / f"{self._name}-{len(self._files)}.sst"
        self._files.append(_write(path, self._waiting))
        self._waiting, self._size = [], 0


def _write(path: Path, entries: list[tuple[bytes, bytes]]) -> Path:
    entries.sort()
    writer = rocksdict.SstFileWriter(options=rocksdict.Options(raw_mode=True))
    writer.open(str(path))
    for key, value in entries:
        writer[key] = value
    writer.finish()
    return path


def build_stores(
    directory: Path,
    specs: Sequence[StoreSpec],
    files: Mapping[str, Sequence[Path]],
    latest: Mapping[str, Sequence[tuple[bytes, bytes, int]]],
) -> None:
    """Make the directory of a task whose persistent stores hold what is in ``files``, which are moved.

    ``latest`` are by window store the entries (as the changelog has them) of the greatest window start and sequence
    number: by them the store knows its time.
    """
    state = TaskState.open(directory, specs, cell=ContextCell(), cache=None, log_change=lambda _: None)
    try:
        for store, of_store in files.items():
            state.ingest(store, of_store)
        for store, entries in latest.items():
            keys, values, timestamps = (list(column) for column in zip(*entries, strict=True))
            offsets = list(range(len(keys)))
            state.restore(store, RecordBatch(store, 0, keys, values, timestamps, offsets, None, 0))
    finally:
        state.close()


def install_stores(source: Path, directory: Path, changelog_offsets: Mapping[str, int], origin: str) -> None:
    """Put stores that were built elsewhere into a task's directory, in place of what is there. ``changelog_offsets``
    say by store up to where they hold what is in its changelog.

    Raises ``StateLockedError`` while somebody has the task open.
    """
    lock = DirectoryLock(directory)
    try:
        lock.delete_contents()
        shutil.copytree(source / ROCKSDB_DIRECTORY, directory / ROCKSDB_DIRECTORY)
        database = RocksDatabase(directory / ROCKSDB_DIRECTORY, changelog_offsets, shared_resources())
        try:
            marks = {b"origin": origin.encode()}
            for store, offset in changelog_offsets.items():
                marks[b"offset/" + store.encode()] = pack_int64(offset)
            database.write((), metadata=marks)
        finally:
            database.close()
        # Last: a directory without this file is refused, so one that is half there is never taken for whole.
        write_json(directory / OFFSETS_FILE, {"format": FORMAT_VERSION, "offsets": dict(changelog_offsets)})
    finally:
        lock.release()
