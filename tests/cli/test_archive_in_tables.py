"""``archive --format`` keeps topics in a table of Delta Lake or Iceberg, from which a backfill goes to a live
application: each record counts once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = {"delta": "archive", "iceberg": "lake.shop.archive"}
PROGRAM = """
from pystreams import App

app = App("words")
words = app.stream("lines", value=str).flat_map_values(str.split)
words.group_by(lambda word: word, key=str).count(name="counts").to_stream().to("counts")
"""


@pytest.fixture
def run(folder: Path):
    """Runs ``pystreams ARGUMENTS`` as a program of its own: pyiceberg reads its variables when it is imported."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        "PYICEBERG_CATALOG__LAKE__TYPE": "sql",
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{folder}/catalog.db",
        "PYICEBERG_CATALOG__LAKE__WAREHOUSE": f"file://{folder}/warehouse",
    }

    def command(*arguments: str, stdin: str = "", code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pystreams", *arguments],
            env=env,
            cwd=folder,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    (folder / "words.py").write_text(PROGRAM)
    command("topics", "create", "lines", "--partitions", "2")
    command("topics", "create", "counts")
    return command


@pytest.mark.parametrize("kind", PLACES)
def test_from_a_topic_to_a_table_and_on_to_a_live_application(run, kind: str):
    run("produce", "lines", stdin="to be\nor not\n")
    archive = ("archive", "lines", "--format", kind, "--to", PLACES[kind], "--master", "none")
    assert "2 records in" in run(*archive)
    assert "is up to date" in run(*archive)
    run("produce", "lines", stdin="to be\n")
    assert "1 record in 1 file" in run(*archive)
    source = f"{kind}:{PLACES[kind]}"
    backfill = ("backfill", "words", "--source", source, "--master", "none", "--hand-over", "embedded")
    assert "Handed over to embedded log" in run(*backfill)
    run("produce", "lines", stdin="be\n")
    run("run", "words", "--until-caught-up")
    # Two from the table, and one live.
    assert run("consume", "counts").split("\n")[0].split()[-2:] == ["be", "3"]


def test_a_source_that_names_no_table_is_refused(run):
    for kind in PLACES:
        assert "does not say where the table is" in run("backfill", "words", "--source", kind, code=2)


def test_a_table_that_is_not_there_is_named(run):
    told = run("backfill", "words", "--source", "delta:nowhere", "--master", "none", code=2)
    assert "there is no Delta table at" in told
    told = run("backfill", "words", "--source", "iceberg:lake.shop.nothing", "--master", "none", code=2)
    assert "there is no Iceberg table lake.shop.nothing" in told


def test_a_backfill_is_not_approximate_with_offsets(run):
    run("produce", "lines", stdin="to be\n")
    run("archive", "lines", "--format", "delta", "--to", "archive", "--master", "none")
    source = ("--source", "delta:archive", "--master", "none", "--approximate")
    assert "has offsets" in run("backfill", "words", *source, code=2)
