"""``--master``: in this process, in several, or on Spark; ``auto`` chooses, and says so. The result is the same."""

from __future__ import annotations

import loky
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pystreams import open_log
from pystreams.cli.commands.backfill import choosing
from tests.cli.backfill.backfill_kit import wordcount
from tests.cli.backfill.test_backfill import rows

__all__ = ["wordcount"]


def test_few_records_are_computed_by_this_process(pystreams, wordcount):
    done = pystreams("backfill", wordcount)
    assert done.code == 0, done.err
    assert "Chosen: --master none, because 2 records are soon computed." in done.err


def test_many_records_are_computed_by_several_processes_to_the_same_result(
    folder, pystreams, wordcount, monkeypatch
):
    monkeypatch.setattr(loky, "cpu_count", lambda: 3)
    with open_log(folder / ".pystreams" / "log.db") as log:
        for number in range(choosing.FEW_RECORDS):
            log.produce("lines", None, f"word{number % 100} again")
    here = pystreams("backfill", wordcount, "--master", "none", "--staging", "here")
    assert "Chosen" not in here.err
    several = pystreams("backfill", wordcount, "--staging", "several")
    assert several.code == 0, several.err
    assert (
        "Chosen: --master processes[2], because it has 50,002 records and up to 2 tasks at a time."
    ) in several.err
    assert rows(several, "store") == rows(here, "store")
    assert rows(several, "slice") == rows(here, "slice")


def test_a_dry_run_says_where_it_would_run(pystreams, wordcount):
    told = pystreams("backfill", wordcount, "--dry-run").err
    assert "Chosen: --master none, because" in told


def test_processes_are_as_many_as_the_user_says(pystreams, wordcount):
    done = pystreams("backfill", wordcount, "--master", "processes[2]", "--hand-over", "embedded")
    assert done.code == 0, done.err
    assert "Chosen" not in done.err
    again = pystreams("backfill", wordcount, "--master", "none", "--resume")
    assert rows(again, "store") == rows(done, "store")


@pytest.mark.parametrize(
    "arguments,answer",
    [
        (["--master", "processes[0]"], "history cannot be computed in 0 processes"),
        (
            ["--master", "processes", "--conf", "spark.driver.memory=4g"],
            "--conf cannot be used with --master processes",
        ),
        (["--master", "processes", "--staging", "s3a://bucket/x"], "without Spark nothing can be staged"),
    ],
)
def test_what_cannot_be_used_together_is_refused(pystreams, wordcount, arguments, answer):
    refused = pystreams("backfill", wordcount, *arguments)
    assert refused.code == 2, refused.err
    assert answer in " ".join(refused.err.split())


def test_what_was_begun_without_spark_is_not_continued_on_spark(folder, pystreams, wordcount):
    assert pystreams("backfill", wordcount).code == 0
    refused = pystreams("backfill", wordcount, "--resume", "--emit", "word-counts=delta:tables")
    assert refused.code == 1
    assert " ".join(refused.err.split()).endswith(
        "Error: the backfill in .pystreams/backfill/wordcount was begun without Spark, and Spark cannot continue it "
        "why: it would run on Spark now, because only Spark writes the table for word-counts "
        "next: begin it again on Spark (--overwrite), or leave that out"
    )
    assert not (folder / "tables").exists()


def test_a_task_that_fails_in_a_process_is_explained_as_in_this_one(folder, pystreams):
    (folder / "divides.py").write_text(
        "from pystreams import App\n"
        "app = App('divides')\n"
        "app.stream('numbers', key=str, value=int).map_values(lambda n: 6 // n).to('out', value=int)\n"
    )
    pystreams("topics", "create", "numbers", "out", "-p", "2")
    with open_log(folder / ".pystreams" / "log.db") as log:
        log.produce("numbers", "k", 0)
        log.produce("numbers", "k", 1)
    here = pystreams("backfill", "divides", "--master", "none")
    several = pystreams("backfill", "divides", "--master", "processes[2]", "--overwrite")
    assert (here.code, several.code) == (1, 1)
    assert "ZeroDivisionError" in here.err
    explained = [told.err[told.err.index("Error:") :] for told in (here, several)]
    assert explained[0] == explained[1]


def test_a_table_of_plain_parquet_needs_no_spark(folder, pystreams, wordcount):
    (folder / "words").mkdir()
    lines = pa.table({"line": ["tea and toast", "tea"], "at": pa.array([1, 2], pa.int64())})
    pq.write_table(lines, folder / "words" / "part-0.parquet")
    done = pystreams("backfill", wordcount, "--source", "lines=parquet:words?value=line&timestamp=at")
    assert done.code == 0, done.err
    assert "Chosen: --master none, because 2 records are soon computed." in done.err
    assert [row[3] for row in rows(done, "slice")] == ["2", "3"]
    assert [row[1:3] for row in rows(done, "store")] == [["counts", "3"]]
