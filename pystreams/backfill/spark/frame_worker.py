"""The code that runs in Spark's Python workers for a topic that comes from a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow as pa

from pystreams.backfill.application import Application, LoadedApplication, check_fingerprint
from pystreams.backfill.compute.external_input import InputReader
from pystreams.backfill.compute.task import TaskWork
from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow, counted, headers_column, pc, repeated
from pystreams.backfill.sources.frames.encoding import RowEncoder
from pystreams.backfill.sources.frames.source import DataFrameSource, LogAfter
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.sources.source import within
from pystreams.backfill.spark.packing import packed
from pystreams.backfill.workers.errors import sending_errors
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TaskId, TopicPartition

#: The timestamp of the row before all records of a partition.
BEFORE_RECORDS: Final = -1


@dataclass(frozen=True, slots=True)
class EncoderOf:
    """Makes the same encoder in every process. ``source`` is without its DataFrame."""

    source: DataFrameSource
    schema: Arrow
    topic: str
    partitions: int
    where: str

    def __call__(self, loaded: LoadedApplication) -> RowEncoder:
        return RowEncoder(self.source, self.schema, loaded, self.topic, self.partitions, self.where)


@dataclass(frozen=True, slots=True)
class Encoding:
    """For ``mapInArrow``: rows of a table as records, or only their places."""

    application: Application
    fingerprint: str
    make: EncoderOf
    places: bool

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        with sending_errors():
            loaded = self.application.load()
            check_fingerprint(loaded, self.fingerprint)
            encoder = self.make(loaded)
            for batch in batches:
                yield encoder.places(batch) if self.places else encoder.records(batch)


@dataclass(frozen=True, slots=True)
class Numbering:
    """For ``mapInArrow``: the sorted records of a partition as packed rows of its task, and behind them those of the
    log ``after`` the table. By partition, ``records`` are the numbers of the table's records (None: they have offsets),
    and ``times`` its times after an earlier visit."""

    work: TaskWork
    topic: str
    records: Mapping[int, int] | None
    times: Mapping[int, int]
    where: str
    after: LogAfter | None

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        with sending_errors():
            first = next((batch for batch in batches if batch.num_rows), None)
            if first is not None:
                yield from self._rows(first, batches)

    def _rows(self, first: Arrow, rest: Iterator[Arrow]) -> Iterator[Arrow]:
        partition = TopicPartition(self.topic, first.column("partition")[0].as_py())
        one = self.work.slice
        reader = InputReader(
            self.work.application.load(),
            TaskId(one.subtopology, partition.partition),
            self.topic,
            self.work.cut_time_ms,
            alone=len(one.topics_of(partition.partition)) == 1,
            partition_time=self.times.get(partition.partition, -1),
        )
        input = next(range for range in self.work.ranges if range.partition == partition)
        batches = chain([first], rest)
        if self.records is None:
            records = self._with_offsets(partition, batches)
        else:
            count = self.records.get(partition.partition, 0)
            records = chain(self._numbered(input, count, batches), self._of_log(input, count))
        yield from packed(reader.rows(within(rows, input) for rows in records))

    def _numbered(self, input: InputRange, count: int, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """Batches of ``RECORD_SCHEMA``, with offsets from the beginning of the range on."""
        reached = input.start
        for batch in batches:
            rows = batch
            if rows.column("timestamp")[0].as_py() == BEFORE_RECORDS:
                rows = rows.slice(1)
            yield _records(input.partition, counted(reached, rows.num_rows), rows)
            reached += rows.num_rows
        if reached - input.start != count:
            raise StateError(
                f"the table has changed while records of {input.partition} were read",
                where=self.where,
                why=f"it had {count} of them when the backfill was planned, now it has {reached - input.start}",
                hint="name a version of the table that does not change, and begin the backfill again",
            )

    def _of_log(self, input: InputRange, count: int) -> Iterator[Arrow]:
        """The records of the log after ``count`` records of the table, without those before the boundary."""
        if self.after is None:
            return
        whole_from = self.after.whole_from.get(input.partition.partition, input.end)
        for rows in self.after.log.read(InputRange(input.partition, input.start + count, input.end)):
            in_time = pc.greater_equal(rows.column("timestamp"), self.after.boundary_ms)
            yield rows.filter(pc.or_(in_time, pc.greater_equal(rows.column("offset"), whole_from)))

    def _with_offsets(self, partition: TopicPartition, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """Batches of ``RECORD_SCHEMA``, with the offsets of the table."""
        before = -1
        for batch in batches:
            if batch.num_rows:
                offsets = batch.column("offset")
                self._check_ascending(partition, offsets, before)
                before = offsets[-1].as_py()
                yield _records(partition, offsets, batch)

    def _check_ascending(self, partition: TopicPartition, offsets: Arrow, before: int) -> None:
        size = len(offsets)
        ascending = pc.all(pc.greater(offsets.slice(1), offsets.slice(0, size - 1))).as_py()
        if ascending is False or offsets[0].as_py() <= before:
            raise ConfigError(
                f"the table holds an offset of {partition} twice",
                where=self.where,
                why=f"it is between {offsets[0].as_py()} and {offsets[-1].as_py()}",
                hint="leave the second one out (DataFrame.dropDuplicates)",
            )


def _records(partition: TopicPartition, offsets: Arrow, batch: Arrow) -> Arrow:
    """Encoded rows of one partition in ``RECORD_SCHEMA``."""
    size = batch.num_rows
    columns = [
        repeated(partition.topic, pa.string(), size),
        repeated(partition.partition, pa.int32(), size),
        offsets,
        *(batch.column(name) for name in ("timestamp", "key", "value")),
        headers_column(None, size),
    ]
    return pa.record_batch(columns, schema=RECORD_SCHEMA)
