"""State can be checked and joined with SQL: ``spark.read.format("pystreams")`` for stores and topics."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.snapshot import write_snapshot
from pystreams.backfill.sources import EmbeddedSource
from pystreams.backfill.spark.arrow import table_of
from pystreams.backfill.spark.datasource import PystreamsDataSource
from tests.backfill.kit import Backfill, memory
from tests.backfill.live import append, create
from tests.backfill.programs import history, word_count
from tests.backfill.typed_program import typed, typed_history
from tests.live.support import Log, run_to_the_end

pytestmark = pytest.mark.live


@pytest.fixture
def pystreams(spark: Any) -> Any:
    """A reader's maker."""
    spark.dataSource.register(PystreamsDataSource)
    return lambda **options: spark.read.format("pystreams").options(**options).load()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """What word count left of a history."""
    log = Log(tmp_path / "log")
    past = history("word count", 3, 2)
    create(log, past, ["word-counts"])
    append(log, past)
    run_to_the_end(log, word_count(state_dir=log.path / "state"))
    yield log
    log.close()


def test_a_store_agrees_with_sql_over_its_input(pystreams: Any, spark: Any, log: Log, tmp_path: Path) -> None:
    place = {"embedded_log": str(log.path / "log.db")}
    store = {"store": "counts", "application": "tests.backfill.tables.test_tables:words"}
    pystreams(**store, **place).createOrReplaceTempView("counts")
    pystreams(topic="lines", value_type="str", **place).createOrReplaceTempView("lines")
    words = "select explode(split(value, ' ')) as word from lines"
    counted = f"select word, count(*) as n from ({words}) where word <> '' group by word"
    rows = spark.sql(f"select key, value, n from counts full join ({counted}) on word = key").collect()
    assert len(rows) > 5
    assert all(row.value == row.n for row in rows)
    # Each task's partition is one of Spark's.
    assert spark.table("counts").rdd.getNumPartitions() == 2
    result = Backfill(word_count(), EmbeddedSource(place["embedded_log"]), tmp_path / "staging").run()
    write_snapshot(result, tmp_path / "snapshot")
    expected = sorted((row.key, row.value) for row in rows)
    for folder in (tmp_path / "snapshot", log.path / "state"):
        table = pystreams(**store, path=str(folder)).select("key", "value")
        assert sorted((row.key, row.value) for row in table.collect()) == expected


def test_a_live_store_of_structs_has_struct_columns(pystreams: Any, tmp_path: Path) -> None:
    past = typed_history()
    result = Backfill(typed(), memory(past), tmp_path / "staging").run()
    write_snapshot(result, tmp_path / "snapshot")
    store = {"store": "revenue", "application": "tests.backfill.typed_program"}
    found = table_of(pystreams(**store, path=str(tmp_path / "snapshot")).drop("key_bytes", "value_bytes"))
    assert found.schema == result.table("revenue").schema
    rows = result.table("revenue").to_pylist()
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, rows))


def test_columns_are_what_sql_wants(pystreams: Any, log: Log) -> None:
    table = pystreams(topic="lines", key_type="str", embedded_log=str(log.path / "log.db"))
    assert table.dtypes == [
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("key", "string"),
        ("key_bytes", "binary"),
        ("value_bytes", "binary"),
        ("headers", "array<struct<name:string,value:binary>>"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.where("timestamp >= '1970-01-01'").count() == table.count() > 0


def test_an_option_that_does_not_exist_is_named(pystreams: Any) -> None:
    with pytest.raises(Exception, match="there is no option bootstrap_server") as raised:
        pystreams(topic="lines", bootstrap_server="x:1")
    assert "did you mean bootstrap_servers?" in str(raised.value)


def test_a_plan_shows_no_secret(pystreams: Any, capfd: pytest.CaptureFixture[str]) -> None:
    table = pystreams(
        topic="lines",
        **{
            "bootstrap_servers": "127.0.0.1:1",
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "u",
            "kafka.sasl.password": "hush-hush",
        },
    )
    assert table.columns[0] == "topic"
    table.explain(True)
    with pytest.raises(Exception, match="Kafka") as raised:
        table.count()
    captured = capfd.readouterr()
    assert "RelationV2" in captured.out
    assert "hush-hush" not in str(raised.value) + captured.out + captured.err
