"""Reads a snapshot as the result of a backfill, for a hand-over or a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from pystreams.backfill.application import application_here, check_fingerprint
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.exchange.rows import Arrow, Kind
from pystreams.backfill.exchange.store_entries import StoreEntry, store_rows
from pystreams.backfill.exchange.task_outcome import Digest, TaskOutcome
from pystreams.backfill.plan.manifest import Manifest
from pystreams.backfill.plan.slices import make_plan
from pystreams.backfill.snapshot.format import BESIDE_DIRECTORY, StoredAs, content_of, unpack_version
from pystreams.backfill.sources import BATCH_ROWS
from pystreams.backfill.staging.port import Selection
from pystreams.errors import StateCorruptedError
from pystreams.ids import TaskId
from pystreams.state.disk.directory import ROCKSDB_DIRECTORY
from pystreams.state.disk.rocksdb import RocksDatabase, RocksTable
from pystreams.state.disk.rocksdb_memory import shared_resources
from pystreams.state.formats import TIMESTAMP_BYTES, unpack_int64
from pystreams.state.sorted_files import TableFormat


def open_snapshot(
    folder: str | Path, application: object, settings: Mapping[str, Any] | None = None
) -> BackfillResult:
    """A snapshot as the result of a backfill: its stores and offsets, without records for sinks. The application and
    its ``settings`` are given as to ``backfill``.

    Raises ``StateError`` if the folder holds none, or one of another format; ``TopologyError``, naming the first
    difference, if it is another application's.
    """
    staging = SnapshotStaging(Path(folder))
    manifest = staging.read_manifest()
    here = application_here(application, settings or {})
    loaded = here.load()
    check_fingerprint(loaded, manifest.fingerprint)
    plan = make_plan(loaded.built, manifest.partitions)
    manifest.check_plan(plan)
    outcomes = {one.index: staging.outcomes(one.index) for one in plan.slices}
    return BackfillResult(here, loaded, plan, manifest, staging, InlineExecutor(), outcomes)


class SnapshotStaging:
    """Implements ``staging.Staged`` for what a snapshot has: stores and outcomes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._content = content_of(folder)
        self.stores = {
            one["name"]: StoredAs(**{**one, "format": TableFormat(**one["format"])})
            for one in self._content["stores"]
        }

    @property
    def location(self) -> str:
        return str(self._folder)

    @property
    def folders(self) -> Mapping[int, str]:
        return {}

    def read_manifest(self) -> Manifest:
        return Manifest.from_json(json.dumps(self._content["backfill"]), self.location)

    def outcomes(self, slice: int) -> list[TaskOutcome]:
        """The outcomes of the last visits of a slice's tasks; none for other slices."""
        found = self._content["outcomes"].get(str(slice), [])
        return [TaskOutcome.from_json(json.dumps(outcome).encode()) for outcome in found]

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        """Raises ``StateCorruptedError`` at the end if the entries are not those that were written."""
        stored = self.stores.get(selection.topic) if selection.kind is Kind.STATE else None
        if stored is None or selection.slices != (stored.slice,):
            return
        wanted = self.outcomes(stored.slice)[partition].stores[stored.name]
        task = TaskId(stored.subtopology, partition)
        digest = Digest()
        batch: list[StoreEntry] = []
        for entry in _stored_entries(self._folder / str(task), stored):
            digest.add(*entry)
            batch.append(entry)
            if len(batch) == BATCH_ROWS:
                yield store_rows(stored.name, partition, batch)
                batch = []
        if batch:
            yield store_rows(stored.name, partition, batch)
        if (digest.entries, digest.hex) != (wanted.entries, wanted.hex):
            raise StateCorruptedError(
                "a snapshot is damaged: it does not hold what was written to it",
                where=f"store {stored.name}, {self._folder / str(task)}",
                why=f"{digest.entries} entries with digest {digest.hex}, not {wanted.entries} with {wanted.hex}",
                hint="create the snapshot again",
            )


def _stored_entries(directory: Path, stored: StoredAs) -> Iterator[StoreEntry]:
    """The entries of a store partition, in the order of its table; versions in the order of time."""
    with ExitStack() as stack:
        beside = _table(directory / BESIDE_DIRECTORY, stored.name, stack)
        if stored.versioned:
            for _, raw in _all(beside):
                yield unpack_version(raw)
            return
        if not stored.persistent:
            for key, raw in _all(beside):
                yield key, raw[TIMESTAMP_BYTES:], unpack_int64(raw)[0]
            return
        for place, raw in _all(_table(directory / ROCKSDB_DIRECTORY, stored.name, stack)):
            found = stored.format.from_table(place, raw)
            if found is None:
                continue
            key, value, timestamp = found
            if timestamp is None:
                noted = None if beside is None else beside.get(key)
                timestamp = 0 if noted is None else unpack_int64(noted)[0]
            yield key, value, timestamp


def _table(path: Path, store: str, stack: ExitStack) -> RocksTable | None:
    if not path.exists():
        return None
    database = stack.enter_context(closing(RocksDatabase(path, [store], shared_resources())))
    return database.tables[store]


def _all(table: RocksTable | None) -> Iterator[tuple[bytes, bytes]]:
    if table is None:
        return iter(())
    return table.scan(None, None, upper_inclusive=False, reverse=False)
