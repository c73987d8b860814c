"""A topic whose history before a boundary is in a table, and from then on in its log."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Final, TypeVar

from pystreams.backfill.exchange.rows import Arrow, pc
from pystreams.backfill.sources.by_topic import TopicSources
from pystreams.backfill.sources.frames.seam import Seam, Times
from pystreams.backfill.sources.frames.source import LogAfter
from pystreams.backfill.sources.frames.table_topic import TableTopic
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.backfill.sources.source import Reader, Span
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from pystreams.times import LAST_MS, show_time

T = TypeVar("T", bound=TableTopic)

#: So many records of a partition are looked at to find the least time behind the boundary: they may be out of order.
_FIRST_RECORDS: Final = 1_000


class TableThenLog:
    """Implements ``sources.Source`` for the driver, as ``TableTopic`` does.

    The log is read from its first record at or after the boundary; later ones whose timestamps are before it are passed
    over. The rows of the table are numbered so that the last one has the offset before that record: from there on
    offsets are those of the log, and a live application can go on at its end.
    """

    def __init__(self, table: TableTopic, after: LogAfter) -> None:
        self.table = table.before(after.boundary_ms)
        self.after = after
        self._log = after.log

    @property
    def description(self) -> str:
        boundary = show_time(self.after.boundary_ms)
        return f"{self.table.description} before {boundary}, {self._log.description} from then on"

    @property
    def approximate(self) -> bool:
        return False

    @property
    def boundary_ms(self) -> int:
        return self.after.boundary_ms

    def partitions(self) -> Mapping[str, int]:
        return self.table.partitions()

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        records = self.table.records()
        return {p: self._starts[p] - records.get(p.partition, 0) for p in partitions}

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._log.ends(partitions)

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        """Of times from the boundary on."""
        return self._log.offsets_at(partitions, max(time_ms, self.after.boundary_ms))

    def missing(self, input: InputRange) -> list[Span]:
        return self._log.missing(InputRange(input.partition, self._starts[input.partition], input.end))

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        return self._log.last_before(ends)

    def read(self, input: InputRange) -> Iterator[Arrow]:
        return self.table.read(input)

    def seam(self) -> Seam:
        """What the table and the log hold at the boundary."""
        starts, partitions = self._starts, list(self._starts)
        beginnings, ends = self._log.beginnings(partitions), self._log.ends(partitions)
        complete = any(beginnings[p] < start for p, start in starts.items())
        ranges = [InputRange(p, start, ends[p]) for p, start in starts.items() if start < ends[p]]
        log = Times(sum(one.end - one.start for one in ranges), self._first_time(ranges))
        unused = self.table.unused
        if not complete and log.first_ms is not None and unused.first_ms is not None:
            # What was just found may be out of order.
            log = Times(log.records, min(log.first_ms, self._least_time(ranges)))
        boundary = self.after.boundary_ms
        name = self.table.name
        return Seam(self.table.topic, name, boundary, self.table.times, unused, log, complete)

    def _first_time(self, ranges: Collection[InputRange]) -> int | None:
        """The least time (ms) of the first records of ranges of the log; None if none of them is found."""
        found = self._log.last_before({one.partition: one.start + 1 for one in ranges})
        return min((last.timestamp for last in found.values()), default=None)

    def _least_time(self, ranges: Collection[InputRange]) -> int:
        """The least time (ms) from the boundary on in the first records of ranges of the log."""
        least = LAST_MS
        for one in ranges:
            end = min(one.start + _FIRST_RECORDS, one.end)
            for rows in self._log.read(InputRange(one.partition, one.start, end)):
                times = rows.column("timestamp")
                found = pc.min(times.filter(pc.greater_equal(times, self.after.boundary_ms))).as_py()
                least = least if found is None else min(least, found)
        return least

    @cached_property
    def _starts(self) -> dict[TopicPartition, int]:
        """By partition, the first offset of the log that is read. Raises ``OffsetOutOfRangeError`` if the log may have
        lost records after the boundary."""
        topic = self.table.topic
        partitions = [TopicPartition(topic, p) for p in range(self.table.partitions()[topic])]
        beginnings = self._log.beginnings(partitions)
        starts = self._log.offsets_at(partitions, self.after.boundary_ms)
        for partition in partitions:
            # Before its first record of the boundary or later, a live application may have read late ones.
            whole_from = self.after.whole_from.get(partition.partition, starts[partition])
            start = starts[partition] = min(starts[partition], whole_from)
            if start < beginnings[partition] or 0 < start == beginnings[partition]:
                raise OffsetOutOfRangeError(
                    f"the log may have lost records of {partition} after the boundary",
                    where=self._log.description,
                    why=f"its first record, at offset {beginnings[partition]}, is at or after "
                    f"{show_time(self.after.boundary_ms)}, so "
                    "retention may have deleted others from after the boundary",
                    hint="choose a boundary that is later than the first record of the log",
                )
        return starts


def table_topics(source: Reader, kind: type[T]) -> dict[str, tuple[T, LogAfter | None]]:
    """The topics whose history is in tables of a kind, each with the log behind it."""
    found: dict[str, tuple[T, LogAfter | None]] = {}
    for topic, one in (source.by_topic if isinstance(source, TopicSources) else {}).items():
        table, after = (one.table, one.after) if isinstance(one, TableThenLog) else (one, None)
        if isinstance(table, kind):
            found[topic] = (table, after)
    return found


def without(topics: Collection[str], source: Reader) -> Reader:
    """The sources of all topics but these, for workers, which do not get tables."""
    if not isinstance(source, TopicSources):
        return source
    own = {topic: one for topic, one in source.by_topic.items() if topic not in topics}
    return TopicSources(own, source.otherwise)
