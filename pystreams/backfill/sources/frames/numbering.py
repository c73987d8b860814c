"""The sorted rows of one partition of a table as records with offsets, and behind them those of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow, counted, headers_column, pc, repeated
from pystreams.backfill.sources.frames.source import LogAfter
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.sources.source import within
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Numbering:
    """``count`` is the number of the partition's records when the backfill was planned (None: they have offsets),
    ``where`` the table for people, ``after`` the log that goes on behind it."""

    input: InputRange
    count: int | None
    where: str
    after: LogAfter | None = None

    def records(self, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """The records of the range in ``RECORD_SCHEMA``; ``batches`` are of ``ENCODED_SCHEMA``, in order. Raises
        ``StateError`` if the table has changed, and ``ConfigError`` for an offset that it has twice."""
        if self.count is None:
            found = self._with_offsets(batches)
        else:
            found = chain(self._numbered(self.count, batches), self._of_log(self.count))
        return (within(rows, self.input) for rows in found)

    def _numbered(self, count: int, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """With offsets from the beginning of the range on."""
        reached = self.input.start
        for rows in batches:
            yield _records(self.input.partition, counted(reached, rows.num_rows), rows)
            reached += rows.num_rows
        if reached - self.input.start != count:
            raise StateError(
                f"the table has changed while records of {self.input.partition} were read",
                where=self.where,
                why=f"it had {count} of them when the backfill was planned, now it has {reached - self.input.start}",
                hint="name a version of the table that does not change, and begin the backfill again",
            )

    def _of_log(self, count: int) -> Iterator[Arrow]:
        """The records of the log after ``count`` records of the table, without those before the boundary."""
        if self.after is None:
            return
        input = self.input
        whole_from = self.after.whole_from.get(input.partition.partition, input.end)
        for rows in self.after.log.read(InputRange(input.partition, input.start + count, input.end)):
            in_time = pc.greater_equal(rows.column("timestamp"), self.after.boundary_ms)
            yield rows.filter(pc.or_(in_time, pc.greater_equal(rows.column("offset"), whole_from)))

    def _with_offsets(self, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """With the offsets of the table."""
        before = -1
        for batch in batches:
            if batch.num_rows:
                offsets = batch.column("offset")
                self._check_ascending(offsets, before)
                before = offsets[-1].as_py()
                yield _records(self.input.partition, offsets, batch)

    def _check_ascending(self, offsets: Arrow, before: int) -> None:
        size = len(offsets)
        ascending = pc.all(pc.greater(offsets.slice(1), offsets.slice(0, size - 1))).as_py()
        if ascending is False or offsets[0].as_py() <= before:
            raise ConfigError(
                f"the table holds an offset of {self.input.partition} twice",
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
