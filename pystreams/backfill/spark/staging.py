"""Staged slices on Spark: a Parquet dataset of packed rows each, written and committed by Spark.

<staging>/manifest-00003.json             see staging/manifest_files.py
<staging>/slice-02-5d41…/*.parquet        packed rows (packing.py) of all tasks, a file for each
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from pystreams.backfill.exchange.order import ORDER, in_order
from pystreams.backfill.exchange.rows import Arrow, Kind
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.spark.access import SparkFolder
from pystreams.backfill.spark.arrow import mapped, table_of
from pystreams.backfill.spark.calls import plain_rows
from pystreams.backfill.spark.hadoop_folder import reaching
from pystreams.backfill.spark.packing import PACKED_DDL, Packed, unpacked
from pystreams.backfill.staging.port import Selection
from pystreams.backfill.staging.staging_folder import StagingFolder, not_staged, one_of_each

_PLAIN_DDL = (
    "kind tinyint, topic string, partition int, queue_time bigint, upstream bigint, sequence bigint, "
    "timestamp bigint, key binary, value binary, headers array<struct<name: string, value: binary>>"
)

#: A file that cannot be read is an error, whatever the session says.
_READING: Final[Mapping[str, str]] = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}

#: Packed rows are large and compressed: Parquet's writer looks at its memory only every so many rows, and would try to
#: find equal ones. A task's outcome is in the file of its rows, so that none can be lost without the other.
_WRITING: Final[Mapping[str, str]] = {
    "parquet.enable.dictionary#data": "false",
    "parquet.page.size.row.check.min": "1",
    "parquet.block.size.row.check.min": "1",
    "parquet.block.size": str(16 * 1024 * 1024),
    "compression": "none",
    "maxRecordsPerFile": "0",
}

#: The number of packed rows that come to the driver at once.
_FETCHED_ROWS: Final = 16


class SparkStaging(StagingFolder):
    """Implements ``port.Staging`` for any file system that Spark has. ``folder`` is that of the location."""

    def __init__(self, session: SparkSession, location: str, folder: SparkFolder) -> None:
        super().__init__(location, folder)
        self._session = session
        self._path = folder.location

    def outcomes(self, slice: int, tasks: int) -> list[TaskOutcome]:
        if self._folders[slice] not in self._folder.names():
            raise not_staged(slice, self._folder.url)
        with reaching(self._location):
            rows = table_of(self.packed((slice,), sql.col("kind") == int(Kind.OUTCOME)))
        found = [
            (one.partition, TaskOutcome.from_json(one.rows().column("value")[0].as_py()))
            for one in unpacked(rows.to_batches())
        ]
        return one_of_each(found, slice, tasks, self._folder.url)

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        """Some packed rows at a time come to the driver, so that a partition may be larger than its memory."""
        found = self.selected(selection).where(sql.col("partition") == partition)
        parts = -(-found.count() // _FETCHED_ROWS)
        if not parts:
            return
        ordered = found.repartitionByRange(parts, *ORDER).sortWithinPartitions(*ORDER)
        pieces = (
            Packed._make((*row[:-1], pa.py_buffer(bytes(row[-1]))))
            for row in ordered.toLocalIterator(prefetchPartitions=True)
        )
        yield from in_order((one.place, one.rows()) for one in pieces)

    def dataframe(self, selection: Selection) -> DataFrame:
        """The rows of all partitions, in no order, with the columns of ``EXCHANGE_SCHEMA``."""
        return mapped(self.selected(selection), plain_rows, _PLAIN_DDL)

    def selected(self, selection: Selection) -> DataFrame:
        """The rows of all partitions, in no order, as packed rows."""
        kind, topic = sql.col("kind") == int(selection.kind), sql.col("topic") == selection.topic
        return self.packed(selection.slices, kind & topic)

    def packed(self, slices: tuple[int, ...], condition: Column) -> DataFrame:
        """Packed rows of some slices."""
        paths = [self.path_of(slice) for slice in slices]
        return self._session.read.schema(PACKED_DDL).options(**_READING).parquet(*paths).where(condition)

    def write(self, slice: int, rows: DataFrame) -> None:
        """Compute packed rows and stage them as a slice's, in a folder that nobody has written to."""
        rows.write.options(**_WRITING).parquet(self.path_of(slice))

    def discard(self, slice: int) -> None:
        """Delete the folder of a slice."""
        self._folder.delete(self._folders[slice])

    def path_of(self, slice: int) -> str:
        return f"{self._path}/{self._folders[slice]}"
