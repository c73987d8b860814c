"""A snapshot: what a backfill computed as a folder of RocksDB directories, from which a live application restores.

    <folder>/manifest.json               format, the backfill's manifest, stores, outcomes of tasks; written last
    <folder>/0_1/rocksdb/                the persistent stores of task 0_1, as they lie in its state directory
    <folder>/0_1/beside/                 by changelog key: stores in memory, and timestamps that a table does not keep

Neither Spark nor the staging folder is needed to go on from it. It must lie where all workers and this process reach it
under the same path: on this machine, or on a file system that all mount.
"""

from __future__ import annotations

import base64
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pystreams.backfill.application import application_here, check_fingerprint
from pystreams.backfill.handover import HandedOver, hand_over
from pystreams.backfill.inline import InlineExecutor
from pystreams.backfill.manifest import MANIFEST_FILE, Manifest, Stage
from pystreams.backfill.outcome import Digest, Outcome
from pystreams.backfill.plan import make_plan
from pystreams.backfill.records import QUEUE_TIME, Arrow, Kind, exchange_rows, headers_column, repeated
from pystreams.backfill.result import BackfillResult
from pystreams.backfill.sources import BATCH_ROWS
from pystreams.backfill.staging import Selection
from pystreams.broker.port import Admin, Broker
from pystreams.clock import Clock
from pystreams.errors import StateCorruptedError, StateError, StateLockedError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.hand_over_check import state_origin
from pystreams.state.directory import ROCKSDB_DIRECTORY, StateDirectory
from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, split_window_key, unpack_int64
from pystreams.state.resources import shared_resources
from pystreams.state.rocksdb import RocksDatabase, RocksTable
from pystreams.state.sorted_files import SortedFiles, TableFormat, build_stores, install_stores
from pystreams.state.spec import StoreSpec

log = logging.getLogger(__name__)

FORMAT_VERSION: Final = 1
BESIDE_DIRECTORY: Final = "beside"

_FILES = "files"

#: Changelog key, value, timestamp.
Entry = tuple[bytes, bytes, int]


@dataclass(frozen=True, slots=True)
class StoredAs:
    """Where the entries of a store are: in the task's database, or beside it."""

    name: str
    slice: int
    subtopology: int
    format: TableFormat
    persistent: bool


# Writing


def write_snapshot(result: BackfillResult, folder: str | Path) -> Manifest:
    """Write the stores of a computed backfill and all that a hand-over needs. Done again, it changes nothing.

    Raises ``StateError`` for a backfill that is not computed, and if the folder holds something else.
    """
    target = Path(folder)
    if result.manifest.stage is Stage.CUT:
        raise StateError("the backfill is not computed yet", hint="run it again with resume")
    if not _begin(target, result.manifest):
        return result.manifest
    stored = _stored(result)
    written = {
        one.name: [
            _Part.from_json(part)
            for part in result.for_each_partition(
                result.store_rows(one.name), partial(_write_partition, str(target), one)
            )
        ]
        for one in stored
    }
    for one in result.plan.slices:
        if one.final and one.stores:
            specs = {spec.name: spec for spec in result.loaded.built.subtopologies[one.subtopology].stores}
            for task in range(one.tasks):
                parts = {name: written[name][task] for name in one.stores}
                _assemble(target / str(TaskId(one.subtopology, task)), specs, parts)
    _finish(target, result, stored)
    return result.manifest


def _begin(target: Path, manifest: Manifest) -> bool:
    """False if the snapshot is there already. What was begun and not finished is deleted."""
    if (target / MANIFEST_FILE).exists():
        found = _content(target)["backfill"]["backfill_id"]
        if found == manifest.backfill_id:
            return False
        raise StateError(
            "the folder holds another snapshot",
            where=str(target),
            why=f"it is of backfill {found}, this one is {manifest.backfill_id}",
            hint="choose another folder",
        )
    begun = list(target.iterdir()) if target.exists() else []
    for left in begun:
        try:
            TaskId.parse(left.name)
        except ValueError:
            raise StateError(
                "the folder for a snapshot holds something else",
                where=str(left),
                hint="choose another folder",
            ) from None
    for left in begun:
        shutil.rmtree(left)
    target.mkdir(parents=True, exist_ok=True)
    return True


def _stored(result: BackfillResult) -> list[StoredAs]:
    return [
        StoredAs(
            spec.name,
            one.index,
            one.subtopology,
            TableFormat(spec.kind, spec.retention_ms),
            spec.persistent,
        )
        for one in result.plan.slices
        if one.final
        for spec in result.loaded.built.subtopologies[one.subtopology].stores
    ]


