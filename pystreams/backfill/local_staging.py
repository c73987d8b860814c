"""Staged slices in a local folder: Parquet files by task, topic and partition.

    <staging>/slice-02/task-1/records/<topic>/<partition>.parquet     in order of sequence
    <staging>/slice-02/task-1/state/<store>.parquet
    <staging>/slice-02/task-1/outcome.json                            written last: without it the task is not there

A task's folder appears at once, by a rename.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow.parquet as pq

from pystreams.backfill.manifest import Manifest
from pystreams.backfill.order import QueueId, merged
from pystreams.backfill.outcome import Outcome
from pystreams.backfill.records import EXCHANGE_SCHEMA, Arrow, Kind, combined
from pystreams.backfill.sources import BATCH_ROWS
from pystreams.backfill.staging import Selection, not_staged

_OUTCOME_FILE = "outcome.json"

#: A file's rows are written in groups of about so many bytes.
_GROUP_BYTES = 4 * 1024 * 1024
#: At most so many bytes wait for their group, over all files of a task.
_WAITING_BYTES_MAX = 64 * 1024 * 1024


class _File:
    """One Parquet file in the making."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(path, EXCHANGE_SCHEMA)
        self._waiting: list[Arrow] = []
        self.waiting_bytes = 0

    def add(self, rows: Arrow) -> None:
        self._waiting.append(rows)
        self.waiting_bytes += rows.nbytes

    def flush(self) -> None:
        if self._waiting:
            self._writer.write_batch(combined(self._waiting))
        self._waiting, self.waiting_bytes = [], 0

    def close(self) -> None:
        self._writer.close()


class LocalStaging:
    """Implements ``staging.Staging``. ``batch_rows`` is the size of the batches that are read."""

    def __init__(self, location: str | Path, batch_rows: int = BATCH_ROWS) -> None:
        self.path = Path(location)
        self._batch_rows = batch_rows

    @property
    def location(self) -> str:
        return str(self.path)

    def read_manifest(self) -> Manifest | None:
        return Manifest.read(self.path)

    def write_manifest(self, manifest: Manifest) -> None:
        manifest.write(self.path)

    def clear(self, slice: int) -> None:
        """Delete what a former run has left of a slice: it may have had more tasks."""
        folder = self.path / _slice_name(slice)
        if folder.exists():
            shutil.rmtree(folder)

    def write_task(self, slice: int, task: int, rows: Iterable[Arrow]) -> Outcome:
        """Stage what a task gives; nothing of it stays if that raises."""
        folder = self._folder(slice, task)
        draft = folder.with_name(f"{folder.name}.draft")
        for left in (draft, folder):
            shutil.rmtree(left, ignore_errors=True)
        draft.mkdir(parents=True)
        files: dict[Path, _File] = {}
        outcome: Outcome | None = None
        try:
            for batch in rows:
                outcome = self._write(draft, batch, files) or outcome
            for file in files.values():
                file.flush()
        finally:
            for file in files.values():
                file.close()
        assert outcome is not None, "a stage's last row is its outcome"
        (draft / _OUTCOME_FILE).write_bytes(outcome.to_json())
        draft.rename(folder)
        return outcome

    def _write(self, folder: Path, batch: Arrow, files: dict[Path, _File]) -> Outcome | None:
        kind, topic, partition = (batch.column(name)[0].as_py() for name in ("kind", "topic", "partition"))
        if kind == Kind.OUTCOME:
            return Outcome.from_json(batch.column("value")[0].as_py())
        place = f"records/{topic}/{partition}" if kind == Kind.RECORD else f"state/{topic}"
        path = folder / f"{place}.parquet"
        file = files.get(path) or files.setdefault(path, _File(path))
        file.add(batch)
        if file.waiting_bytes >= _GROUP_BYTES:
            file.flush()
        if sum(one.waiting_bytes for one in files.values()) > _WAITING_BYTES_MAX:
            for one in files.values():
                one.flush()
        return None

    def outcomes(self, slice: int) -> list[Outcome]:
        """Raises ``StateError`` if there are none."""
        folder = self.path / _slice_name(slice)
        found = {
            int(path.parent.name.removeprefix("task-")): path
            for path in folder.glob(f"task-*/{_OUTCOME_FILE}")
        }
        if not found:
            raise not_staged(slice, self.location)
        return [Outcome.from_json(found[task].read_bytes()) for task in sorted(found)]

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        return merged(self.queues(selection, partition))

    def queues(self, selection: Selection, partition: int) -> list[tuple[QueueId, Iterator[Arrow]]]:
        """The same, queue by queue: one for each task that wrote to the partition, over all its visits."""
        if selection.kind is Kind.STATE:
            place = f"task-{partition}/state/{selection.topic}.parquet"
        else:
            place = f"task-*/records/{selection.topic}/{partition}.parquet"
        visits: dict[int, list[Iterator[Arrow]]] = {}
        for slice in selection.slices:
            for path in (self.path / _slice_name(slice)).glob(place):
                batches = self._read(path)
                first = next(batches, None)
                if first is not None:
                    upstream = first.column("upstream")[0].as_py()
                    visits.setdefault(upstream, []).append(chain((first,), batches))
        return [
            ((selection.topic, upstream), chain.from_iterable(of_task))
            for upstream, of_task in sorted(visits.items())
        ]

    def _read(self, path: Path) -> Iterator[Arrow]:
        # Read ahead, it would keep everything that it has read.
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield from file.iter_batches(self._batch_rows)

    def _folder(self, slice: int, task: int) -> Path:
        return self.path / _slice_name(slice) / f"task-{task}"


def _slice_name(slice: int) -> str:
    return f"slice-{slice:02}"
