"""Encoded rows of a table in sorted runs, and the merging of these: what one process can keep in memory is sorted at
once, and a partition is read from all runs side by side."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow, combined, pc, runs_of
from pystreams.backfill.sources.frames.encoding import ENCODED_SCHEMA
from pystreams.backfill.sources.source import BATCH_ROWS
from pystreams.folders import make_folder

#: The columns by which the records of a partition are ordered, nulls first: with offsets by these alone.
BY_OFFSET: Final = ("offset",)
BY_CONTENT: Final = ("timestamp", "offset", "key", "value")

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class Run:
    """A file of sorted rows. ``batches`` has by partition the numbers of its first batch and of that after its last."""

    path: str
    batches: Mapping[int, tuple[int, int]]

    def read(self, partition: int) -> Iterator[Arrow]:
        """The rows of a partition, in order."""
        first, end = self.batches.get(partition, (0, 0))
        if first == end:
            return
        with pa.memory_map(self.path) as opened, pa.ipc.open_file(opened) as file:
            for number in range(first, end):
                yield file.get_batch(number)


def write_run(path: Path, rows: Sequence[Arrow], order: Sequence[str]) -> Run:
    """Sort batches of ``ENCODED_SCHEMA`` by partition and ``order`` into a new file."""
    ordered = _sorted(combined(rows), ("partition", *order))
    batches: dict[int, tuple[int, int]] = {}
    written = 0
    make_folder(path.parent)
    with pa.ipc.new_file(path, ENCODED_SCHEMA, options=_OPTIONS) as file:
        for partition, start, end in runs_of(ordered.column("partition")):
            first = written
            for at in range(start, end, BATCH_ROWS):
                file.write_batch(ordered.slice(at, min(BATCH_ROWS, end - at)))
                written += 1
            batches[partition] = (first, written)
    return Run(str(path), batches)


def merged(runs: Sequence[Run], partition: int, order: Sequence[str]) -> Iterator[Arrow]:
    """The rows of a partition in all runs, in order, with two batches of each run in memory.

    A round gives all rows up to the least of the last rows of those batches that others of their run follow: no later
    row comes before it.
    """
    waiting = [one for one in (_Stream(run.read(partition), order) for run in runs) if one.rows is not None]
    while waiting:
        horizon = min((stream.end() for stream in waiting if stream.has_more), default=None)
        pieces = [piece for stream in waiting if (piece := stream.take(horizon)) is not None]
        yield pieces[0] if len(pieces) == 1 else _sorted(combined(pieces), order)
        waiting = [stream for stream in waiting if stream.rows is not None]


class _Stream:
    """The rows of a run that have been read and not been given."""

    def __init__(self, batches: Iterator[Arrow], order: Sequence[str]) -> None:
        self._batches = batches
        self._order = order
        self.rows: Arrow | None = next(batches, None)
        self._next: Arrow | None = next(batches, None)

    @property
    def has_more(self) -> bool:
        """Whether the run has a batch behind these rows."""
        return self._next is not None

    def end(self) -> Any:
        """The place of the last row in the order."""
        assert self.rows is not None
        return self._place(self.rows.num_rows - 1)

    def take(self, horizon: Any | None) -> Arrow | None:
        """The rows up to ``horizon`` (None: all of a last batch), which are removed."""
        rows = self.rows
        assert rows is not None
        end = (
            rows.num_rows if horizon is None else bisect_right(range(rows.num_rows), horizon, key=self._place)
        )
        if not end:
            return None
        if end == rows.num_rows:
            self.rows, self._next = self._next, next(self._batches, None)
        else:
            self.rows = rows.slice(end)
        return rows.slice(0, end)

    def _place(self, at: int) -> Any:
        assert self.rows is not None
        values = [self.rows.column(name)[at].as_py() for name in self._order]
        return [(value is not None, value) for value in values]


def _sorted(rows: Arrow, order: Sequence[str]) -> Arrow:
    """Rows in an order, nulls first: versions of Arrow are asked for that in different ways, so it is a column."""
    columns: dict[str, Arrow] = {}
    for name in order:
        column = rows.column(name)
        if column.null_count:
            columns[f"has {name}"] = pc.is_valid(column)
        columns[name] = column
    keys = [(name, "ascending") for name in columns]
    return rows.take(pc.sort_indices(pa.table(columns), sort_keys=keys))