@dataclass(frozen=True, slots=True)
class _Part:
    """What was written of a store partition: files for its table and for beside it, and a window store's latest."""

    table: tuple[Path, ...]
    beside: tuple[Path, ...]
    latest: tuple[Entry, ...]

    def to_json(self) -> bytes:
        content = {
            "table": [str(path) for path in self.table],
            "beside": [str(path) for path in self.beside],
            "latest": [
                [base64.b64encode(key).decode(), base64.b64encode(value).decode(), timestamp]
                for key, value, timestamp in self.latest
            ],
        }
        return json.dumps(content).encode()

    @classmethod
    def from_json(cls, text: bytes) -> _Part:
        content = json.loads(text)
        return cls(
            tuple(map(Path, content["table"])),
            tuple(map(Path, content["beside"])),
            tuple((base64.b64decode(k), base64.b64decode(v), t) for k, v, t in content["latest"]),
        )


def _write_partition(target: str, stored: StoredAs, partition: int, batches: Iterator[Arrow]) -> bytes:
    """An ``executor.PartitionFunction``: a store partition as sorted files. An attempt has a folder of its own."""
    task = Path(target) / str(TaskId(stored.subtopology, partition))
    task.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_FILES}-", dir=task))
    table, beside = SortedFiles(folder, "table"), SortedFiles(folder, "beside")
    latest = _Latest()
    format = stored.format
    for entry in _entries(batches):
        key, value, timestamp = entry
        if not stored.persistent:
            beside.add(key, pack_int64(timestamp) + value)
            continue
        table.add(*format.to_table(*entry))
        if not format.timestamped:
            beside.add(key, pack_int64(timestamp))
        if format.windowed:
            latest.note(entry)
    return _Part(tuple(table.finish()), tuple(beside.finish()), latest.entries).to_json()


def _entries(batches: Iterator[Arrow]) -> Iterator[Entry]:
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("key", "value", "timestamp"))
        yield from zip(*columns, strict=True)


class _Latest:
    """The entries of the greatest window start and of the greatest sequence number."""

    def __init__(self) -> None:
        self._start = self._sequence = -1
        self._by_start: Entry | None = None
        self._by_sequence: Entry | None = None

    def note(self, entry: Entry) -> None:
        _, start, sequence = split_window_key(entry[0])
        if start > self._start:
            self._start, self._by_start = start, entry
        if sequence > self._sequence:
            self._sequence, self._by_sequence = sequence, entry

    @property
    def entries(self) -> tuple[Entry, ...]:
        found = (self._by_start, self._by_sequence)
        return tuple(dict.fromkeys(entry for entry in found if entry is not None))


def _assemble(directory: Path, specs: Mapping[str, StoreSpec], parts: Mapping[str, _Part]) -> None:
    """Make the databases of a task out of its files."""
    persistent = [spec for spec in specs.values() if spec.persistent]
    if persistent:
        build_stores(
            directory,
            persistent,
            {spec.name: parts[spec.name].table for spec in persistent},
            {spec.name: parts[spec.name].latest for spec in persistent if parts[spec.name].latest},
        )
    beside = {name: part.beside for name, part in parts.items() if part.beside}
    if beside:
        database = RocksDatabase(directory / BESIDE_DIRECTORY, beside, shared_resources())
        try:
            for name, files in beside.items():
                database.tables[name].ingest(files)
        finally:
            database.close()
    for left in directory.glob(f"{_FILES}-*"):
        shutil.rmtree(left)


def _finish(target: Path, result: BackfillResult, stored: list[StoredAs]) -> None:
    finals = [one for one in result.plan.slices if one.final]
    content = {
        "format": FORMAT_VERSION,
        "backfill": json.loads(result.manifest.to_json()),
        "stores": [asdict(one) for one in stored],
        "outcomes": {
            str(one.index): [_outcome(result.outcome(one, task)) for task in range(one.tasks)]
            for one in finals
        },
    }
    draft = target / f"{MANIFEST_FILE}.new"
    draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
    draft.replace(target / MANIFEST_FILE)


def _outcome(outcome: Outcome) -> Any:
    """Records for sinks and internal topics are no part of a snapshot."""
    return json.loads(replace(outcome, written={}).to_json())


# Reading


def open_snapshot(
    folder: str | Path, application: object, settings: Mapping[str, Any] | None = None
) -> BackfillResult:
    """A snapshot as what was computed: its stores and offsets, without records for sinks. The application and its
    ``settings`` are given as to ``backfill``.

    Raises ``StateError`` if the folder holds none, or one of another format; ``TopologyError``, naming the first
    difference, if it is another application's.
    """
    staging = SnapshotStaging(Path(folder))
    manifest = staging.read_manifest()
    loaded = application_here(application, settings or {}).load()
    check_fingerprint(loaded, manifest.fingerprint)
    plan = make_plan(loaded.built, manifest.partitions)
    manifest.check_plan(plan)
    outcomes = {one.index: staging.outcomes(one.index) for one in plan.slices}
    return BackfillResult(loaded, plan, manifest, staging, InlineExecutor(), outcomes)


