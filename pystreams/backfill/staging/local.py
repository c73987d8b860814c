"""Staged slices in a local folder: Parquet files by task, topic and partition.

<staging>/slice-02-5d41…/task-1/records/<topic>/<partition>.parquet     in order of sequence
<staging>/slice-02-5d41…/task-1/state/<store>.parquet
<staging>/slice-02-5d41…/task-1/outcome.json            written last: without it the task is not there
<staging>/slice-02-5d41…/share-1-0/…                    the same of a share of a task, until they are joined
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Self

import pyarrow.parquet as pq

from pystreams.backfill.exchange.order import QueueId, merged
from pystreams.backfill.exchange.rows import EXCHANGE_SCHEMA, Arrow, Kind, combined
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.sources import BATCH_ROWS
from pystreams.backfill.staging.manifest_files import LocalFolder
from pystreams.backfill.staging.port import Selection
from pystreams.backfill.staging.staging_folder import StagingFolder, not_staged, one_of_each
from pystreams.folders import make_folder
from pystreams.ids import TopicPartition

_OUTCOME_FILE = "outcome.json"

#: A file's rows are written in groups of about this size.
_GROUP_BYTES = 4 * 1024 * 1024
#: The largest size of all rows that wait for their group, over all files of a task.
_WAITING_BYTES_MAX = 64 * 1024 * 1024


class _File:
    """One Parquet file in the making."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
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


@dataclass(frozen=True, slots=True)
class _Share:
    """The staged output of one share of a task. Implements ``compute.joining.StagedShare``."""

    folder: Path
    batch_rows: int

    @property
    def outcome(self) -> TaskOutcome:
        return TaskOutcome.from_json((self.folder / _OUTCOME_FILE).read_bytes())

    def rows(self, kind: Kind, topic: str, partition: int) -> Iterator[Arrow]:
        return _rows_of(self.folder / _place(kind, topic, partition), self.batch_rows)


