"""The DAG of the page about nights runs in a real Airflow: reports, tries, folders that follow each other."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.schedulers.environments import program
from tests.schedulers.nights import Nights


@dataclass
class Airflow:
    """Airflow's home, with its database in SQLite."""

    home: Path
    nights: Nights
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        own = {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.nights.folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        }
        self.environment = {**self.nights.environment, **own}

    def call(self, *arguments: str) -> str:
        """What a command of Airflow prints."""
        done = subprocess.run(
            [program("airflow", "airflow"), *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        return done.stdout

    def run(self, night: str) -> None:
        """One run of the DAG."""
        print(self.call("dags", "test", "shop_nightly", night))

    def tasks(self, night: str) -> dict[str, tuple[str, int]]:
        """By task its state, and the number of its last try."""
        query = (
            "select task_id, t.state, try_number from task_instance t join dag_run r using (dag_id, run_id)"
        )
        return {task: (state, tries) for task, state, tries in self._ask(query, night)}

    def report(self, night: str) -> Any:
        """What the task has returned."""
        query = "select value from xcom x join dag_run r using (dag_id, run_id)"
        ((value,),) = self._ask(query, night, "and task_id = 'backfill' and key = 'return_value'")
        report = json.loads(value)
        return json.loads(report) if isinstance(report, str) else report

    def _ask(self, query: str, night: str, more: str = "") -> list[Any]:
        with closing(sqlite3.connect(self.home / "airflow.db")) as database:
            return database.execute(f"{query} where r.logical_date like ? {more}", (f"{night}%",)).fetchall()


@pytest.fixture
def airflow(nights: Nights, tmp_path: Path) -> Airflow:
    found = Airflow(tmp_path / "airflow", nights)
    assert "Database migration done" in found.call("db", "migrate")
    return found


def test_each_night_continues_the_one_before_and_returns_its_report(airflow: Airflow, nights: Nights) -> None:
    for number, night in enumerate(("2026-03-03", "2026-03-04"), 1):
        nights.produce("cleo", float(number))
        airflow.run(night)
        assert airflow.tasks(night) == {"backfill": ("success", 1), "remove_old": ("success", 1)}
    third, fourth = airflow.report("2026-03-03"), airflow.report("2026-03-04")
    assert third["staging"] == "staging/2026-03-03"
    assert fourth["previous_id"] == third["backfill_id"]
    assert [one["records"] for one in fourth["slices"]] == [1]
    assert nights.staged == ["2026-03-02", "2026-03-03", "2026-03-04"]
    assert nights.rows() == [("ann", 16.5), ("ann", 19.0), ("ben", 3.0), ("cleo", 1.0), ("cleo", 3.0)]


def test_a_night_that_is_killed_is_tried_again(airflow: Airflow, nights: Nights) -> None:
    nights.produce("cleo", 1.0)
    nights.kill_once()
    airflow.run("2026-03-03")
    assert airflow.tasks("2026-03-03")["backfill"] == ("success", 2)
    assert nights.rows() == [("ann", 16.5), ("ann", 19.0), ("ben", 3.0), ("cleo", 1.0)]


def test_a_wrong_option_is_not_tried_again(airflow: Airflow, nights: Nights) -> None:
    nights.break_the_line()
    airflow.run("2026-03-03")
    assert airflow.tasks("2026-03-03") == {"backfill": ("failed", 1), "remove_old": ("upstream_failed", 0)}