class SnapshotStaging:
    """Implements ``staging.Staging`` for what a snapshot has: stores and outcomes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._content = _content(folder)
        self.stores = {
            one["name"]: StoredAs(**{**one, "format": TableFormat(**one["format"])})
            for one in self._content["stores"]
        }

    @property
    def location(self) -> str:
        return str(self._folder)

    def read_manifest(self) -> Manifest:
        return Manifest.from_json(json.dumps(self._content["backfill"]), self.location)

    def write_manifest(self, manifest: Manifest) -> None:
        """Raises ``StateError``: a snapshot does not change."""
        raise StateError("a snapshot cannot be written to", where=self.location, hint="give another folder")

    def outcomes(self, slice: int) -> list[Outcome]:
        """Those of last visits; none for other slices."""
        found = self._content["outcomes"].get(str(slice), [])
        return [Outcome.from_json(json.dumps(outcome).encode()) for outcome in found]

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        """Raises ``StateCorruptedError`` at the end if the entries are not those that were written."""
        stored = self.stores.get(selection.topic) if selection.kind is Kind.STATE else None
        if stored is None or selection.slices != (stored.slice,):
            return
        wanted = self.outcomes(stored.slice)[partition].stores[stored.name]
        task = TaskId(stored.subtopology, partition)
        digest = Digest()
        batch: list[Entry] = []
        for entry in _stored_entries(self._folder / str(task), stored):
            digest.add(*entry)
            batch.append(entry)
            if len(batch) == BATCH_ROWS:
                yield _rows(stored.name, partition, batch)
                batch = []
        if batch:
            yield _rows(stored.name, partition, batch)
        if (digest.entries, digest.hex) != (wanted.entries, wanted.hex):
            raise StateCorruptedError(
                "a snapshot is damaged: it does not hold what was written to it",
                where=f"store {stored.name}, {self._folder / str(task)}",
                why=f"{digest.entries} entries with digest {digest.hex}, not {wanted.entries} with {wanted.hex}",
                hint="make the snapshot again",
            )


def _content(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST_FILE
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = content["format"]
        if version == FORMAT_VERSION and content.keys() >= {"backfill", "stores", "outcomes"}:
            return content
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(
            "the folder holds no snapshot, or one that was not finished",
            where=str(path),
            why=f"{type(error).__name__}: {error}",
            hint="name the folder of a snapshot, or make it again",
        ) from error
    raise StateError(
        f"what the folder holds has format {version}, and is no snapshot that this version of pystreams reads",
        where=str(path),
        hint="use the version that wrote it, or make the snapshot again",
    )


def _stored_entries(directory: Path, stored: StoredAs) -> Iterator[Entry]:
    """The entries of a store partition, in the order of its table."""
    with ExitStack() as stack:
        beside = _table(directory / BESIDE_DIRECTORY, stored.name, stack)
        if not stored.persistent:
            for key, raw in _all(beside):
                yield key, raw[TIMESTAMP_BYTES:], unpack_int64(raw)[0]
            return
        for place, raw in _all(_table(directory / ROCKSDB_DIRECTORY, stored.name, stack)):
            key, value, timestamp = stored.format.from_table(place, raw)
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


def _rows(store: str, partition: int, entries: list[Entry]) -> Arrow:
    keys, values, timestamps = zip(*entries, strict=True)
    size = len(entries)
    return exchange_rows(
        Kind.STATE,
        repeated(store, pa.string(), size),
        repeated(partition, pa.int32(), size),
        repeated(QUEUE_TIME[Kind.STATE], pa.int64(), size),
        -1,
        pa.array(range(size), pa.int64()),
        (
            pa.array(timestamps, pa.int64()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            headers_column(None, size),
        ),
    )


# Restoring


def restore_snapshot(
    folder: str | Path,
    application: object,
    broker: Broker,
    *,
    settings: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
) -> HandedOver:
    """Hand a snapshot over to the live application, and put its stores where that keeps them on this machine (its
    ``state_dir``): they need not be restored from the changelogs.

    Raises what ``open_snapshot`` and ``hand_over`` raise.
    """
    result = open_snapshot(folder, application, settings)
    return hand_over(result, broker, clock, before_commit=partial(_install, Path(folder), result, broker))


def _install(folder: Path, result: BackfillResult, broker: Broker, admin: Admin, attempt: str) -> None:
    """While the changelogs hold what the snapshot has, and the application cannot start yet. A task that somebody has
    open all the same is left to be restored from its changelogs."""
    config = result.loaded.config
    directory = StateDirectory(config.state_dir, config.application_id)
    origin = state_origin(broker, attempt)
    for one in result.plan.slices:
        specs = result.loaded.built.subtopologies[one.subtopology].stores
        changelogs = {spec.name: one.stores[spec.name] for spec in specs if spec.persistent}
        for task in range(one.tasks) if one.final and changelogs else ():
            id = TaskId(one.subtopology, task)
            partitions = {
                s: TopicPartition(topic, task) for s, topic in changelogs.items() if topic is not None
            }
            ends = admin.end_offsets(list(partitions.values()))
            offsets = {store: ends[partition] for store, partition in partitions.items()}
            try:
                install_stores(folder / str(id), directory.task_directory(id), offsets, origin)
            except StateLockedError as error:
                log.warning("task %s will be restored from its changelogs: %s", id, error)
