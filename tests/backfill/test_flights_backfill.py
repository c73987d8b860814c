"""The worked example in small: flights from an archive until November, live from there, equal to a year of live."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from apps import flights_backfill, flights_feed
from apps.flights import AIRLINES, FLIGHTS
from pystreams import open_log
from pystreams.cli.main import main
from tests.backfill.flights_kit import few_rows

ROOT = Path(__file__).resolve().parents[2]

Command = Callable[..., None]


def here(*arguments: str) -> None:
    """Run a command of ``pystreams`` in this process."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0


def on_its_own(*arguments: str) -> None:
    """Run it in a process of its own: Spark's JVM ends with it."""
    done = subprocess.run(
        [sys.executable, "-m", "pystreams", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]


@pytest.fixture
def few_flights(tmp_path, monkeypatch):
    """An empty working directory, and a year with fewer flights."""
    monkeypatch.setattr(flights_feed, "read_rows", few_rows)
    monkeypatch.chdir(tmp_path)
    return flights_feed.read_flights(flights_feed.data_folder())


def fill(log: Path) -> None:
    with open_log(log) as opened:
        flights_feed.feed(opened, flights_feed.data_folder())


def run(log: Path) -> None:
    """The application, live, with every update a result."""
    options = ("--embedded-log", str(log), "--state-dir", f"{log}-state")
    here("run", "apps.flights", "--until-caught-up", *flights_backfill.EVERY_UPDATE, *options)


@pytest.mark.parametrize(
    "master,command",
    [("none", here), pytest.param("local[2]", on_its_own, marks=pytest.mark.slow)],
    ids=["without Spark", "on Spark"],
)
def test_ten_months_of_history_and_two_months_live_are_a_year_of_live(few_flights, master, command: Command):
    live, handed = Path("live.db"), Path("handed-over.db")
    for log in (live, handed):
        fill(log)
    run(live)
    at = ("--embedded-log", str(handed))
    here("archive", FLIGHTS, AIRLINES, "--to", "archive", "--master", "none", *at)
    gone = flights_backfill.truncate(handed)
    assert len(few_flights) * 0.8 < gone < len(few_flights) * 0.9
    command(
        *("backfill", "apps.flights", "--source", "parquet:archive", "--until", flights_backfill.CUT),
        *("--emit", "topic", "--hand-over", "embedded", *flights_backfill.EVERY_UPDATE, *at),
        *("--master", master),
    )
    run(handed)
    assert flights_backfill.compare(live, handed)


def test_the_comparison_finds_what_differs(few_flights, capsys):
    fill(Path("one.db"))
    fill(Path("other.db"))
    run(Path("one.db"))
    assert not flights_backfill.compare(Path("one.db"), Path("other.db"))
    assert "Different at record 0" in capsys.readouterr().out


def test_nothing_is_not_the_same_as_nothing(few_flights, capsys):
    for log in (Path("one.db"), Path("other.db")):
        fill(log)
    assert not flights_backfill.compare(Path("one.db"), Path("other.db"))
    assert "Nothing to compare" in capsys.readouterr().out


def test_the_demo_deletes_no_folder_but_its_own(tmp_path):
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(SystemExit, match="not of this demo"):
        flights_backfill.main(tmp_path, "none")
    assert (tmp_path / "letter.txt").exists()
