"""A topic whose records are the rows of a table that is read without Spark.

The table is read twice: for the plan, which counts the records of each partition, and for a slice, which encodes the
rows and sorts them into runs. Tasks read their partitions from these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pystreams.backfill.application import Application, LoadedApplication, check_fingerprint
from pystreams.backfill.exchange.rows import Arrow, pc
from pystreams.backfill.sources.frames.arrow_tables import ArrowTable, TablePiece, open_table
from pystreams.backfill.sources.frames.encoding import EncoderOf
from pystreams.backfill.sources.frames.numbering import Numbering
from pystreams.backfill.sources.frames.seam import Times
from pystreams.backfill.sources.frames.sorted_runs import BY_CONTENT, BY_OFFSET, Run, merged, write_run
from pystreams.backfill.sources.frames.source import DataFrameSource, LogAfter, SparkTable
from pystreams.backfill.sources.frames.table_topic import Measure, TableTopic
from pystreams.backfill.sources.ranges import InputRange

#: The aggregates of ``Measure`` over the rows of a partition.
_VALUES: Final[tuple[tuple[str | list[str], str], ...]] = (
    ([], "count_all"),
    ("offset", "min"),
    ("offset", "max"),
    ("timestamp", "min"),
    ("timestamp", "max"),
)

#: The rows of a run are sorted at once, in memory.
_RUN_BYTES: Final = 64 << 20
_INT64_MAX: Final = (1 << 63) - 1


class ArrowTopic(TableTopic):
    """A topic whose records are the rows of an ``ArrowTable``."""

    def __init__(
        self, source: DataFrameSource, loaded: LoadedApplication, topic: str, partitions: int
    ) -> None:
        """Raises ``ConfigError`` for columns that do not fit, and for a table that cannot be opened."""
        self._table: ArrowTable = open_table(source.frame)
        columns = replace(source, frame=SparkTable("", ""))
        self._make = EncoderOf(columns, self._table.schema, topic, partitions, self._table.name)
        self._encoder = self._make(loaded)
        super().__init__(
            topic, partitions, self._table.name, self._encoder.needed_columns, exact=source.exact
        )

    def encoding(self, application: Application, fingerprint: str, folder: Path) -> TableEncoding:
        """The work of putting its records into runs in a folder, for any processes."""
        order = BY_OFFSET if self.exact else BY_CONTENT
        return TableEncoding(
            application, fingerprint, self._make, self._table.pieces(), self._end_ms, order, str(folder)
        )

    def staged(self, runs: Sequence[Run], after: LogAfter | None) -> StagedTable:
        """Its records once they are in runs; the log ``after`` the table goes on with them."""
        counts = None if self.exact else self.records()
        return StagedTable(self.name, tuple(runs), counts, after)

    def measures(self) -> list[Measure]:
        found: dict[tuple[int | None, bool], Measure] = {}
        for piece in self._table.pieces():
            for rows in piece.batches([*self._encoder.place_columns, *self._added_columns]):
                for one in self._measured(rows):
                    place = one.partition, one.late
                    found[place] = found[place] + one if place in found else one
        return list(found.values())

    @property
    def _added_columns(self) -> list[str]:
        """The columns that are only looked at for nulls."""
        return [name for name in self._needed if name not in self._encoder.place_columns]

    def _measured(self, rows: Arrow) -> Iterator[Measure]:
        places = self._encoder.places(rows)
        offset, timestamp = places.column("offset"), places.column("timestamp")
        tests = [
            pc.or_kleene(pc.is_null(timestamp), pc.less(timestamp, 0)),
            pc.is_null(places.column("partition")),
            *([pc.or_kleene(pc.is_null(offset), pc.less(offset, 0))] if self.exact else []),
            *(pc.is_null(rows.column(name)) for name in self._needed),
        ]
        names = [f"wrong {number}" for number in range(len(tests))]
        columns = {
            "partition": places.column("partition"),
            "late": _late(timestamp, self._end_ms),
            "offset": offset,
            "timestamp": timestamp,
            **dict(zip(names, (test.cast(pa.int64()) for test in tests), strict=True)),
        }
        found = pa.table(columns).group_by(["partition", "late"], use_threads=False)
        for row in found.aggregate([*_VALUES, *((name, "sum") for name in names)]).to_pylist():
            yield Measure(
                row["partition"],
                row["late"],
                Times(row["count_all"], row["timestamp_min"], row["timestamp_max"]),
                row["offset_min"],
                row["offset_max"],
                tuple(row[f"{name}_sum"] for name in names),
            )

    def _offsets_at(self, time_ms: int) -> dict[int, int | None]:
        before: Counter[int] = Counter()
        first: dict[int, int | None] = {}
        for piece in self._table.pieces():
            for rows in piece.batches(self._encoder.place_columns):
                places = self._encoder.places(rows)
                places = places.filter(pc.invert(_late(places.column("timestamp"), self._end_ms)))
                late = _late(places.column("timestamp"), time_ms)
                columns = {
                    "partition": places.column("partition"),
                    "before": pc.invert(late).cast(pa.int64()),
                    "offset": pc.if_else(late, places.column("offset"), None),
                }
                found = pa.table(columns).group_by("partition", use_threads=False)
                for row in found.aggregate([("before", "sum"), ("offset", "min")]).to_pylist():
                    partition, offset = row["partition"], row["offset_min"]
                    before[partition] += row["before_sum"]
                    if offset is not None:
                        known = first.get(partition)
                        first[partition] = offset if known is None else min(known, offset)
        return first if self.exact else dict(before)


def _late(timestamps: Arrow, end_ms: int | None) -> Arrow:
    """Which rows are behind the end; those without a timestamp are not: they are refused."""
    return pc.fill_null(pc.greater_equal(timestamps, _INT64_MAX if end_ms is None else end_ms), False)


@dataclass(frozen=True, slots=True)
class TableEncoding:
    """Picklable; called with the number of a piece, it encodes the piece's rows into runs. May be called again for a
    piece, in any process: the later runs replace those of the earlier call."""

    application: Application
    fingerprint: str
    make: EncoderOf
    pieces: Sequence[TablePiece]
    end_ms: int | None
    order: Sequence[str]
    folder: str

    def __call__(self, number: int) -> list[Run]:
        loaded = self.application.load()
        check_fingerprint(loaded, self.fingerprint)
        encoder = self.make(loaded)
        runs: list[Run] = []
        waiting: list[Any] = []
        size = 0

        def flush() -> None:
            nonlocal size
            if waiting:
                path = Path(self.folder) / f"{number:06d}-{len(runs):04d}.arrow"
                runs.append(write_run(path, waiting, self.order))
            waiting.clear()
            size = 0

        for rows in self.pieces[number].batches(encoder.columns):
            encoded = encoder.records(rows)
            if self.end_ms is not None:
                encoded = encoded.filter(pc.invert(_late(encoded.column("timestamp"), self.end_ms)))
            if encoded.num_rows:
                waiting.append(encoded)
                size += encoded.nbytes
            if size >= _RUN_BYTES:
                flush()
        flush()
        return runs


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The records of a table in runs. Implements ``sources.Reader``; picklable. ``counts``: by partition the number of
    records when the backfill was planned (None: they have offsets)."""

    name: str
    runs: tuple[Run, ...]
    counts: Mapping[int, int] | None
    after: LogAfter | None

    @property
    def description(self) -> str:
        return self.name

    def read(self, input: InputRange) -> Iterator[Arrow]:
        partition = input.partition.partition
        count = None if self.counts is None else self.counts.get(partition, 0)
        order = BY_OFFSET if count is None else BY_CONTENT
        numbering = Numbering(input, count, self.name, self.after)
        return numbering.records(merged(self.runs, partition, order))
