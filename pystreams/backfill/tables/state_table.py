"""A store as a table, from the directories that it is kept in: an application's state directory, or a snapshot."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from pystreams.backfill.columns.compacted import compacted_in
from pystreams.backfill.columns.key_spans import Spans, spans_of
from pystreams.backfill.columns.parts import Parts
from pystreams.backfill.columns.store_columns import StoreColumns, StoreRow, without_headers
from pystreams.backfill.exchange.rows import Arrow, Kind
from pystreams.backfill.exchange.store_entries import entries_of
from pystreams.backfill.local_disks import linked_copy
from pystreams.backfill.plan.manifest import MANIFEST_FILE
from pystreams.backfill.snapshot.format import StoredAs
from pystreams.backfill.snapshot.snapshot_result import SnapshotStaging
from pystreams.backfill.staging.port import Selection
from pystreams.clock import Deadline, SystemClock
from pystreams.errors import StateError, StateLockedError
from pystreams.ids import TaskId
from pystreams.record import ContextCell
from pystreams.state.disk.directory import OFFSETS_FILE, DirectoryLock, StateDirectory
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores

_LOCK_TIMEOUT_MS: Final = 5_000
_LOCK_PAUSE_S: Final = 0.01


@dataclass(frozen=True)
class StateTable:
    """A store in the directories of its tasks, as of their last commits.

    ``path`` is a state directory (``state_dir``). It must be on a file system that every worker has, and no task may be
    at work there. Tasks whose state is on other machines are not in it. The directories are not changed. Timestamps are
    null where the store keeps none.
    """

    path: str
    application_id: str
    subtopology: int
    spec: StoreSpec
    columns: StoreColumns

    @property
    def schema(self) -> Arrow:
        return self.columns.schema

    def parts(self) -> Sequence[tuple[int, str]]:
        """Partitions with their directories. Raises ``StateError`` if there is none."""
        if not self.spec.persistent:
            raise StateError(
                f"store {self.spec.name} is kept in memory only", hint="read it from its changelog"
            )
        directory = StateDirectory(Path(self.path), self.application_id)
        tasks = [task for task in directory.local_tasks() if task.subtopology == self.subtopology]
        if not tasks:
            raise StateError(
                f"no task keeps store {self.spec.name} here",
                where=str(directory.path),
                why="the folder has no task directory with this store",
                hint="check that this is the application's state_dir, and that application_id is right",
            )
        return [(task.partition, str(directory.task_directory(task))) for task in sorted(tasks)]

    def read(self, part: tuple[int, str], folder: str | None) -> Iterator[Arrow]:
        partition, directory = part
        copy = Path(tempfile.mkdtemp(prefix="pystreams-table-", dir=folder)) / Path(directory).name
        try:
            _copy(Path(directory), copy)
            task = TaskId(self.subtopology, partition)
            opened = TaskStores.open(
                copy,
                [self.spec],
                task_id=task,
                cell=ContextCell(),
                log_of=lambda _: None,
                origin=None,
            )
            with closing(opened) as state:
                store = state.stores[self.spec.name]
                where = f"store {self.spec.name}, task {task}"
                yield from self.columns.batches(_shown(store), partition, where)
        finally:
            shutil.rmtree(copy.parent)


@dataclass(frozen=True)
class SnapshotTable:
    """A store in a snapshot. ``path`` must be on a file system that every worker has. Made by ``of``."""

    path: str
    store: str
    columns: StoreColumns

    @classmethod
    def of(cls, path: str, store: str, parts: Parts, spans: Spans | None) -> SnapshotTable:
        """Without ``spans`` the snapshot says whether it is a store of windows. Raises ``StateError`` if it has no
        such store."""
        stored, _ = _stored(SnapshotStaging(Path(path)), store)
        return cls(path, store, StoreColumns(parts, spans or spans_of(stored.format.kind)))

    @property
    def schema(self) -> Arrow:
        return self.columns.schema

    def parts(self) -> Sequence[tuple[int, str]]:
        """Partitions with their directories."""
        stored, tasks = _stored(SnapshotStaging(Path(self.path)), self.store)
        return [(task, str(Path(self.path) / str(TaskId(stored.subtopology, task)))) for task in range(tasks)]

    def read(self, part: tuple[int, str], folder: str | None) -> Iterator[Arrow]:
        partition, directory = part
        copy = Path(tempfile.mkdtemp(prefix="pystreams-table-", dir=folder))
        try:
            shutil.copy2(Path(self.path) / MANIFEST_FILE, copy)
            if Path(directory).exists():
                linked_copy(Path(directory), copy / Path(directory).name)
            staging = SnapshotStaging(copy)
            stored, tasks = _stored(staging, self.store)
            rows = staging.rows(Selection(Kind.STATE, self.store, (stored.slice,), tasks), partition)
            where = f"store {self.store}, {directory}"
            if not stored.versioned:
                entries = chain.from_iterable(entries_of(some) for some in rows)
                shown = without_headers(entries) if stored.format.headers else entries
                yield from self.columns.batches(shown, partition, where)
                return
            # In the order of time: the last version of a key is its latest.
            with compacted_in(str(copy)) as compacted:
                for some in rows:
                    compacted.add(some)
                yield from self.columns.batches(compacted.entries(), partition, where)
        finally:
            shutil.rmtree(copy)


def _shown(store: Any) -> Iterator[StoreRow]:
    """The entries of a store; of a versioned one the latest versions."""
    entries: Iterator[StoreRow] = store.latest() if store.spec.kind == "versioned" else store.logged()
    return without_headers(entries) if store.spec.headers else entries


def is_snapshot(path: str) -> bool:
    """Whether a folder is a snapshot, and no state directory."""
    return (Path(path) / MANIFEST_FILE).exists()


def _stored(staging: SnapshotStaging, store: str) -> tuple[StoredAs, int]:
    """A store of a snapshot, and its number of partitions."""
    stored = staging.stores.get(store)
    if stored is None:
        raise StateError(
            f"the snapshot has no store {store}",
            where=staging.location,
            why=f"it has {', '.join(sorted(staging.stores)) or 'none'}",
        )
    return stored, len(staging.outcomes(stored.slice))


def _copy(directory: Path, to: Path) -> None:
    """Copy a task's directory under its lock. It is copied because opening a database changes it."""
    lock = _locked(directory)
    try:
        if not (directory / OFFSETS_FILE).exists():
            raise StateError("the directory of a task was deleted", where=str(directory))
        linked_copy(directory, to)
    finally:
        lock.release()


def _locked(directory: Path) -> DirectoryLock:
    """Wait for the lock, which another reader holds only for a moment."""
    deadline = Deadline(SystemClock(), _LOCK_TIMEOUT_MS)
    while True:
        try:
            return DirectoryLock(directory)
        except StateLockedError as error:
            if deadline.expired():
                error.extend(
                    where="reading a store as a table",
                    hint="stop the application, or read the store from its changelog",
                )
                raise
        time.sleep(_LOCK_PAUSE_S)
