"""The main job on real data: every carrier and day of 2013 equals a plain computation over the CSV file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from datetime import date
from pathlib import Path

import pytest

from apps.flights import app
from apps.flights_feed import data_folder, feed, read_rows
from apps.flights_report import read_results, worst
from pystreams import Streams, open_log
from pystreams.clock import Deadline, SystemClock

pytestmark = pytest.mark.slow

DEADLINE_MS = 180_000


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The embedded log and the metrics after the application has processed all flights."""
    folder = tmp_path_factory.mktemp("flights")
    config = app.config.override({"state_dir": folder / "state", "embedded_log": folder / "log.db"})
    log = open_log(config.embedded_log)
    assert feed(log, data_folder()) == 336_776
    streams = Streams(app, config)
    deadline = Deadline(SystemClock(), DEADLINE_MS)

    def in_time(_progress: object) -> None:
        assert not deadline.expired(), streams.progress()

    streams.run(until_caught_up=True, on_progress=in_time)
    yield log, streams.metrics
    log.close()


@pytest.fixture(scope="module")
def computed():
    """Departures and minutes of delay by carrier and day (UTC), straight from the file."""
    names = {}
    lines = (data_folder() / "airlines.csv").read_text(encoding="utf-8").splitlines()
    for line in lines[1:]:
        carrier, name = line.split(",", 1)
        names[carrier] = name
    sums: dict[tuple[str, date], list[int]] = defaultdict(lambda: [0, 0])
    for row in read_rows(data_folder()):
        if row["dep_time"] != "NA":
            of_day = sums[row["carrier"], date.fromisoformat(row["time_hour"][:10])]
            of_day[0] += 1
            of_day[1] += int(row["dep_delay"])
    return {
        key: (names[key[0]], departures, minutes / departures) for key, (departures, minutes) in sums.items()
    }


def test_every_carrier_and_day_equals_the_plain_computation(finished, computed):
    log, _ = finished
    results = read_results(log)
    assert len(results) == 5_430
    assert {key: (r.airline, r.departures, r.mean_delay) for key, r in results.items()} == computed


def test_nothing_was_dropped(finished):
    _, metrics = finished
    dropped = [sample for sample in metrics.snapshot() if "dropped" in sample.name and sample.value]
    assert dropped == []


def test_the_ten_latest_airlines_are_those_of_the_file(finished, computed):
    log, _ = finished
    minutes: dict[str, float] = defaultdict(float)
    departures: dict[str, int] = defaultdict(int)
    for (carrier, _), (_, count, mean) in computed.items():
        minutes[carrier] += count * mean
        departures[carrier] += count
    expected = sorted(departures, key=lambda carrier: -minutes[carrier] / departures[carrier])[:10]
    assert [carrier for carrier, *_ in worst(read_results(log), 10)] == expected


def test_feeding_twice_writes_nothing_more(finished):
    log, _ = finished
    assert feed(log, data_folder()) == 0


def test_the_report_prints_ten_airlines_and_what_to_try_next(finished):
    log, _ = finished
    file = log.description.removeprefix("embedded log at ")
    printed = subprocess.run(
        [sys.executable, "-m", "apps.flights_report"],
        env={**os.environ, "PYSTREAMS_EMBEDDED_LOG": file},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Frontier Airlines Inc." in printed.stdout
    assert "What to try next" in printed.stdout
