"""Where slices leave what they give: Parquet files by task, topic and partition.

    <staging>/manifest.json
    <staging>/slice-02/task-1/records/<topic>/<partition>.parquet     in order of sequence
    <staging>/slice-02/task-1/state/<store>.parquet
    <staging>/slice-02/task-1/outcome.json                            written last: without it the task is not there

A task's folder appears at once, by a rename.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from pystreams.backfill.outcome import Outcome
from pystreams.backfill.records import EXCHANGE_SCHEMA, Arrow, Kind, combined, of_kind, runs_of
from pystreams.ids import TopicPartition

_OUTCOME_FILE = "outcome.json"

#: A file's rows are written in groups of about so many.
_GROUP_ROWS = 20_000
#: At most so many rows wait for their group, over all files of a task.
_WAITING_ROWS_MAX = 200_000


class _File:
    """One Parquet file in the making."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(path, EXCHANGE_SCHEMA)
        self._waiting: list[Arrow] = []
        self.waiting_rows = 0

    def add(self, rows: Arrow) -> None:
        self._waiting.append(rows)
        self.waiting_rows += rows.num_rows

    def flush(self) -> None:
        if self._waiting:
            self._writer.write_batch(combined(self._waiting))
        self._waiting, self.waiting_rows = [], 0

    def close(self) -> None:
        self._writer.close()


class Staging:
    """The staging folder of one backfill."""

    def __init__(self, path: Path) -> None:
        self.path = path

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
        outcomes = of_kind(batch, Kind.OUTCOME)
        if outcomes.num_rows:
            return Outcome.from_json(outcomes.column("value")[0].as_py())
        for kind, name in ((Kind.RECORD, "records"), (Kind.STATE, "state")):
            rows = of_kind(batch, kind)
            for topic, start, end in runs_of(rows.column("topic")):
                of_topic = rows.slice(start, end - start)
                for partition, first, last in runs_of(of_topic.column("partition")):
                    place = f"{topic}/{partition}" if kind is Kind.RECORD else topic
                    path = folder / name / f"{place}.parquet"
                    file = files.get(path) or files.setdefault(path, _File(path))
                    file.add(of_topic.slice(first, last - first))
                    if file.waiting_rows >= _GROUP_ROWS:
                        file.flush()
        if sum(file.waiting_rows for file in files.values()) > _WAITING_ROWS_MAX:
            for file in files.values():
                file.flush()
        return None

    def outcome(self, slice: int, task: int) -> Outcome | None:
        """What became of a task, None if it is not staged."""
        path = self._folder(slice, task) / _OUTCOME_FILE
        return Outcome.from_json(path.read_bytes()) if path.exists() else None

    def records(self, slice: int, task: int, partition: TopicPartition, batch_rows: int) -> Iterator[Arrow]:
        """What a task wrote to a partition, in order."""
        path = self._folder(slice, task) / "records" / partition.topic / f"{partition.partition}.parquet"
        return _read(path, batch_rows)

    def state(self, slice: int, task: int, store: str, batch_rows: int) -> Iterator[Arrow]:
        """The entries of a store after a task's visit."""
        return _read(self._folder(slice, task) / "state" / f"{store}.parquet", batch_rows)

    def written(self, slice: int, task: int) -> list[TopicPartition]:
        """The partitions that a task wrote records to, sorted."""
        found = (self._folder(slice, task) / "records").glob("*/*.parquet")
        return sorted(TopicPartition(path.parent.name, int(path.stem)) for path in found)

    def _folder(self, slice: int, task: int) -> Path:
        return self.path / f"slice-{slice:02}" / f"task-{task}"


def _read(path: Path, batch_rows: int) -> Iterator[Arrow]:
    if not path.exists():
        return
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(batch_rows)
