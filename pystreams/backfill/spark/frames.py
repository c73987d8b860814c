"""DataFrames as sources: what a plan asks of them, and their records as the packed rows that Spark exchanges.

A table is read twice: for the plan, which counts the records of each partition (of values it only asks which fields are
null), and for the slice, which encodes, distributes and sorts them. The slice finds it if the table has changed in
between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from pystreams.backfill.application import Application, LoadedApplication
from pystreams.backfill.compute.task import TaskWork
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.frames.encoding import LACKING
from pystreams.backfill.sources.frames.seam import Times
from pystreams.backfill.sources.frames.source import DataFrameSource, LogAfter, SparkTable
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.backfill.sources.source import Span
from pystreams.backfill.spark.arrow import mapped, table_of
from pystreams.backfill.spark.failures import reason_of, receiving_errors
from pystreams.backfill.spark.frame_worker import BEFORE_RECORDS, EncoderOf, Encoding, Numbering
from pystreams.backfill.spark.packing import PACKED_DDL
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TopicPartition
from pystreams.nearest import listing

_PLACES_DDL: Final = "partition int, offset bigint, timestamp bigint"
_ENCODED_DDL: Final = f"{_PLACES_DDL}, key binary, value binary"


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


class FrameTopic:
    """A topic whose records are the rows of a DataFrame. Implements ``sources.Source`` for the driver; only
    ``packed_rows`` gives records."""

    def __init__(
        self,
        session: SparkSession,
        source: DataFrameSource,
        application: Application,
        loaded: LoadedApplication,
        topic: str,
        partitions: int,
    ) -> None:
        """Raises ``ConfigError`` for columns that do not fit, and for a table that cannot be opened."""
        self.exact = source.exact
        self._topic = topic
        self._count = partitions
        self._application = application
        self._fingerprint = loaded.built.fingerprint
        self._end_ms: int | None = None
        self._frame, self._name = _opened(session, source)
        columns = replace(source, frame=SparkTable("", ""))
        schema = table_of(self._frame.limit(0)).schema
        self._make = EncoderOf(columns, schema, topic, partitions, self._name)
        self._columns = self._make(loaded)

    def before(self, time_ms: int) -> FrameTopic:
        """The same topic without the rows of this time or later."""
        other = copy(self)
        other._end_ms = time_ms
        return other

    @property
    def topic(self) -> str:
        return self._topic

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
    def name(self) -> str:
        """For people: the table."""
        return self._name

    @property
    def description(self) -> str:
        """With the number of records, by which a backfill that is resumed finds that the table has changed; offsets
        distinguish records by themselves."""
        if self.exact:
            return self._name
        return f"{self._name} with {sum(self.records().values())} rows"

    @property
    def approximate(self) -> bool:
        return not self.exact

    def partitions(self) -> Mapping[str, int]:
        return {self._topic: self._count}

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self._held(partition).first for partition in partitions}

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self._held(partition).end for partition in partitions}

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        late = sql.col("timestamp") >= time_ms
        found = self._in_time(self._places()).groupBy("partition")
        chosen = (
            sql.min(sql.when(late, sql.col("offset")))
            if self.exact
            else sql.sum(sql.when(late, 0).otherwise(1))
        )
        with receiving_errors():
            offsets = {row[0]: row[1] for row in found.agg(chosen).collect()}
        ends = self.ends(partitions)
        at = {p: offsets.get(p.partition) for p in partitions}
        return {p: ends[p] if offset is None else offset for p, offset in at.items()}

    def missing(self, input: InputRange) -> list[Span]:
        """None: a table does not show which offsets have existed."""
        return []

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        """None: values that are written from columns need not have the bytes that the log's producer wrote."""
        return {}

    def read(self, input: InputRange) -> Iterator[Arrow]:
        """Workers do not open tables: Spark gives them the rows (``packed_rows``)."""
        raise StateError(
            f"{input.partition} comes from a DataFrame, which a worker cannot read",
            where=self._name,
            hint="read the topic from a log or an archive",
        )

    def packed_rows(
        self, work: TaskWork, times: Mapping[int, int], after: LogAfter | None = None
    ) -> DataFrame:
        """The records of the topic for the tasks of a slice, in order within each partition; the log ``after`` the
        table goes on with them. ``times`` are the partitions' times after an earlier visit."""
        records = None if self.exact else self.records()
        numbering = Numbering(work, self._topic, records, times, self._name, after)
        rows = mapped(self._selected(self._columns.columns), self._encoding(places=False), _ENCODED_DDL)
        rows = self._in_time(rows)
        order = ["offset"]
        if not self.exact:
            # A row before all others of each partition: one that has lost all its rows is noticed then.
            rows = rows.unionAll(_firsts(self._frame.sparkSession, self._count))
            order = ["timestamp", "offset", "key", "value"]
        ordered = rows.repartitionById(self._count, "partition").sortWithinPartitions(*order)
        return mapped(ordered, numbering, PACKED_DDL)

    def _held(self, partition: TopicPartition) -> _Partition:
        return self._summary.partitions.get(partition.partition, _Partition(0, 0, 0))

    @cached_property
    def _summary(self) -> _Summary:
        """One pass over keys, places and timestamps, and over the fields of values that cannot be null."""
        offset, timestamp = sql.col("offset"), sql.col("timestamp")
        needed = self._columns.needed_columns
        wrong = {
            "timestamp, or one before 1970": timestamp.isNull() | (timestamp < 0),
            "partition": sql.col("partition").isNull(),
            **({"offset": offset.isNull() | (offset < 0)} if self.exact else {}),
            **{f"{name}, which cannot be null": sql.col(LACKING)[at] for at, name in enumerate(needed)},
        }
        tests = [sql.sum(sql.when(test, 1).otherwise(0)) for test in wrong.values()]
        measures = [
            sql.count(sql.lit(1)),
            sql.min(offset),
            sql.max(offset),
            sql.min(timestamp),
            sql.max(timestamp),
        ]
        # Rows without a timestamp count as records, to be refused.
        late = (
            sql.lit(False)
            if self._end_ms is None
            else sql.coalesce(timestamp >= self._end_ms, sql.lit(False))
        )
        with receiving_errors():
            grouped = self._places(needed).groupBy("partition", late.alias("late"))
            found = grouped.agg(*measures, *tests).collect()
        rows = [row for row in found if not row["late"]]
        counts = [sum(row[7 + at] for row in rows) for at in range(len(wrong))]
        self._check([row[0] for row in rows], dict(zip(wrong, counts, strict=True)))
        partitions = {
            row[0]: _Partition(row[3], row[4] + 1, row[2]) if self.exact else _Partition(0, row[2], row[2])
            for row in rows
        }
        times, unused = (
            sum((Times(row[2], row[5], row[6]) for row in found if row["late"] is is_late), Times())
            for is_late in (False, True)
        )
        return _Summary(partitions, times, unused)

    def _check(self, partitions: list[int | None], wrong: Mapping[str, int]) -> None:
        """Raises ``ConfigError`` for rows that cannot be records of the topic: by what they lack, their number."""
        beyond = sorted(p for p in partitions if p is not None and not 0 <= p < self._count)
        found = [f"{count:,} rows have no {what}" for what, count in wrong.items() if count]
        if beyond:
            found.append(f"there are rows of the partitions {listing(map(str, beyond))}, of {self._count}")
        if found:
            raise ConfigError(
                f"there are rows that cannot be records of topic {self._topic}",
                where=self._name,
                why="; ".join(found),
                hint="leave them out of the DataFrame, or correct them there",
            )

    def _places(self, needed: Sequence[str] = ()) -> DataFrame:
        """The places of all rows; ``LACKING`` says which of the columns that are ``needed`` are null."""
        lacking = sql.array(*(sql.col(_quoted(name)).isNull() for name in needed)).alias(LACKING)
        columns = [*map(_column, self._columns.place_columns), *([lacking] if needed else [])]
        ddl = f"{_PLACES_DDL}, {LACKING} array<boolean>" if needed else _PLACES_DDL
        return mapped(self._frame.select(*columns), self._encoding(places=True), ddl)

    def _in_time(self, rows: DataFrame) -> DataFrame:
        """Without the rows behind the end; rows without a timestamp stay, to be refused."""
        end = self._end_ms
        return rows if end is None else rows.where(sql.coalesce(sql.col("timestamp") < end, sql.lit(True)))

    def _selected(self, columns: Collection[str]) -> DataFrame:
        return self._frame.select(*map(_column, columns))

    def _encoding(self, *, places: bool) -> Encoding:
        return Encoding(self._application, self._fingerprint, self._make, places)


