"""On Spark the tables of a result are DataFrames of the user's session, with the types and rows of an inline run."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.backfill.application import NamedApplication
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.spark.arrow import table_of
from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.kit import Backfill, memory
from tests.backfill.typed_program import typed, typed_history

APPLICATION = NamedApplication("tests.backfill.typed_program")


@pytest.fixture(scope="module")
def results(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[BackfillResult, BackfillResult]:
    """Inline, and on Spark."""
    folder, source = tmp_path_factory.mktemp("staging"), memory(typed_history())
    on_spark = Backfill(APPLICATION, source, folder / "spark", executor=SparkExecutor(spark)).run()
    return Backfill(typed(), source, folder / "inline").run(), on_spark


@pytest.mark.parametrize("store", ["revenue", "per-minute", "visits", "last-item", "own"])
def test_a_store_is_a_dataframe(results: tuple[BackfillResult, BackfillResult], store: str) -> None:
    inline, on_spark = (result.table(store) for result in results)
    found = table_of(on_spark)
    assert found.schema == inline.schema
    assert len(found) > 0
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, inline.to_pylist()))


def test_emitted_records_are_a_dataframe(results: tuple[BackfillResult, BackfillResult]) -> None:
    inline, on_spark = (result.emitted("big-orders") for result in results)
    found = table_of(on_spark.orderBy("partition", "offset"))
    assert found.schema == inline.schema
    assert found.to_pylist() == inline.to_pylist()


def test_a_dataframe_is_for_sql_of_the_users_session(
    spark: Any, results: tuple[BackfillResult, BackfillResult]
) -> None:
    inline, on_spark = results
    on_spark.table("revenue").createOrReplaceTempView("revenue")
    on_spark.table("per-minute").createOrReplaceTempView("per_minute")
    rows = spark.sql(
        """select value.total, items, n from
            (select key, value, sum(item.cents) as items from revenue lateral view explode(value.items) as item
             group by key, value) join
            (select key.number, sum(value) as n from per_minute where window_end > timestamp '1970-01-01 00:01:00Z'
             group by key.number) on key.number = number"""
    ).collect()
    assert len(rows) == 6
    counted = inline.table("per-minute").to_pylist()
    assert sum(row.n for row in rows) == sum(row["value"] for row in counted if row["window_end"].minute > 1)
    spark.catalog.dropTempView("revenue")
    spark.catalog.dropTempView("per_minute")
