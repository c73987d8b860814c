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
def run(folder: Path, pystreams):
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
    for topic, partitions in (("lines", "2"), ("counts", "1")):
        assert pystreams("topics", "create", topic, "--partitions", partitions).code == 0
    return command


@pytest.mark.parametrize("kind", PLACES)
def test_from_a_topic_to_a_table_and_on_to_a_live_application(run, pystreams, kind: str):
    assert pystreams("produce", "lines", stdin="to be\nor not\n").code == 0
    archive = ("archive", "lines", "--format", kind, "--to", PLACES[kind], "--master", "none")
    assert "2 records in" in run(*archive)
    assert "is up to date" in run(*archive)
    assert pystreams("produce", "lines", stdin="to be\n").code == 0
    assert "1 record in 1 file" in run(*archive)
    backfill = ("backfill", "words", "--source", f"{kind}:{PLACES[kind]}", "--master", "none")
    if kind == "delta":
        assert "has offsets" in run(*backfill, "--approximate", code=2)
    assert "Handed over to embedded log" in run(*backfill, "--hand-over", "embedded")
    assert pystreams("produce", "lines", stdin="be\n").code == 0
    assert pystreams("run", "words", "--until-caught-up").code == 0
    # Two from the table, and one live.
    assert pystreams("consume", "counts").lines[0].split()[-2:] == ["be", "3"]


@pytest.mark.usefixtures("run")
def test_a_source_that_names_no_table_is_refused(pystreams):
    for kind in PLACES:
        refused = pystreams("backfill", "words", "--source", kind)
        assert refused.code == 2
        assert "does not say where the table is" in refused.err


def test_a_table_that_is_not_there_is_named(run):
    told = run("backfill", "words", "--source", "delta:nowhere", "--master", "none", code=2)
    assert "there is no Delta table at" in told
    told = run("backfill", "words", "--source", "iceberg:lake.shop.nothing", "--master", "none", code=2)
    assert "there is no Iceberg table lake.shop.nothing" in told
