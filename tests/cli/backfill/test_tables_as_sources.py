"""A table that ``--source`` describes is read with the columns and options that it names."""

from __future__ import annotations

from pathlib import Path

from pystreams.backfill.sources import DataFrameSource, SparkTable
from pystreams.cli.commands.backfill.inputs import Places, open_sources, parse_sources

PLACES = Places(Path("log.db"), None, {}, approximate=False)


def opened(text: str) -> DataFrameSource:
    source = open_sources(parse_sources([f"orders={text}"]), ["orders"], PLACES)["orders"]
    assert isinstance(source, DataFrameSource)
    return source


def test_columns_are_named_and_the_rest_is_for_sparks_reader() -> None:
    table = opened(
        "jdbc:postgresql://host/shop?dbtable=orders&user=me&key=a,b&timestamp=at&value=cents&partitions=4"
    )
    assert table.frame == SparkTable(
        "jdbc", "jdbc:postgresql://host/shop", {"dbtable": "orders", "user": "me"}
    )
    assert (table.key, table.value, table.timestamp, table.partitions) == (["a", "b"], "cents", "at", 4)
    assert not table.exact


def test_partition_and_offset_make_it_exact() -> None:
    table = opened("parquet:/lake/orders?timestamp=at&partition=p&offset=o")
    assert table.frame == SparkTable("parquet", "/lake/orders")
    assert (table.key, table.value, table.partitions) == (None, None, None)
    assert table.exact


def test_only_plain_files_of_parquet_need_no_spark() -> None:
    assert not opened("parquet:/lake/orders?timestamp=at").needs_spark
    assert opened("parquet:/lake/orders?timestamp=at&mergeSchema=true").needs_spark
    assert opened("delta:/lake/orders?timestamp=at").needs_spark
    assert opened("csv:/lake/orders?timestamp=at&header=true").needs_spark
