"""An archive in a table is a table for Spark, which counts, compacts and deletes in it; backfills read it all the
same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.archive.archive import archive
from pystreams.errors import StateError
from tests.backfill.archive.kit import ONE, OTHER, history, rows
from tests.backfill.archive.lakes import CATALOG, KINDS, Lake

RUNS = (10, 20, 30)
#: How Spark says it for each format.
COMPACT = {
    "delta": ["OPTIMIZE {table}"],
    "iceberg": [
        f"CALL {CATALOG}.system.rewrite_data_files(table => 'shop.archive', options => map('rewrite-all','true'))"
    ],
}
MARK_AS_DELETED = {
    "delta": ["ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)"],
    "iceberg": ["ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"],
}
REWRITE = {"delta": ["REORG TABLE {table} APPLY (PURGE)"], "iceberg": COMPACT["iceberg"]}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def archived(spark: Any, lake: Path, kind: str) -> Lake:
    """Three runs of both partitions."""
    if kind == "iceberg":
        spark.sql(f"DROP TABLE IF EXISTS {CATALOG}.shop.archive PURGE")
    place = KINDS[kind](lake)
    if kind == "delta":
        place = KINDS[kind](lake / f"delta-{len(list(lake.iterdir()))}")
    for count in RUNS:
        archive(history(count), ["lines"], place.target())
    return place


def name_of(lake: Lake, kind: str) -> str:
    return f"delta.`{lake.folder / 'table'}`" if kind == "delta" else f"{CATALOG}.shop.archive"


def run(spark: Any, statements: list[str], table: str) -> None:
    for statement in statements:
        spark.sql(statement.format(table=table)).collect()


def test_spark_finds_each_record_once(spark: Any, archived: Lake, kind: str) -> None:
    table = name_of(archived, kind)
    found = spark.sql(
        f"SELECT count(*) AS rows, count(DISTINCT topic, partition, offset) AS records FROM {table}"
    )
    expected = 2 * len(rows(RUNS[-1]))
    assert found.first().asDict() == {"rows": expected, "records": expected}
    [row] = spark.sql(f"SELECT * FROM {table} WHERE partition = 1 AND offset = 3").collect()
    assert (bytes(row.key), bytes(row.value), row.timestamp) == (b"k1", b"v3", 1003)
    assert [(header.name, bytes(header.value)) for header in row.headers] == [("h", b"x")]


def test_what_spark_has_compacted_is_read_in_order_and_goes_on(spark: Any, archived: Lake, kind: str) -> None:
    run(spark, COMPACT[kind], name_of(archived, kind))
    assert len(archived.source().index.pieces[ONE]) == 1
    for count in (RUNS[-1], 40):
        archive(history(count), ["lines"], archived.target())
        for partition in (ONE, OTHER):
            assert archived.archived(partition) == rows(count, partition=partition)
            assert archived.offsets(partition) == [row[0] for row in rows(count)]


def test_rows_that_spark_marks_as_deleted_are_refused_until_it_has_rewritten_the_files(
    spark: Any, archived: Lake, kind: str
) -> None:
    table = name_of(archived, kind)
    run(spark, [*MARK_AS_DELETED[kind], "DELETE FROM {table} WHERE offset = 3"], table)
    with pytest.raises(StateError, match="marked as deleted"):
        archived.source().partitions()
    run(spark, REWRITE[kind], table)
    assert archived.archived() == [row for row in rows(RUNS[-1]) if row[0] != 3]
    archive(history(40), ["lines"], archived.target())
    assert archived.archived() == [row for row in rows(40) if row[0] != 3]
