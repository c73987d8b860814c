"""``archive`` keeps topics in Parquet, adds what is new, and says what it did and what cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pystreams.cli.commands.archive import before_reading, for_offsets
from pystreams.cli.masters import Master


@pytest.fixture
def lines(pystreams) -> None:
    """A topic with two records in an embedded log."""
    pystreams("topics", "create", "lines", "--partitions", "2")
    pystreams("produce", "lines", stdin="to be\nor not\n")


def in_archive(folder: Path) -> list[bytes]:
    return sorted(pq.read_table(folder / "archive").column("value").to_pylist())


def test_each_run_adds_what_is_new(pystreams, lines, folder: Path):
    first = pystreams("archive", "lines", "--to", "archive", "--master", "none")
    assert first.code == 0
    assert "2 records in" in first.err
    again = pystreams("archive", "lines", "--to", "archive", "--master", "none")
    assert again.code == 0
    assert "the archive archive is up to date" in again.err
    pystreams("produce", "lines", stdin="to be\n")
    third = pystreams("archive", "lines", "--to", "archive", "--master", "none")
    assert "1 record in 1 file" in third.err
    assert in_archive(folder) == [b"or not", b"to be", b"to be"]


def test_a_backfill_reads_it(pystreams, lines, folder: Path):
    (folder / "words.py").write_text(
        "from pystreams import App\n"
        "app = App('words', window_changelog_retention_ms=-1)\n"
        "app.stream('lines', value=str).flat_map_values(str.split).group_by(lambda w: w).count(name='counts')"
        ".to_stream().to('out')\n"
    )
    assert pystreams("archive", "lines", "--to", "archive", "--master", "none").code == 0
    done = pystreams("backfill", "words", "--source", "parquet:archive", "--master", "none")
    assert done.code == 0, done.err


def test_a_topic_that_is_not_there_is_refused(pystreams, lines):
    outcome = pystreams("archive", "words", "--to", "archive", "--master", "none")
    assert outcome.code == 4
    assert "there is no topic words" in outcome.err
    assert "lines" in outcome.err
    mistyped = pystreams("archive", "linse", "--to", "archive", "--master", "none")
    assert "did you mean lines?" in mistyped.err


def test_a_log_that_is_not_there_is_refused_and_not_made(pystreams, folder: Path):
    outcome = pystreams("archive", "lines", "--to", "archive", "--master", "none", "--embedded-log", "log.db")
    assert outcome.code == 4
    assert "There is no embedded log" in outcome.err
    assert not (folder / "log.db").exists()
    assert not (folder / "archive").exists()


def test_a_place_that_cannot_be_is_refused(pystreams, lines):
    outcome = pystreams("archive", "lines", "--to", "nowhere://archive", "--master", "none")
    assert outcome.code == 2
    assert "nowhere://archive is not on a file system" in outcome.err


def test_settings_of_spark_without_spark_are_refused(pystreams, lines):
    outcome = pystreams(
        "archive", "lines", "--to", "archive", "--master", "none", "--conf", "spark.ui.port=1"
    )
    assert outcome.code == 2
    assert outcome.err == (
        "Error: --conf cannot be used with --master none\n"
        "  why:   only Spark has this option\n"
        "  next:  name Spark's master (--master 'local[*]'), or leave out --conf\n"
    )


@pytest.mark.parametrize("master", ["processes", "processes[0]", "processes[2]"])
def test_worker_processes_are_refused(pystreams, lines, master: str):
    outcome = pystreams("archive", "lines", "--to", "archive", "--master", master)
    assert outcome.code == 2
    assert outcome.err == (
        "Error: archive cannot run in worker processes\n"
        "  why:   this process or Spark writes an archive\n"
        "  next:  use --master none, or Spark's master (--master 'local[*]')\n"
    )


def test_this_process_writes_few_records_and_spark_many(pystreams, lines, monkeypatch):
    outcome = pystreams("archive", "lines", "--to", "archive")
    assert outcome.code == 0
    assert "Spark" not in outcome.err
    assert for_offsets(19_999_999) == Master("none")
    monkeypatch.setattr("loky.cpu_count", lambda: 4)
    assert for_offsets(20_000_000) == Master("local[*]", "there are 20,000,000 offsets to archive")


def test_settings_of_spark_choose_spark():
    conf = {"spark.ui.port": "1"}
    assert before_reading("auto", conf) == Master("local[*]", "--conf is for Spark")
    assert before_reading("none", conf) == Master("none")


def test_without_arrow_the_way_to_install_it_is_named(pystreams, lines, folder: Path):
    program = """
import sys
sys.modules["pyarrow"] = None
from importlib import util
found = util.find_spec
util.find_spec = lambda name, *rest: None if name == "pyarrow" else found(name, *rest)
from pystreams.cli.main import main
main(["archive", "lines", "--to", "archive", "--master", "none"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "This command needs pyarrow" in done.stderr
    assert "Traceback" not in done.stderr