class LocalStaging(StagingFolder):
    """Implements ``port.Staging``. ``batch_rows`` is the size of the batches that are read."""

    def __init__(self, location: str | Path, batch_rows: int = BATCH_ROWS) -> None:
        self.path = Path(location)
        super().__init__(str(self.path), LocalFolder(self.path))
        self._batch_rows = batch_rows
        #: The outcomes that were found, by slice.
        self._found: dict[int, dict[int, TaskOutcome]] = {}

    def with_slices(self, folders: Mapping[int, str]) -> Self:
        other = super().with_slices(folders)
        other._found = {}
        return other

    def folder_of(self, slice: int) -> Path:
        """The folder of a staged slice. Its tasks keep their stores there while they run, so that deleting the folder
        removes these, too."""
        return self.path / self._folders[slice]

    def is_of_another_executor(self, folder: str) -> bool:
        """Whether the folder of a slice, as manifests name it, has rows that no ``LocalStaging`` wrote."""
        path = self.path / folder
        return path.exists() and not any(path.glob("task-*"))

    def write_task(self, slice: int, task: int, rows: Iterable[Arrow]) -> TaskOutcome:
        """Stage the output of a task, in place of that of an attempt whose process died."""
        return self._stage(self._task(slice, task), rows)

    def write_share(self, slice: int, task: int, number: int, rows: Iterable[Arrow]) -> TaskOutcome:
        """As ``write_task``, of one share of a task."""
        return self._stage(self._share(slice, task, number), rows)

    def shares(self, slice: int, task: int, count: int) -> list[_Share]:
        """The staged outputs of the shares of a task."""
        return [_Share(self._share(slice, task, number), self._batch_rows) for number in range(count)]

    def drop_shares(self, slice: int) -> None:
        """Delete what shares of tasks have staged."""
        for folder in self.folder_of(slice).glob("share-*"):
            shutil.rmtree(folder)

    def _stage(self, folder: Path, rows: Iterable[Arrow]) -> TaskOutcome:
        if folder.exists():
            shutil.rmtree(folder)
        make_folder(folder)
        files: dict[Path, _File] = {}
        outcome: TaskOutcome | None = None
        try:
            for batch in rows:
                outcome = self._write(folder, batch, files) or outcome
            for file in files.values():
                file.flush()
        finally:
            for file in files.values():
                file.close()
        assert outcome is not None, "a task's last row is its outcome"
        (folder / _OUTCOME_FILE).write_bytes(outcome.to_json())
        return outcome

    def _write(self, folder: Path, batch: Arrow, files: dict[Path, _File]) -> TaskOutcome | None:
        kind, topic, partition = (batch.column(name)[0].as_py() for name in ("kind", "topic", "partition"))
        if kind == Kind.OUTCOME:
            return TaskOutcome.from_json(batch.column("value")[0].as_py())
        path = folder / _place(kind, topic, partition)
        file = files.get(path) or files.setdefault(path, _File(path))
        file.add(batch)
        if file.waiting_bytes >= _GROUP_BYTES:
            file.flush()
        if sum(one.waiting_bytes for one in files.values()) > _WAITING_BYTES_MAX:
            for one in files.values():
                one.flush()
        return None

    def outcomes(self, slice: int, tasks: int) -> list[TaskOutcome]:
        return one_of_each(self._outcomes(slice).items(), slice, tasks, self.location)

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        return merged(self.queues(selection, partition))

    def queues(self, selection: Selection, partition: int) -> list[tuple[QueueId, Iterator[Arrow]]]:
        """The rows of one partition by queue: a queue for each task that wrote to it, with the rows of all visits."""
        visits: dict[int, list[Iterator[Arrow]]] = {}
        for slice in selection.slices:
            for task, outcome in self._outcomes(slice).items():
                if not _has(outcome, task, selection, partition):
                    continue
                batches = self._read(slice, task, _place(selection.kind, selection.topic, partition))
                first = next(batches, None)
                if first is None:
                    raise not_staged(slice, self.location)
                upstream = first.column("upstream")[0].as_py()
                visits.setdefault(upstream, []).append(chain((first,), batches))
        return [
            ((selection.topic, upstream), chain.from_iterable(of_task))
            for upstream, of_task in sorted(visits.items())
        ]

    def _outcomes(self, slice: int) -> dict[int, TaskOutcome]:
        """The outcomes that exist of a slice, by task."""
        if slice not in self._found:
            folder = self.folder_of(slice)
            self._found[slice] = {
                int(path.parent.name.removeprefix("task-")): TaskOutcome.from_json(path.read_bytes())
                for path in folder.glob(f"task-*/{_OUTCOME_FILE}")
            }
        return self._found[slice]

    def _read(self, slice: int, task: int, place: str) -> Iterator[Arrow]:
        path = self._task(slice, task) / place
        if not path.exists():
            raise not_staged(slice, str(path))
        yield from _rows_of(path, self._batch_rows)

    def _task(self, slice: int, task: int) -> Path:
        return self.folder_of(slice) / f"task-{task}"

    def _share(self, slice: int, task: int, number: int) -> Path:
        return self.folder_of(slice) / f"share-{task}-{number}"


def _rows_of(path: Path, batch_rows: int) -> Iterator[Arrow]:
    # Without pre-buffering, which would keep everything that was read in memory.
    with pq.ParquetFile(path, pre_buffer=False) as file:
        yield from file.iter_batches(batch_rows)


def _has(outcome: TaskOutcome, task: int, selection: Selection, partition: int) -> bool:
    """Whether a task has left rows of a partition."""
    if selection.kind is Kind.STATE:
        return task == partition and outcome.stores[selection.topic].entries > 0
    return TopicPartition(selection.topic, partition) in outcome.written


def _place(kind: int, topic: str, partition: int) -> str:
    return f"records/{topic}/{partition}.parquet" if kind == Kind.RECORD else f"state/{topic}.parquet"
