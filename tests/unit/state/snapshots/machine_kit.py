"""A task on one machine after the other, whose changelogs are lists and whose snapshots are in a folder."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from pystreams.state.disk.directory import ROCKSDB_DIRECTORY
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.snapshots.installing import install, prepare
from pystreams.state.snapshots.manifest import Manifest, StoreContent, schema_of, task_folder
from pystreams.state.snapshots.reading import copy_files, find_manifests, read_manifest
from pystreams.state.snapshots.writing import SnapshotWriter, Written
from pystreams.state.spec import StoreSpec
from tests.unit.state.state_kit import RESOURCES, Task, batch_of, read_all

OF_TASK = task_folder("shop", "0_0")

Record = tuple[bytes, bytes | None, int | None]


def never() -> bool:
    return False


class Machines:
    """The changelogs of one task, its snapshots in ``place``, and the machine that runs it now."""

    def __init__(self, path: Path, *specs: StoreSpec, place: str | None = None, kept: int = 2) -> None:
        self.path, self.specs = path, specs
        self.folder = SnapshotFolder(place or str(path / "snapshots"))
        self.writer = SnapshotWriter(self.folder, kept, never)
        self.changelogs: dict[str, list[Record]] = {spec.name: [] for spec in specs}
        #: Records that the last machine has restored from changelogs.
        self.restored = 0
        self._times = itertools.count(1)
        self._numbers = itertools.count()
        self.task = self.open()

    def open(self, directory: Path | None = None) -> Task:
        self.directory = directory or self.path / f"machine-{next(self._numbers)}" / "0_0"
        self.task = Task(*self.specs, directory=self.directory, cache_bytes=0)
        self.restored = self.catch_up(self.task)
        return self.task

    def catch_up(self, task: Task) -> int:
        """Restore the stores from the changelogs, from where they are on; the records that this took."""
        count = 0
        for store, records in self.changelogs.items():
            if not task.state.stores[store].spec.restorable:
                continue
            start = task.state.changelog_offset(store) or 0
            task.state.restore(store, batch_of(records[start:], start))
            count += len(records) - start
        return count

    def commit(self) -> None:
        self.task.state.flush_caches()
        for store, *record in self.task.changelog:
            self.changelogs[store].append(tuple(record))  # type: ignore[arg-type]
        self.task.changelog.clear()
        offsets = {
            store: len(records)
            for store, records in self.changelogs.items()
            if self.task.state.stores[store].spec.restorable
        }
        self.task.state.commit(offsets)

    def checkpoint(self) -> Path:
        path = self.path / f"checkpoint-{next(self._numbers)}"
        self.task.state.checkpoint(path)
        return path

    def manifest(self, owner: str = "one") -> Manifest:
        """The manifest of the stores as they are now, without files."""
        schemas = {spec.name: schema_of(spec) for spec in self.specs}
        return Manifest(
            application_id="shop",
            task="0_0",
            owner=owner,
            taken_ms=next(self._times),
            origin="log-1",
            beginning="begun",
            stores={
                store: StoreContent(f"shop-{store}-changelog", "id", offset, schemas[store])
                for store, offset in self.task.state.durable_offsets.items()
            },
            files={},
        )

    def take(self, writer: SnapshotWriter | None = None, owner: str = "one") -> Written:
        """Take a snapshot of the task as of its last commit."""
        return (writer or self.writer).write(self.checkpoint(), self.manifest(owner))

    def snapshots(self) -> list[Manifest]:
        names = find_manifests(self.folder, OF_TASK)
        return [read_manifest(self.folder, OF_TASK, name) for name in names]

    def fetch(self, manifest: Manifest) -> Path:
        """Make a snapshot the local state of a new machine; the task's directory there."""
        directory = self.path / f"machine-{next(self._numbers)}" / "0_0"
        files = self.path / f"fetched-{next(self._numbers)}"
        offsets = {store: content.offset for store, content in manifest.stores.items()}
        copy_files(self.folder, OF_TASK, manifest, files, never)
        prepare(files, offsets, RESOURCES)
        assert install(files, directory, offsets)
        assert (directory / ROCKSDB_DIRECTORY).exists()
        return directory

    def move(self, manifest: Manifest | None) -> None:
        """Kill the machine, which commits nothing more, and go on with another one: from a snapshot, or from the
        changelogs alone."""
        self.task.state.close()
        self.open(None if manifest is None else self.fetch(manifest))

    def close(self) -> None:
        self.task.state.close()

    def __enter__(self) -> Machines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def content_of(task: Task) -> dict[str, list[Any]]:
    """All entries of all stores."""
    return {name: read_all(store.all()) for name, store in task.state.stores.items()}
