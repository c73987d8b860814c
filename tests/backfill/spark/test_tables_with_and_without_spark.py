"""A folder of Parquet that Spark has written gives the same records with and without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as sql

from pystreams.app import App
from pystreams.backfill import DataFrameSource, backfill, plan_backfill
from pystreams.backfill.compute.driver import run
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.sources import SparkTable
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.errors import ConfigError, StateError
from tests.backfill.kit import everything

#: A column of each type, some with nulls; moments in the oldest type of Parquet.
COLUMNS = {
    "who": "concat('c', id % 7)",
    "at": "timestamp_millis(1700000000000 + (id * 7919) % 1000)",
    "day": "date_add(date'2026-11-01', cast(id % 3 as int))",
    "hour": "cast(id % 2 as int)",
    "n": "if(id % 5 = 0, null, id)",
    "small": "cast(id as smallint)",
    "price": "cast(id / 8 as decimal(12, 3))",
    "share": "id / 3",
    "yes": "id % 2 = 0",
    "zoned": "timestamp_micros(1700000000000000 + id)",
    "local": "cast(timestamp_micros(1700000000000000 + id) as timestamp_ntz)",
    "list": "array(id, null)",
    "struct": "named_struct('a', id, 'b', timestamp_micros(id), 'c', array(named_struct('d', 'x')))",
    "map": "map('a', timestamp_micros(id))",
}


def job(frame: Any) -> dict[str, Any]:
    app = App("events", statestore_cache_max_bytes=0)
    events = app.stream("events", key=str, value=dict)
    events.to("out")
    events.group_by_key().count(name="of")
    sources = {"events": DataFrameSource(frame, key="who", timestamp="at", partitions=3)}
    return {"application": app, "sources": sources, "partitions": {"out": 3}}


def result_of(frame: Any, executor: Any, staging: Path) -> Any:
    return backfill(**job(frame), staging=staging, executor=executor)


def test_the_same_bytes(spark: Any, executor: SparkExecutor, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    rows = session.range(500).select(*(sql.expr(text).alias(name) for name, text in COLUMNS.items()))
    rows.repartition(3).write.partitionBy("day", "hour").parquet(str(folder))
    table = SparkTable("parquet", str(folder))
    on_spark = result_of(table, executor, tmp_path / "spark")
    without = result_of(table, InlineExecutor(), tmp_path / "without")
    assert everything(without) == everything(on_spark)
    assert without.manifest.rules == on_spark.manifest.rules


def test_a_frame_in_memory_is_one_of_spark_too(spark: Any, executor: SparkExecutor, tmp_path: Path) -> None:
    chosen = [name for name in COLUMNS if name not in ("map", "day")]
    rows = spark.range(100).select(*(sql.expr(COLUMNS[name]).alias(name) for name in chosen))
    table = rows.toArrow()
    on_spark = result_of(table, executor, tmp_path / "spark")
    assert everything(on_spark) == everything(result_of(table, InlineExecutor(), tmp_path / "without"))


def test_what_was_planned_on_spark_is_not_read_from_elsewhere_without_it(
    spark: Any, executor: SparkExecutor, tmp_path: Path
) -> None:
    frame = spark.range(9).select(sql.expr("concat('c', id) as who"), sql.expr("timestamp_millis(id) as at"))
    planned = plan_backfill(**job(frame), executor=executor)
    with pytest.raises(StateError, match=r"events-. comes from a DataFrame, which a worker cannot read"):
        run(planned, InlineExecutor(), str(tmp_path / "staging"))


def test_a_mismatch_is_explained_alike(spark: Any, executor: SparkExecutor, tmp_path: Path) -> None:
    spark.range(1).select(sql.expr("id as who"), sql.expr("'then' as at")).write.parquet(str(tmp_path / "t"))
    told = []
    for one in (executor, InlineExecutor()):
        try:
            result_of(SparkTable("parquet", str(tmp_path / "t")), one, tmp_path / "staging")
        except ConfigError as error:
            told.append(str(error))
    assert len(told) == 2
    assert told[0] == told[1]
