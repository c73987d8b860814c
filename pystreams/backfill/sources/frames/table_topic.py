"""A topic whose records are the rows of a table: what a plan asks of it. ``ArrowTopic`` and ``FrameTopic`` (on Spark)
say how its rows are counted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.frames.seam import Times
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.backfill.sources.source import Span
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TopicPartition
from pystreams.nearest import listing


@dataclass(frozen=True, slots=True)
class Measure:
    """The rows of one partition (None: those without one) on one side of the table's end (``late``: behind it).
    ``wrong`` are the numbers of rows that fail each of ``TableTopic.checks``."""

    partition: int | None
    late: bool
    times: Times
    first_offset: int | None
    last_offset: int | None
    wrong: tuple[int, ...]

    def __add__(self, other: Measure) -> Measure:
        """Those of both, which are of the same partition and side."""
        firsts = [offset for offset in (self.first_offset, other.first_offset) if offset is not None]
        lasts = [offset for offset in (self.last_offset, other.last_offset) if offset is not None]
        wrong = tuple(a + b for a, b in zip(self.wrong, other.wrong, strict=True))
        return Measure(
            self.partition,
            self.late,
            self.times + other.times,
            min(firsts, default=None),
            max(lasts, default=None),
            wrong,
        )


@dataclass(frozen=True, slots=True)
class _Partition:
    """The part of a table that belongs to a partition. ``first`` and ``end`` are offsets, of the table or numbered."""

    first: int
    end: int
    records: int


@dataclass(frozen=True, slots=True)
class _Summary:
    """By partition what a table holds; the times of its rows, and of those behind its end, which are not read."""

    partitions: Mapping[int, _Partition]
    times: Times
    unused: Times


class TableTopic:
    """Implements ``sources.Source`` for the driver. Its records are read from where a slice has put them, in order."""

    def __init__(self, topic: str, partitions: int, name: str, needed: Sequence[str], *, exact: bool) -> None:
        """``name`` is the table's, for people; ``needed`` are the columns in which a null cannot become a value;
        ``exact``: the rows have partitions and offsets."""
        self.topic = topic
        self.name = name
        self.exact = exact
        self._count = partitions
        self._needed = tuple(needed)
        self._end_ms: int | None = None

    def measures(self) -> list[Measure]:
        """The rows of each partition on each side of the end. One pass over keys, places and timestamps, and over the
        fields of values that cannot be null."""
        raise NotImplementedError

    def _offsets_at(self, time_ms: int) -> Mapping[int, int | None]:
        """By partition: for a table with offsets the first one at or after a time, for others the number of rows before
        it. Rows behind the end do not count."""
        raise NotImplementedError

    @property
    def checks(self) -> list[str]:
        """What a row can lack. The tests of ``Measure.wrong`` are in this order."""
        return [
            "timestamp, or one before 1970",
            "partition",
            *(["offset"] if self.exact else []),
            *(f"{name}, which cannot be null" for name in self._needed),
        ]

    def before(self, time_ms: int) -> Self:
        """The same topic without the rows of this time or later."""
        other = copy(self)
        other.__dict__.pop("_summary", None)
        other._end_ms = time_ms
        return other

    def records(self) -> dict[int, int]:
        """By partition, the number of records; those without any are left out."""
        return {partition: one.records for partition, one in self._summary.partitions.items()}

    @property
    def times(self) -> Times:
        """The times of its records."""
        return self._summary.times

    @property
    def unused(self) -> Times:
        """The times of the rows at or behind its end (``before``)."""
        return self._summary.unused

    @property
    def description(self) -> str:
        """With the number of records, by which a backfill that is resumed finds that the table has changed; offsets
        distinguish records by themselves."""
        return self.name if self.exact else f"{self.name} with {sum(self.records().values())} rows"

    @property
    def approximate(self) -> bool:
        return not self.exact

    def partitions(self) -> Mapping[str, int]:
        return {self.topic: self._count}

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self._held(partition).first for partition in partitions}

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self._held(partition).end for partition in partitions}

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        # Rows that cannot be records are refused first.
        ends, offsets = self.ends(partitions), self._offsets_at(time_ms)
        at = {p: offsets.get(p.partition) for p in partitions}
        return {p: ends[p] if offset is None else offset for p, offset in at.items()}

    def missing(self, input: InputRange) -> list[Span]:
        """None: a table does not show which offsets have existed."""
        return []

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        """None: values that are written from columns need not have the bytes that the log's producer wrote."""
        return {}

    def read(self, input: InputRange) -> Iterator[Arrow]:
        """Its rows are in no order: executors sort them for a slice before its tasks read them."""
        raise StateError(
            f"{input.partition} comes from a DataFrame, which a worker cannot read",
            where=self.name,
            hint="read the topic from a log or an archive",
        )

    def _held(self, partition: TopicPartition) -> _Partition:
        return self._summary.partitions.get(partition.partition, _Partition(0, 0, 0))

    @cached_property
    def _summary(self) -> _Summary:
        found = self.measures()
        rows = [one for one in found if not one.late]
        self._check(rows)
        times, unused = (
            sum((one.times for one in found if one.late is late), Times()) for late in (False, True)
        )
        return _Summary(dict(map(self._partition, rows)), times, unused)

    def _partition(self, one: Measure) -> tuple[int, _Partition]:
        assert one.partition is not None, "rows without a partition are refused"
        if not self.exact:
            return one.partition, _Partition(0, one.times.records, one.times.records)
        assert one.first_offset is not None, "rows without an offset are refused"
        assert one.last_offset is not None, "rows without an offset are refused"
        return one.partition, _Partition(one.first_offset, one.last_offset + 1, one.times.records)

    def _check(self, rows: Sequence[Measure]) -> None:
        """Raises ``ConfigError`` for rows that cannot be records of the topic, with their number by what they lack."""
        counts = [sum(one.wrong[at] for one in rows) for at in range(len(self.checks))]
        found = [
            f"{count:,} rows have no {what}" for what, count in zip(self.checks, counts, strict=True) if count
        ]
        named = {one.partition for one in rows if one.partition is not None}
        beyond = sorted(partition for partition in named if not 0 <= partition < self._count)
        if beyond:
            found.append(f"there are rows of the partitions {listing(map(str, beyond))}, of {self._count}")
        if found:
            raise ConfigError(
                f"there are rows that cannot be records of topic {self.topic}",
                where=self.name,
                why="; ".join(found),
                hint="leave them out of the DataFrame, or correct them there",
            )
