"""The demo's feeder: all flights or none, however often it is started and interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps import flights_feed
from apps.flights import AIRLINES, FLIGHTS, Airline, Flight
from pystreams import open_log
from tests.live.support import Log

FLIGHT = Flight(flight=1, origin="JFK", dest="LAX", dep_time=900, dep_delay=3)


def feed(log: Log, folder: Path) -> int:
    with open_log(log.path / "log.db") as opened:
        return flights_feed.feed(opened, folder)


def test_an_interrupted_feeder_starts_again_and_writes_nothing_twice(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_folder):
        raise KeyboardInterrupt

    folder = flights_feed.data_folder()
    monkeypatch.setattr(flights_feed, "read_flights", interrupted)
    with pytest.raises(KeyboardInterrupt):
        feed(log, folder)
    monkeypatch.setattr(flights_feed, "read_flights", lambda _: [("AA", FLIGHT, 1)] * 3)
    assert feed(log, folder) == 3
    assert feed(log, folder) == 0
    assert len(log.read(FLIGHTS, value=Flight)) == 3
    assert len(log.read(AIRLINES, value=Airline)) == len(flights_feed.read_airlines(folder))
