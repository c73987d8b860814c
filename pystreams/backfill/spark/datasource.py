"""Topics and stores as tables of Spark.

    spark.dataSource.register(PystreamsDataSource)
    reader = spark.read.format("pystreams").option("bootstrap_servers", "broker:9092")
    reader.options(store="counts", application="apps.wordcount").load()

Options are those of ``tables.options.OPTIONS``; columns those of ``tables.log_tables.TopicTable``
and ``columns.store_columns.StoreColumns``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.local_disks import local_folder
from pystreams.backfill.spark.calls import partition_id
from pystreams.backfill.tables.options import table_of
from pystreams.backfill.tables.table import Table


class PystreamsDataSource(DataSource):
    """``spark.read.format("pystreams")``: one partition of Spark for each partition of a topic or store, as of the
    moment when it is planned. Workers read by themselves, in Arrow batches."""

    @classmethod
    def name(cls) -> str:
        return "pystreams"

    def schema(self) -> StructType:
        return from_arrow_schema(table_of(self.options).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(table_of(self.options))


class _Reader(DataSourceReader):
    def __init__(self, table: Table) -> None:
        self._table = table

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self._table.parts()]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        batches: Iterator[Arrow] = self._table.read(partition.value, local_folder(partition_id()))
        return batches
