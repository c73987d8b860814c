"""Tables of Iceberg and Delta that a backfill appends to: a batch is one commit, and the commit has the batch's name.

Delta looks for the name by itself when it commits. Of an Iceberg table the snapshots are searched for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructType,
)

from pystreams.backfill.compute.executor import TableBatch
from pystreams.backfill.sources import SparkTable
from pystreams.backfill.spark.failures import reason_of, receiving_errors
from pystreams.errors import ConfigError, StateError

#: Where a snapshot of Iceberg has the name of the batch.
_PROPERTY: Final = "pystreams.batch"

#: A type takes the values of those before it in its row. Iceberg has no integers below 32 bits.
_WIDER: Final[tuple[tuple[type[DataType], ...], ...]] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)


def prepare(session: SparkSession, table: SparkTable, columns: StructType) -> None:
    """Create a table with such columns, unless it is there. Raises ``ConfigError`` for one that has others, or that
    cannot be created."""
    try:
        found = _columns(session, table)
    except (PySparkException, Py4JJavaError):
        # Either the table is missing, or the reason why it cannot be read also prevents creating it. Then the error of
        # the creation says why.
        found = _created(session, table, columns)
    wrong = _mismatches(columns, found)
    if wrong:
        raise ConfigError(
            f"the columns of {table.description} do not fit the records",
            why="\n".join(wrong),
            hint="name another table, or change its columns",
        )


def append(rows: DataFrame, table: SparkTable, batch: TableBatch) -> None:
    """Append rows in one commit, unless the table has the batch.

    Raises ``StateError`` if they cannot be written, or if nobody knows any more whether the table has them.
    """
    try:
        with receiving_errors():
            if table.format == "iceberg" and _holds(rows.sparkSession, table, batch):
                return
            writer = rows.write.format(table.format).options(**{**table.options, **_mark(table, batch)})
            writer.mode("append").save(table.place)
    except (PySparkException, Py4JJavaError) as error:
        raise StateError(
            f"the records of the backfill cannot be appended to {table.description}",
            why=reason_of(error),
            hint="correct that, and emit them again (--resume): they are appended once",
        ) from None


def _mark(table: SparkTable, batch: TableBatch) -> Mapping[str, str]:
    """The options by which the commit has the batch's name."""
    if table.format == "iceberg":
        return {f"snapshot-property.{_PROPERTY}": batch.name}
    return {"txnAppId": batch.name, "txnVersion": "1"}


def _columns(session: SparkSession, table: SparkTable) -> StructType:
    return session.read.format(table.format).load(table.place).schema


def _created(session: SparkSession, table: SparkTable, columns: StructType) -> StructType:
    """The columns of the table once it was created: those of another one, if it was there and could not be read."""
    try:
        empty = session.createDataFrame([], columns)
        empty.write.format(table.format).options(**table.options).mode("ignore").save(table.place)
        return _columns(session, table)
    except (PySparkException, Py4JJavaError) as error:
        unknown = "DATA_SOURCE_NOT_FOUND" in str(error)
        raise ConfigError(
            f"Spark can neither read nor create {table.description}",
            why=f"it does not have the format {table.format}" if unknown else reason_of(error),
            hint="check its name; a format that Spark does not bring along needs its package and its settings: "
            "--conf spark.jars=..., --conf spark.sql.extensions=...",
        ) from None


def _holds(session: SparkSession, table: SparkTable, batch: TableBatch) -> bool:
    """Whether a snapshot of an Iceberg table, from the present one back, has the batch."""
    if "/" not in table.place:
        # Its catalog may remember the table as it was a while ago.
        session.catalog.refreshTable(table.place)
    snapshots = {row.snapshot_id: row for row in _snapshots(session, table)}
    heads = _metadata(session, table, "refs").where(sql.col("name") == "main").collect()
    at, oldest = heads[0].snapshot_id if heads else None, None
    while at is not None:
        if at not in snapshots:
            _require_older(oldest, table, batch)
            return False
        oldest = snapshots[at]
        if oldest.batch == batch.name:
            return True
        at = oldest.parent_id
    return False


def _require_older(oldest: Row | None, table: SparkTable, batch: TableBatch) -> None:
    """Raises ``StateError`` unless the oldest snapshot that is left is older than the backfill."""
    if oldest is None or oldest.time_ms >= batch.since_ms:
        raise StateError(
            f"nobody knows any more whether {table.description} has the records of the backfill",
            why="snapshots that the table had since the backfill began have expired",
            hint="look whether it has them; if it lacks them, append result.emitted(TOPIC) to it",
        )


def _snapshots(session: SparkSession, table: SparkTable) -> list[Row]:
    columns = (
        sql.col("snapshot_id"),
        sql.col("parent_id"),
        sql.unix_millis("committed_at").alias("time_ms"),
        sql.col("summary").getItem(_PROPERTY).alias("batch"),
    )
    return _metadata(session, table, "snapshots").select(*columns).collect()


def _metadata(session: SparkSession, table: SparkTable, name: str) -> DataFrame:
    """One of Iceberg's tables about a table, which is named, or given by its path."""
    place = f"{table.place}#{name}" if "/" in table.place else f"{table.place}.{name}"
    return session.read.format("iceberg").load(place)


def _mismatches(own: StructType, found: StructType) -> list[str]:
    """Why columns cannot be appended to those of a table."""
    columns = {field.name: field.dataType for field in own}
    there = {field.name: field.dataType for field in found}
    missing = [f"there is no column {name}" for name in columns if name not in there]
    more = [f"the records have no column {name}" for name in there if name not in columns]
    return (
        missing
        + more
        + [
            f"{name} is {there[name].simpleString()}, and {type.simpleString()} in the records"
            for name, type in columns.items()
            if name in there and not _fits(type, there[name])
        ]
    )


def _fits(own: DataType, wanted: DataType) -> bool:
    """Whether a column takes values of a type, whether or not it takes nulls."""
    if isinstance(own, StructType) and isinstance(wanted, StructType):
        return not _mismatches(own, wanted)
    if isinstance(own, ArrayType) and isinstance(wanted, ArrayType):
        return _fits(own.elementType, wanted.elementType)
    if isinstance(own, MapType) and isinstance(wanted, MapType):
        return _fits(own.keyType, wanted.keyType) and _fits(own.valueType, wanted.valueType)
    for row in _WIDER:
        if type(own) in row and type(wanted) in row:
            return row.index(type(own)) <= row.index(type(wanted))
    return own == wanted
