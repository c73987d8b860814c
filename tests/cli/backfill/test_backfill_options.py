"""Options of a backfill: what they mean, and what is said of those that are wrong, before anything is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pystreams.backfill.sources import SparkTable
from pystreams.cli.commands.backfill.inputs import SourceText, parse_source, parse_until
from pystreams.cli.commands.backfill.outputs import Emit, HandOver, parse_emits, parse_hand_over
from pystreams.errors import ConfigError
from pystreams.ids import TopicPartition
from tests.cli.backfill.backfill_kit import HERE, wordcount

__all__ = ["wordcount"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--source", "lines=parket:s3://key:se/cret@bucket/archive"],
        ["--source", "lines=parquet:s3://key:se/cret@bucket/archive?region=x&secret_key=se/cret"],
        ["--source", "parquet:s3://key:se/cret@one", "--source", "parquet:s3://key:se/cret@two"],
        ["--hand-over", "snapshot:s3a://key:se/cret@bucket/tables"],
        ["--emit", "parket:s3a://key:se/cret@bucket/results"],
        ["--emit", "word-counts=parket:s3a://key:se/cret@bucket/results"],
        ["--emit", "word-counts=delta:s3a://key:se/cret@bucket/results"],
        [
            "--staging",
            "s3a://key:se/cret@bucket/staging",
            "--emit",
            "parquet:s3a://key:se/cret@b",
            "--dry-run",
        ],
        ["--staging", "s3a://key:se/cret@bucket/a", "--previous", "s3a://key:se/cret@bucket/a/"],
    ],
)
def test_passwords_in_urls_are_never_shown(pystreams, wordcount, arguments, caplog):
    told = pystreams("backfill", wordcount, *arguments, *HERE)
    assert "key:***@" in told.out + told.err
    assert "se/cret" not in told.out + told.err + caplog.text


def test_urls_of_files_for_workers_stay_as_they_are():
    from pystreams.cli.spark import file_names

    assert file_names("s3a://bucket//shop.zip, ./local.py,") == ("s3a://bucket//shop.zip", "./local.py")


@pytest.mark.parametrize(
    "arguments,code,answer",
    [
        (["--source", "lins=embedded"], 2, "did you mean lines?"),
        (["--source", "lines=parket:here"], 2, "did you mean parquet?"),
        (["--source", "lines=parquet"], 2, "--source lines=parquet:FOLDER"),
        (["--source", "embedded", "--source", "embedded:other.db"], 2, "cannot have two sources"),
        (["--source", "lines=kafka"], 2, "--bootstrap-servers HOST:PORT"),
        (["--source", "lines=parquet:nowhere"], 2, "nowhere"),
        (["--source", "table:shop.lines?timestamp=at"], 2, "does not say for which topic the table is"),
        (["--source", "lines=iceberg:?timestamp=at"], 2, "does not say where the table is"),
        (
            ["--source", "lines=delta:/tables/lines?key=name"],
            2,
            "does not say which column is the timestamp",
        ),
        (["--source", "lines=table:lines?timestamp=at&kye=name"], 2, "did you mean key?"),
        (["--source", "lines=table:lines?timestamp"], 2, "pairs of a name and a value"),
        (["--source", "lines=table:lines?timestamp=at&partitions=0"], 2, "how many partitions"),
        (["--source", "lines=table:lines?timestamp=at"], 2, "on the command line --master 'local[*]'"),
        (
            ["--source", "lines=table:lines?timestamp=at", "--hand-over", "embedded"],
            2,
            "topic lines comes from a table without them",
        ),
        (["--boundary", "tomorrow"], 2, "write a time like 2013-11-01"),
        (["--boundary", "2013"], 2, "--boundary 2013 is ambiguous"),
        (["--boundary", "2013-11-01", "--until", "2013-12-01"], 2, "--boundary does not go with --until"),
        (["--boundary", "2013-11-01"], 2, "a boundary is only for topics whose history is in a table"),
        (["--boundary", "1383264000"], 2, "--boundary 1383264000 is ambiguous"),
        (["--boundary", "2999-11-01"], 2, "the boundary 2999-11-01T00:00:00Z is in the future"),
        (
            ["--source", "lines=parquet:nowhere", "--boundary", "2013-11-01"],
            2,
            "--source 'lines=KIND:PLACE?key=COLUMN&timestamp=COLUMN'",
        ),
        (["--until", "tomorrow"], 2, "write now, a time"),
        (["--until", "lines-0=ten"], 2, "TOPIC-PARTITION=OFFSET"),
        (["--until", "2013"], 2, "1970-01-01T00:00:02.013Z"),
        (["--until", "20131101"], 2, "write a time as 2013-01-01"),
        (["--until", "lines-0=1,lines-0=2"], 2, "--until names lines-0 twice"),
        (["--until", "lines-0=1000"], 4, "which the source does not hold"),
        (["--hand-over", "embeded"], 2, "did you mean embedded?"),
        (["--hand-over", "kafka"], 2, "--bootstrap-servers HOST:PORT"),
        (["--approximate", "--hand-over", "embedded"], 2, "--approximate"),
        (["--emit", "parquet"], 2, "--emit parquet:FOLDER"),
        (["--emit", "parquet:nowhere://bucket/results"], 2, "not on a file system that can be reached"),
        (["--emit", "topic", "--emit", "parquet:results"], 2, "they are topic and parquet:results"),
        (["--emit", "delta:tables"], 2, "--emit TOPIC=delta:PLACE"),
        (["--emit", "word-counts=delt:tables"], 2, "did you mean delta?"),
        (["--emit", "word-counts=orc:tables"], 2, "'orc' is not one of parquet, iceberg, delta"),
        (["--emit", "word-counts=iceberg"], 2, "write TOPIC=KIND:PLACE"),
        (["--emit", "=iceberg:lake.counts"], 2, "does not name a topic and its table"),
        (["--emit", "word-count=parquet:tables"], 4, "did you mean word-counts?"),
        (["--emit", "word-counts=delta:tables"], 2, "a table that Spark writes"),
        (["--emit", "word-counts=delta:tables"], 2, "--emit word-counts=parquet:FOLDER"),
        (
            ["--emit", "word-counts=parquet:/a/b", "--emit", "parquet:/a/../a/b"],
            2,
            "cannot be both an archive",
        ),
        (
            ["--emit", "word-counts=parquet:/a/b/counts", "--emit", "parquet:/a/b"],
            2,
            "cannot be both an archive",
        ),
        (
            ["--emit", "word-counts=delta:tables/a", "--emit", "parquet:tables"],
            2,
            "cannot be both an archive",
        ),
        (["--emit", "word-counts=parquet"], 2, "parquet needs a place"),
        (["--emit", "word-counts=none"], 2, "write --emit none, without a topic"),
        (["--emit", "word-counts=topic"], 2, "topic is for all topics"),
        (["--emit", "word-counts=parquet:wordcount.file"], 2, "wordcount.file is a file, not a folder"),
        (["--conf", "spark.driver.memory"], 2, "spark.driver.memory=4g"),
        (["--conf", "spark.driver.memory=4g"], 2, "--conf cannot be used with --master none"),
        (["--py-files", "shop.zip"], 2, "--py-files cannot be used with --master none"),
        (["--hand-over", "snapshot:s3a://bucket/tables"], 2, "give the path of a folder"),
        (["--staging", "s3a://bucket/staging"], 2, "without Spark nothing can be staged"),
        (["--staging", "wordcount.file"], 1, "Not a directory"),
        (["--hand-over", "snapshot:wordcount.file"], 1, "is a file, not a folder"),
        (["--commit-records", "0"], 2, "--commit-records"),
        (["--resume", "--overwrite"], 2, "--resume does not go with --overwrite"),
        (["--from-snapshot", "tables"], 2, "--hand-over kafka or"),
        (["--from-snapshot", "tables", "--hand-over", "embedded"], 1, "tables"),
        (
            ["--from-snapshot", "tables", "--emit", "topic", "--dry-run"],
            2,
            "next: leave out --from-snapshot, or --emit and --dry-run",
        ),
        (
            ["--from-snapshot", "tables", "--source", "embedded"],
            2,
            "next: leave out --from-snapshot, or --source",
        ),
        (["-s", "comit_interval_ms=1"], 2, "commit_interval_ms"),
    ],
)
def test_a_wrong_option_is_explained(folder, pystreams, wordcount, arguments, code, answer):
    (folder / "wordcount.file").touch()
    refused = pystreams("backfill", wordcount, *arguments, *HERE)
    assert refused.code == code, refused.err
    assert answer in " ".join(refused.err.split())
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    "missing,master,package,extras",
    [
        ("pyarrow", "local[1]", "pyarrow", "backfill"),
        ("pyspark", "local[1]", "pyspark", "backfill"),
        ("grpc", "sc://host", "grpcio", "backfill,spark-connect"),
    ],
)
def test_packages_that_are_missing_are_named(
    pystreams, wordcount, monkeypatch, missing, master, package, extras
):
    from pystreams.cli import spark

    found = spark.find_spec
    monkeypatch.setattr(spark, "find_spec", lambda name: None if name == missing else found(name))
    refused = pystreams("backfill", wordcount, "--master", master)
    assert refused.code == 2
    assert f"This command needs {package}\n" in refused.err
    assert f"pip install 'pystreams-engine[{extras}]'" in refused.err


def test_without_java_the_way_without_spark_is_named(pystreams, wordcount, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    refused = pystreams("backfill", wordcount, "--master", "local[1]")
    assert refused.code == 2
    assert "--master none" in refused.err


def test_arrow_and_spark_are_imported_by_nobody_who_does_not_backfill():
    program = """
