"""How late do airlines leave New York? Departures counted and averaged by airline and day.

    flights (carrier -> Flight) ── not cancelled ──┐
                                                   ├─ join ─ one-day windows ─ mean-delays
    airlines (carrier -> Airline) ─────────────────┘

`make demo` feeds it the 336,776 departures of 2013 (flights_feed.py) and prints who was latest (flights_report.py).
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from pystreams import App, TimeWindows

FLIGHTS = "flights"
AIRLINES = "airlines"
MEAN_DELAYS = "mean-delays"


class Flight(msgspec.Struct, frozen=True):
    """A scheduled departure. A cancelled flight has no ``dep_time``; ``dep_delay`` is in minutes, negative if early."""

    flight: int
    origin: str
    dest: str
    dep_time: int | None
    dep_delay: int | None


class Airline(msgspec.Struct, frozen=True):
    """The name behind a carrier code."""

    name: str


class Departure(msgspec.Struct, frozen=True):
    """A flight that left, with its airline's name and its delay in minutes."""

    airline: str
    delay: int


class Delays(msgspec.Struct, frozen=True):
    """The departures of an airline on one day."""

    airline: str = ""
    departures: int = 0
    delay_sum: int = 0

    def add(self, departure: Departure) -> Delays:
        """These departures and one more."""
        return Delays(departure.airline, self.departures + 1, self.delay_sum + departure.delay)


class MeanDelay(msgspec.Struct, frozen=True):
    """The result: minutes of delay, on average, of an airline's departures on one day (UTC)."""

    airline: str
    departures: int
    mean_delay: float


# The results of 2013 are older than any time-based retention: a changelog that deletes by time would lose them.
app = App("flights", window_changelog_retention_ms=-1)

airlines = app.table(AIRLINES, key=str, value=Airline)

(
    app.stream(FLIGHTS, key=str, value=Flight)
    .filter(lambda flight: flight.dep_time is not None)
    .join(airlines, lambda flight, airline: Departure(airline.name, flight.dep_delay or 0))
    .group_by_key(value=Departure)
    # Each partition holds its flights in order of event time, so nothing is late and no grace is needed.
    .windowed_by(TimeWindows.tumbling(timedelta(days=1)))
    .aggregate(Delays, Delays.add, value=Delays, name="delays-by-day")
    .to_stream()
    .map_values(lambda total: MeanDelay(total.airline, total.departures, total.delay_sum / total.departures))
    .to(MEAN_DELAYS, value=MeanDelay)
)
