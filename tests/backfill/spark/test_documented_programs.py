"""The programs that the pages about backfills show run on Spark, with places of the test in theirs."""

from __future__ import annotations

from contextlib import nullcontext
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from apps.flights import Airline, Flight, MeanDelay
from pystreams import App
from pystreams.backfill import EmbeddedSource, SparkExecutor, backfill, spark_session
from tests.backfill.documented import archive, program
from tests.kafka.support import Cluster

TABLES = "backfill/tables.md"
REFERENCE = "backfill/reference.md"

DAY_MS = 86_400_000

ORDERS = [("ann", {"item": "tea", "cents": 3}, 0), ("ann", {"item": "pie", "cents": 4}, DAY_MS)]

FLIGHTS = [("UA", Flight(1, "EWR", "IAH", 517, 2), DAY_MS), ("UA", Flight(2, "LGA", "IAH", 533, 4), DAY_MS)]


@pytest.mark.slow
def test_results_are_tables_as_the_page_shows(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", spark.sparkContext.pythonExec)  # which the program sets
    archive(tmp_path / "archive", "orders", ORDERS)
    places = {shown: f"{tmp_path}{shown}" for shown in ("/archive", "/staging/orders", "/exports/revenue")}
    names: dict[str, Any] = {"__name__": "builtins"}
    exec(program(TABLES, "from dataclasses", {}), names)
    exec(program(TABLES, "import os", places), names)
    told = capsys.readouterr().out
    assert "|ann|    7|  3|" in told
    assert told.count("|         1|") == 2
    # Formats that Spark has with packages alone: tests/backfill/lake.
    ours = {
        "/tables/revenue": f"{tmp_path}/tables/revenue",
        'SparkTable("delta", "/lake/revenue")': f'"{tmp_path}/delta"',
        'SparkTable("iceberg", "lake.shop.revenue")': f'"{tmp_path}/iceberg"',
    }
    exec(program(TABLES, "from pystreams.backfill import SparkTable", ours), names)
    for folder in ("exports/revenue", "tables/revenue", "delta", "iceberg"):
        rows = pq.read_table(tmp_path / folder).to_pylist()
        assert [row["value"]["cents"] for row in rows] == [7], folder


@pytest.mark.slow
def test_the_program_of_the_reference_computes_hands_over_and_reads_what_is_live(
    spark: Any,
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", spark.sparkContext.pythonExec)
    cluster.create("flights", "airlines", "mean-delays")
    cluster.write("airlines", [("UA", Airline("United"), 0)], value=Airline)
    cluster.write("flights", FLIGHTS, value=Flight)
    archive(tmp_path / "archive", "flights", FLIGHTS)
    places = {
        "s3://archive": f"{tmp_path}/archive",
        "broker:9092": cluster.bootstrap_servers,
        "s3a://bucket/staging/flights": f"{tmp_path}/staging",
        "s3a://bucket/results": f"{tmp_path}/results",
        'SparkTable("delta", "s3a://bucket/delays")': f'"{tmp_path}/delays"',
    }
    names: dict[str, Any] = {"__name__": "builtins"}
    exec(program(REFERENCE, "import os", places), names)
    assert "{United, 2, 6}" in capsys.readouterr().out
    rows = pq.read_table(tmp_path / "delays").to_pylist()
    assert [row["value"]["mean_delay"] for row in rows] == [3.0]
    assert any((tmp_path / "results").iterdir())
    assert [read.value.mean_delay for read in cluster.read("mean-delays", value=MeanDelay)] == [3.0]
    assert [row.value.delay_sum for row in names["delays"].collect()] == [6]
    assert names["flights"].count() == 2


@pytest.mark.slow
def test_the_session_of_the_reference_serves_a_backfill(spark: Any, tmp_path: Path, new_log: Any) -> None:
    """Of the test's own session, because a process has one."""

    def of_the_test(*arguments: Any, **more: Any) -> Any:
        signature(spark_session).bind(*arguments, **more)
        return nullcontext(spark)

    log = new_log("log")
    log.create("in", "out")
    log.write("in", [("a", 1, 0), ("b", 2, 1)])
    app = App("copying")
    app.stream("in", key=str, value=int).to("out")
    names: dict[str, Any] = {
        "spark_session": of_the_test,
        "backfill": backfill,
        "SparkExecutor": SparkExecutor,
        "app": app,
        "sources": EmbeddedSource(str(log.path / "log.db")),
    }
    exec(program(REFERENCE, "with spark_session", {"/staging/flights": f"{tmp_path}/staging"}), names)
    assert [row.value for row in names["result"].emitted("out").collect()] == [1, 2]