import sys, pystreams, pystreams.cli.main, pystreams.backfill
print([name for name in ("pyarrow", "pyspark", "pandas", "numpy") if name in sys.modules])
"""
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "[]\n"


@pytest.mark.parametrize(
    "text,meant",
    [
        ("orders=parquet:/archive", SourceText("orders", "parquet", "/archive")),
        ("parquet:/archive/topic=orders", SourceText(None, "parquet", "/archive/topic=orders")),
        ("a.b-c=json:s3a://bucket/x=1", SourceText("a.b-c", "json", "s3a://bucket/x=1")),
        ("kafka:one:9092,two:9092", SourceText(None, "kafka", "one:9092,two:9092")),
        ("embedded", SourceText(None, "embedded", "")),
        (
            "orders=table:shop.db.orders?key=customer&timestamp=at",
            SourceText("orders", "table", "shop.db.orders", {"key": "customer", "timestamp": "at"}),
        ),
        (
            "orders=jdbc:postgresql://host/shop?dbtable=orders&timestamp=at",
            SourceText("orders", "jdbc", "postgresql://host/shop", {"dbtable": "orders", "timestamp": "at"}),
        ),
        (
            "orders=parquet:/tables/orders?timestamp=at&value=item%20name,cents",
            SourceText(
                "orders", "parquet", "/tables/orders", {"timestamp": "at", "value": "item name,cents"}
            ),
        ),
        ("parquet:s3://bucket/a?region=x", SourceText(None, "parquet", "s3://bucket/a?region=x")),
    ],
)
def test_a_source_is_a_topic_a_kind_and_a_place(text, meant):
    assert parse_source(text) == meant


def test_until_is_now_a_time_or_offsets():
    assert parse_until("now") is None
    assert parse_until("1970-01-02") == 86_400_000
    assert parse_until("a-b-0=12, a-b-1=3") == {TopicPartition("a-b", 0): 12, TopicPartition("a-b", 1): 3}


def test_outputs_are_named_with_their_places():
    assert parse_hand_over("snapshot:/tables") == HandOver("snapshot", "/tables")
    assert HandOver("snapshot").snapshot("/staging/") == "/staging/snapshot"
    assert HandOver("snapshot").snapshot("s3a://bucket/staging") == "s3a://bucket/staging/snapshot"
    assert parse_emits(["parquet:s3a://bucket/results"]) == Emit("parquet", "s3a://bucket/results")
    assert parse_emits(["parquet:run=3/results"]) == Emit("parquet", "run=3/results")
    for table in ("iceberg:lake/day", "delta:lake/day"):
        kind = table.partition(":")[0]
        assert parse_emits([f"day={table}"]).tables == {
            "day": SparkTable(kind, str(Path("lake/day").absolute()))
        }
    # A name in a catalog is in no folder.
    assert parse_emits(["a=iceberg:lake.a", "parquet:."]).tables == {"a": SparkTable("iceberg", "lake.a")}
    several = [
        "big=parquet:tables/run=3",
        "topic",
        "revenue=iceberg:lake.shop.revenue",
        "day=delta:s3a://b/day",
    ]
    tables = {
        "big": "tables/run=3",
        "revenue": SparkTable("iceberg", "lake.shop.revenue"),
        "day": SparkTable("delta", "s3a://b/day"),
    }
    assert parse_emits(several) == Emit("topic", tables=tables)
    for wrong in ("kafka:somewhere", "none:x"):
        with pytest.raises(ConfigError):
            parse_hand_over(wrong)
