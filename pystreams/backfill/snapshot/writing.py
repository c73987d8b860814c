"""Writes a snapshot: sorted files where the executor works, made to databases here."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.exchange.store_entries import StoreEntry
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.locations import is_url, shown
from pystreams.backfill.plan.manifest import MANIFEST_FILE, Manifest, Status
from pystreams.backfill.snapshot.format import (
    BESIDE_DIRECTORY,
    FORMAT_VERSION,
    StoredAs,
    content_of,
    pack_version,
    unpack_version,
)
from pystreams.errors import ConfigError, StateError
from pystreams.folders import make_folder
from pystreams.ids import TaskId
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import shared_resources
from pystreams.state.formats import pack_int64, split_window_key
from pystreams.state.sorted_files import SortedFiles, TableFormat, build_stores
from pystreams.state.spec import StoreSpec

#: Changelog key, value, timestamp.
_Window = tuple[bytes, bytes, int]

_FILES: Final = "files"
_DRAFT: Final = f"{MANIFEST_FILE}.new"


def write_snapshot(result: BackfillResult, folder: str | Path, *, replace_other: bool = False) -> Manifest:
    """Write the stores of a computed backfill and all that a hand-over needs. Done again, it changes nothing.

    ``replace_other``: the folder may hold another backfill's snapshot, whose place this one takes.

    Raises ``ConfigError`` for a URL, ``StateError`` for a backfill that is not computed, and if the folder holds
    something else.
    """
    manifest = result.manifest
    if manifest.status is Status.CUT:
        raise StateError("the backfill is not computed yet", hint="run it again with resume")
    check_folder(folder, manifest.backfill_id, replace_other=replace_other)
    target = Path(folder)
    if _backfill_in(target) == manifest.backfill_id:
        return manifest
    _empty(target)
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
                times = result.outcome(one, task).store_times
                _assemble(target / str(TaskId(one.subtopology, task)), specs, parts, times)
    _finish(target, result, stored)
    return manifest


def check_folder(folder: str | Path, backfill_id: str | None, *, replace_other: bool = False) -> None:
    """Whether a backfill can leave its snapshot in a folder; it has no id as long as it was not begun.

    Raises ``ConfigError`` for a URL, ``StateError`` for a folder with something else in it, another backfill's snapshot
    among it unless that may be replaced.
    """
    if is_url(str(folder)):
        raise ConfigError(
            f"a snapshot cannot be written to {shown(str(folder))}",
            why="RocksDB can only open files on this machine or on a mounted file system",
            hint="give the path of a folder that all workers can access: snapshot:FOLDER",
        )
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise StateError(f"{target} is a file, not a folder", hint="choose a folder")
    found = _backfill_in(target)
    if found is not None and found != backfill_id and not replace_other:
        raise StateError(
            "the folder holds another snapshot",
            where=str(target),
            why=f"it is of backfill {found}, not of {backfill_id or 'the one that would be written there'}",
            hint="choose another folder, or delete this one if it is not needed",
        )
    for left in target.iterdir() if target.exists() else ():
        if not _is_ours(left):
            raise StateError(
                "the folder for a snapshot holds something else",
                where=str(left),
                hint="choose another folder",
            )


def _backfill_in(target: Path) -> str | None:
    """The backfill whose snapshot is in a folder; None: there is none, or one that was not finished."""
    if not (target / MANIFEST_FILE).exists():
        return None
    return str(content_of(target)["backfill"]["backfill_id"])


def _is_ours(path: Path) -> bool:
    if path.name in (MANIFEST_FILE, _DRAFT):
        return True
    try:
        TaskId.parse(path.name)
    except ValueError:
        return False
    return True


def _empty(target: Path) -> None:
    """Delete an unfinished or replaced snapshot. Its manifest is deleted first, so that the rest is never taken for a
    snapshot."""
    (target / MANIFEST_FILE).unlink(missing_ok=True)
    (target / _DRAFT).unlink(missing_ok=True)
    for left in [*target.iterdir()] if target.exists() else ():
        shutil.rmtree(left)
    make_folder(target)


def _stored(result: BackfillResult) -> list[StoredAs]:
    return [
        StoredAs(
            spec.name,
            one.index,
            one.subtopology,
            TableFormat.of(spec),
            spec.persistent,
        )
        for one in result.plan.slices
        if one.final
        for spec in result.loaded.built.subtopologies[one.subtopology].stores
    ]


@dataclass(frozen=True, slots=True)
class _Part:
    """The files of a store partition: those for its table and those beside it, and the latest entries of a window
    store."""

    table: tuple[Path, ...]
    beside: tuple[Path, ...]
    latest: tuple[_Window, ...]

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
    make_folder(task)
    folder = Path(tempfile.mkdtemp(prefix=f"{_FILES}-", dir=task))
    table, beside = SortedFiles(folder, "table"), SortedFiles(folder, "beside")
    format = stored.format
    latest = _Latest(format)
    for number, entry in enumerate(_entries(batches)):
        key, value, timestamp = entry
        if stored.versioned:
            beside.add(pack_int64(number), pack_version(entry))
            continue
        assert value is not None, "only a versioned store keeps deletions"
        if not stored.persistent:
            beside.add(key, pack_int64(timestamp) + value)
            continue
        for one in format.to_table(key, value, timestamp):
            table.add(*one)
        if not format.timestamped:
            beside.add(key, pack_int64(timestamp))
        if format.expires:
            latest.note((key, value, timestamp))
    return _Part(tuple(table.finish()), tuple(beside.finish()), latest.entries).to_json()


def _entries(batches: Iterator[Arrow]) -> Iterator[StoreEntry]:
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("key", "value", "timestamp"))
        yield from zip(*columns, strict=True)


class _Latest:
    """The entries of the greatest time (a window's start, a session's end) and of the greatest sequence number."""

    def __init__(self, format: TableFormat) -> None:
        self._format = format
        self._time = self._sequence = -1
        self._by_time: _Window | None = None
        self._by_sequence: _Window | None = None

    def note(self, entry: _Window) -> None:
        time = self._format.time_of(entry[0])
        if time > self._time:
            self._time, self._by_time = time, entry
        if self._format.kind == "session":
            return
        sequence = split_window_key(entry[0])[2]
        if sequence > self._sequence:
            self._sequence, self._by_sequence = sequence, entry

    @property
    def entries(self) -> tuple[_Window, ...]:
        found = (self._by_time, self._by_sequence)
        return tuple(dict.fromkeys(entry for entry in found if entry is not None))


def _assemble(
    directory: Path, specs: Mapping[str, StoreSpec], parts: Mapping[str, _Part], times: Mapping[str, int]
) -> None:
    """Make the databases of a task out of its files. ``times`` are those of its stores (ms)."""
    beside = {name: part.beside for name, part in parts.items() if part.beside}
    if beside:
        database = RocksDatabase(directory / BESIDE_DIRECTORY, beside, shared_resources())
        try:
            for name, files in beside.items():
                database.tables[name].ingest(files)
            _build(directory, specs, parts, times, database)
        finally:
            database.close()
    else:
        _build(directory, specs, parts, times, None)
    for left in directory.glob(f"{_FILES}-*"):
        shutil.rmtree(left)


def _build(
    directory: Path,
    specs: Mapping[str, StoreSpec],
    parts: Mapping[str, _Part],
    times: Mapping[str, int],
    beside: RocksDatabase | None,
) -> None:
    """The database of a task; that of its versioned stores from what is ``beside``."""
    persistent = [spec for spec in specs.values() if spec.persistent]
    if not persistent:
        return
    restored: dict[str, Iterator[StoreEntry]] = {
        spec.name: iter(parts[spec.name].latest) for spec in persistent if parts[spec.name].latest
    }
    for spec in persistent:
        if spec.kind == "versioned" and beside is not None and spec.name in beside.tables:
            table = beside.tables[spec.name]
            rows = table.scan(None, None, upper_inclusive=False, reverse=False)
            restored[spec.name] = (unpack_version(raw) for _, raw in rows)
    files = {spec.name: parts[spec.name].table for spec in persistent}
    of_persistent = {spec.name: times[spec.name] for spec in persistent if spec.name in times}
    build_stores(directory, persistent, files, restored, of_persistent)


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
    draft = target / _DRAFT
    draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
    draft.replace(target / MANIFEST_FILE)


def _outcome(outcome: TaskOutcome) -> Any:
    """Records for sinks and internal topics are not part of a snapshot."""
    return json.loads(replace(outcome, written={}).to_json())
