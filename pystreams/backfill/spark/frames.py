"""DataFrames of Spark as sources: what a plan asks of them, and their records as the packed rows that Spark exchanges.

A table is read twice: for the plan, which counts the records of each partition (of values it only asks which fields are
null), and for the slice, which encodes, distributes and sorts them. The slice finds it if the table has changed in
between.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from pystreams.backfill.application import Application, LoadedApplication
from pystreams.backfill.compute.task import TaskWork
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.frames.arrow_tables import in_memory
from pystreams.backfill.sources.frames.encoding import LACKING, EncoderOf
from pystreams.backfill.sources.frames.seam import Times
from pystreams.backfill.sources.frames.source import DataFrameSource, LogAfter, SparkTable, is_of_spark
from pystreams.backfill.sources.frames.table_topic import Measure, TableTopic
from pystreams.backfill.spark.arrow import mapped, no_word_about_pandas, table_of
from pystreams.backfill.spark.failures import reason_of, receiving_errors
from pystreams.backfill.spark.frame_worker import BEFORE_RECORDS, Encoding, RowsForTasks
from pystreams.backfill.spark.packing import PACKED_DDL
from pystreams.errors import ConfigError

_PLACES_DDL: Final = "partition int, offset bigint, timestamp bigint"
_ENCODED_DDL: Final = f"{_PLACES_DDL}, key binary, value binary"


class FrameTopic(TableTopic):
    """A topic whose records are the rows of a DataFrame of Spark; ``packed_rows`` gives them."""

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
        self._application = application
        self._fingerprint = loaded.built.fingerprint
        self._frame, name = _opened(session, source)
        columns = replace(source, frame=SparkTable("", ""))
        schema = table_of(self._frame.limit(0)).schema
        self._make = EncoderOf(columns, schema, topic, partitions, name)
        self._columns = self._make(loaded)
        super().__init__(topic, partitions, name, self._columns.needed_columns, exact=source.exact)

    def packed_rows(self, work: TaskWork, times: Mapping[int, int], after: LogAfter | None) -> DataFrame:
        """The records of the topic for the tasks of a slice, in order within each partition; the log ``after`` the
        table goes on with them. ``times`` are the partitions' times after an earlier visit."""
        records = None if self.exact else self.records()
        for_tasks = RowsForTasks(work, self.topic, records, times, self.name, after)
        rows = mapped(self._selected(self._columns.columns), self._encoding(places=False), _ENCODED_DDL)
        rows = self._in_time(rows)
        order = ["offset"]
        if not self.exact:
            # A row before all others of each partition: one that has lost all its rows is noticed then.
            rows = rows.unionAll(_firsts(self._frame.sparkSession, self._count))
            order = ["timestamp", "offset", "key", "value"]
        ordered = rows.repartitionById(self._count, "partition").sortWithinPartitions(*order)
        return mapped(ordered, for_tasks, PACKED_DDL)

    def measures(self) -> list[Measure]:
        offset, timestamp = sql.col("offset"), sql.col("timestamp")
        tests = [
            timestamp.isNull() | (timestamp < 0),
            sql.col("partition").isNull(),
            *([offset.isNull() | (offset < 0)] if self.exact else []),
            *(sql.col(LACKING)[at] for at in range(len(self._needed))),
        ]
        values = [
            sql.count(sql.lit(1)),
            sql.min(offset),
            sql.max(offset),
            sql.min(timestamp),
            sql.max(timestamp),
            *(sql.sum(sql.when(test, 1).otherwise(0)) for test in tests),
        ]
        # Rows without a timestamp count as records, to be refused.
        late = (
            sql.lit(False)
            if self._end_ms is None
            else sql.coalesce(timestamp >= self._end_ms, sql.lit(False))
        )
        with receiving_errors():
            grouped = self._places(self._needed).groupBy("partition", late.alias("late"))
            found = grouped.agg(*values).collect()
        return [
            Measure(partition, is_late, Times(records, first_ms, last_ms), first, last, tuple(wrong))
            for partition, is_late, records, first, last, first_ms, last_ms, *wrong in found
        ]

    def _offsets_at(self, time_ms: int) -> dict[int, int | None]:
        late = sql.col("timestamp") >= time_ms
        found = self._in_time(self._places()).groupBy("partition")
        chosen = (
            sql.min(sql.when(late, sql.col("offset")))
            if self.exact
            else sql.sum(sql.when(late, 0).otherwise(1))
        )
        with receiving_errors():
            return {row[0]: row[1] for row in found.agg(chosen).collect()}

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
        return table if is_of_spark(table) else _frame_of(session, in_memory(table).table), "a DataFrame"
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


def _frame_of(session: SparkSession, table: Arrow) -> DataFrame:
    """An Arrow table as a DataFrame. By itself Spark would take moments without a zone for those of its session's."""
    with no_word_about_pandas():
        return session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def _column(name: str) -> Column:
    return sql.col(_quoted(name))


def _quoted(name: str) -> str:
    """A column's name, quoted, because it may contain dots."""
    return "`" + name.replace("`", "``") + "`"