def _firsts(session: SparkSession, partitions: int) -> DataFrame:
    """A row for each partition that is not a record, with a timestamp that no record has."""
    nothing = {"offset": "bigint", "key": "binary", "value": "binary"}
    columns = {name: sql.lit(None).cast(type) for name, type in nothing.items()}
    columns |= {"partition": sql.col("id").cast("int"), "timestamp": sql.lit(BEFORE_RECORDS).cast("bigint")}
    names = ("partition", "offset", "timestamp", "key", "value")
    return session.range(partitions).select(*(columns[name].alias(name) for name in names))


def _opened(session: SparkSession, source: DataFrameSource) -> tuple[DataFrame, str]:
    """The DataFrame of a source, and its name for people. Raises ``ConfigError`` for a table that Spark cannot open."""
    table = source.frame
    if not isinstance(table, SparkTable):
        return table, "a DataFrame"
    reader = session.read.options(**table.options)
    try:
        if table.format == "table":
            return reader.table(table.place), table.description
        if table.format == "jdbc":
            return reader.format("jdbc").option("url", table.place).load(), table.description
        return reader.format(table.format).load(table.place), table.description
    except (PySparkException, Py4JJavaError) as error:
        unknown = "DATA_SOURCE_NOT_FOUND" in str(error)
        raise ConfigError(
            f"Spark cannot open {table.description}",
            why=f"it does not have the format {table.format}" if unknown else reason_of(error),
            hint="check its name; a format that Spark does not bring along needs its package and its settings: "
            "--conf spark.jars.packages=...",
        ) from None


def _column(name: str) -> Column:
    return sql.col(_quoted(name))


def _quoted(name: str) -> str:
    """A column's name, quoted, because it may contain dots."""
    return "`" + name.replace("`", "``") + "`"
