"""Builds a task's stores from sorted files of table entries, which RocksDB ingests."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import rocksdict

from pystreams.record import ContextCell, RecordBatch
from pystreams.state.disk.directory import (
    FORMAT_VERSION,
    OFFSETS_FILE,
    ROCKSDB_DIRECTORY,
    DirectoryLock,
    write_json,
)
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import shared_resources
from pystreams.state.formats import WINDOW_SUFFIX_BYTES, pack_int64, pack_window_suffix, unpack_int64
from pystreams.state.layers.session_layer import SESSION_SUFFIX_BYTES, SegmentedSessions, session_key
from pystreams.state.layers.time_layer import Segments
from pystreams.state.layers.window_layer import SegmentedLayout
from pystreams.state.spec import EXPIRING_KINDS, StoreKind, StoreSpec, value_form
from pystreams.state.task_stores import TaskStores
from pystreams.state.value_forms import ValueForm, with_headers_apart

#: Entries are sorted in memory in batches of this size.
SORTED_BYTES = 32 * 1024 * 1024
#: Entries are restored in batches of this many.
_RESTORED_ENTRIES = 10_000
#: Python's memory per entry in addition to its bytes: a tuple, two bytes headers, a slot in a list.
_ENTRY_BYTES = 2 * sys.getsizeof(b"") + sys.getsizeof(()) + 3 * 8


@dataclass(frozen=True, slots=True)
class TableFormat:
    """The format in which a persistent store of this kind and retention stores its changelog's entries. ``by_time``: it
    has an index by time."""

    kind: StoreKind
    retention_ms: int
    by_time: bool = False
    headers: bool = False

    @classmethod
    def of(cls, spec: StoreSpec) -> TableFormat:
        """The format of a store."""
        return cls(spec.kind, spec.retention_ms, spec.by_time, spec.headers)

    @property
    def form(self) -> ValueForm:
        """The form of values in the table."""
        return value_form(self.kind, headers=self.headers)

    @property
    def timestamped(self) -> bool:
        """Whether the table has the records' timestamps."""
        return self.form.timestamped

    @property
    def expires(self) -> bool:
        """Whether the entries are windows or sessions."""
        return self.kind in EXPIRING_KINDS

    def time_of(self, changelog_key: bytes) -> int:
        """The start of the window, or the end of the session (ms), in a key of the changelog."""
        suffix_bytes = SESSION_SUFFIX_BYTES if self.kind == "session" else WINDOW_SUFFIX_BYTES
        time: int = unpack_int64(changelog_key, len(changelog_key) - suffix_bytes)[0]
        return time

    def empty_key_at(self, time_ms: int) -> bytes:
        """The changelog's key of the empty record key at a time."""
        if self.kind == "session":
            return session_key(b"", time_ms, time_ms)
        return pack_window_suffix(time_ms, 0)

    @property
    def _layout(self) -> Segments:
        layout = SegmentedSessions if self.kind == "session" else SegmentedLayout
        return layout(self.retention_ms, by_time=self.by_time)

    def to_table(self, key: bytes, value: bytes, timestamp: int) -> list[tuple[bytes, bytes]]:
        """The table's keys and values for a changelog entry (see ``store.Logged``)."""
        stored = self.form.of_logged(value, timestamp)
        if not self.expires:
            return [(key, stored)]
        layout = self._layout
        physical = layout.of_changelog(key, self.time_of(key))
        return [(physical, stored), *([(layout.index_of(physical), b"")] if self.by_time else ())]

    def from_table(self, key: bytes, value: bytes) -> tuple[bytes, bytes, int | None] | None:
        """The changelog entry; its timestamp is None if the table has none. None for an index entry."""
        found = self._layout.to_changelog(key) if self.expires else key
        return None if found is None else (found, *self.form.logged_value(value))


class SortedFiles:
    """Writes files ``<name>-0.sst`` and so on into a folder. Each key is added once, in any order."""

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
    restored: Mapping[str, Iterable[tuple[bytes, bytes | None, int]]],
    times: Mapping[str, int],
) -> None:
    """Create the directory of a task whose persistent stores consist of ``files``, which are moved.

    ``restored`` are further entries (as in the changelog) that a store must process: for window and session stores
    those with the greatest time and sequence number; for versioned stores all entries, in the order of time, because
    they have no files. ``times`` are the stream times (ms) of window and session stores, which may be later than all
    their remaining entries.
    """
    with_headers = {spec.name for spec in specs if spec.headers}
    state = TaskStores.open(directory, specs, cell=ContextCell(), log_of=lambda _: None)
    try:
        for store, of_store in files.items():
            state.ingest(store, of_store)
        state.go_on(times)
        for store, entries in restored.items():
            rest = iter(entries)
            while some := list(islice(rest, _RESTORED_ENTRIES)):
                keys, values, timestamps = (list(column) for column in zip(*some, strict=True))
                offsets = list(range(len(keys)))
                batch = RecordBatch(store, 0, keys, values, timestamps, offsets, None, 0)
                state.restore(store, with_headers_apart(batch) if store in with_headers else batch)
    finally:
        state.close()


def install_stores(source: Path, directory: Path, changelog_offsets: Mapping[str, int], origin: str) -> None:
    """Replace a task's directory by stores that were built elsewhere. ``changelog_offsets`` are, by store, the
    changelog offsets that they correspond to.

    Raises ``StateLockedError`` while another thread or process has the task open.
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
        # Last, because a directory without this file is refused: so incomplete state is never taken for complete.
        write_json(directory / OFFSETS_FILE, {"format": FORMAT_VERSION, "offsets": dict(changelog_offsets)})
    finally:
        lock.release()
