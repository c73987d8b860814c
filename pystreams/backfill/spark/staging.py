"""Staged slices on Spark: a Parquet dataset of packed rows each, written and committed by Spark.

<staging>/manifest.json
<staging>/slice-02/*.parquet       packed rows (packing.py) of all tasks
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from pystreams.backfill.manifest import MANIFEST_FILE, Manifest
from pystreams.backfill.order import in_order
from pystreams.backfill.outcome import Outcome
from pystreams.backfill.records import Arrow, Kind
from pystreams.backfill.spark.arrow import mapped, table_of
from pystreams.backfill.spark.files import HadoopFolder
from pystreams.backfill.spark.packing import PACKED_DDL, unpacked
from pystreams.backfill.spark.worker import plain_rows
from pystreams.backfill.staging import Selection, not_staged

_PLAIN_DDL = (
    "kind tinyint, topic string, partition int, queue_time bigint, upstream bigint, sequence bigint, "
    "timestamp bigint, key binary, value binary, headers array<struct<name: string, value: binary>>"
)


class SparkStaging:
    """Implements ``staging.Staging`` for any file system that Spark has."""

    def __init__(self, session: SparkSession, location: str) -> None:
        self._session = session
        self._location = location
        self._folder = HadoopFolder(session, location)

    @property
    def location(self) -> str:
        return self._location

    def read_manifest(self) -> Manifest | None:
        text = self._folder.read(MANIFEST_FILE)
        return (
            None if text is None else Manifest.from_json(text.decode(), f"{self._folder.url}/{MANIFEST_FILE}")
        )

    def write_manifest(self, manifest: Manifest) -> None:
        self._folder.write(MANIFEST_FILE, manifest.to_json().encode())

    def outcomes(self, slice: int) -> list[Outcome]:
        rows = table_of(self.packed((slice,), sql.col("kind") == int(Kind.OUTCOME)))
        found = {one.partition: one for one in unpacked(rows.to_batches())}
        if not found:
            raise not_staged(slice, self._folder.url)
        return [Outcome.from_json(found[task].rows().column("value")[0].as_py()) for task in sorted(found)]

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        found = self.selected(selection).where(sql.col("partition") == partition)
        pieces = sorted(unpacked(table_of(found).to_batches()), key=lambda one: (*one.place, one.sequence))
        return in_order((one.place, one.rows()) for one in pieces)

    def dataframe(self, selection: Selection) -> DataFrame:
        """The rows of all partitions, in no order, with the columns of ``EXCHANGE_SCHEMA``."""
        return mapped(self.selected(selection), plain_rows, _PLAIN_DDL)

    def selected(self, selection: Selection) -> DataFrame:
        """The same as packed rows."""
        kind, topic = sql.col("kind") == int(selection.kind), sql.col("topic") == selection.topic
        return self.packed(selection.slices, kind & topic)

    def packed(self, slices: tuple[int, ...], condition: Column) -> DataFrame:
        """Packed rows of some slices."""
        paths = [self.path_of(slice) for slice in slices]
        return self._session.read.schema(PACKED_DDL).parquet(*paths).where(condition)

    def write(self, slice: int, rows: DataFrame) -> None:
        """Compute packed rows and stage them as a slice's, in place of what was staged of it."""
        # Packed rows are large and compressed: Parquet's writer looks at its memory only every so many rows, and would
        # try to find equal ones.
        rows.write.mode("overwrite").options(
            **{
                "parquet.enable.dictionary#data": "false",
                "parquet.page.size.row.check.min": "1",
                "parquet.block.size.row.check.min": "1",
                "parquet.block.size": str(16 * 1024 * 1024),
                "compression": "none",
            }
        ).parquet(self.path_of(slice))

    def path_of(self, slice: int) -> str:
        return f"{self._folder.url}/slice-{slice:02}"
