"""Print which airlines left New York latest in 2013, from the topic that apps/flights.py writes."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime

from rich import box
from rich.console import Console
from rich.table import Table

from apps.flights import MEAN_DELAYS, MeanDelay
from apps.flights_feed import log_of_command_line
from pystreams import TimeWindowedSerde
from pystreams.log import Log

DAY_MS = 86_400_000

NEXT = """\
What to try next, in this folder{where}:

  [bold]. .venv/bin/activate[/]
      puts the command pystreams on the PATH
  [bold]pystreams consume mean-delays --from -1[/]
      the last results, as they are in the topic
  [bold]pystreams describe apps.flights --format code[/]
      the Python that the topology in apps/flights.py compiles to
  [bold]pystreams reset apps.flights && pystreams run apps.flights[/]
      the whole year once more, until Ctrl-C; with --workers 2 by two processes
{look}
README.md says more."""

ON_KAFKA = """, with
PYSTREAMS_BOOTSTRAP_SERVERS in the environment (127.0.0.1:9092 while `make kafka` runs)"""

LOOK = """\
  [bold]sqlite3 .pystreams/log.db .tables[/]
      the log is a file: look into it
"""


def read_results(log: Log) -> dict[tuple[str, date], MeanDelay]:
    """The last result of every carrier and day (UTC)."""
    results = {}
    for record in log.consume(MEAN_DELAYS, key=TimeWindowedSerde(str, DAY_MS), value=MeanDelay):
        day = datetime.fromtimestamp(record.key.start / 1000, UTC).date()
        results[record.key.key, day] = record.value
    return results


def worst(results: dict[tuple[str, date], MeanDelay], most: int) -> list[tuple[str, str, int, float]]:
    """Carrier, airline, departures and mean delay over all days, the latest first."""
    departures: dict[str, int] = defaultdict(int)
    minutes: dict[str, float] = defaultdict(float)
    names: dict[str, str] = {}
    for (carrier, _), result in results.items():
        departures[carrier] += result.departures
        minutes[carrier] += result.mean_delay * result.departures
        names[carrier] = result.airline
    rows = [(c, names[c], departures[c], minutes[c] / departures[c]) for c in departures]
    return sorted(rows, key=lambda row: -row[3])[:most]


def main() -> None:
    """Read what apps/flights.py has written, and print who was latest."""
    with log_of_command_line(main.__doc__) as log:
        results = read_results(log)
        on_kafka = log.description.startswith("Kafka")
    table = Table(box=box.SIMPLE_HEAD, title="Latest out of New York, 2013", title_justify="left")
    table.add_column("carrier")
    table.add_column("airline")
    table.add_column("departures", justify="right")
    table.add_column("mean delay, min", justify="right")
    for carrier, airline, departures, delay in worst(results, 10):
        table.add_row(carrier, airline, f"{departures:,}", f"{delay:.1f}")
    console = Console()
    console.print(table)
    console.print(f"from {len(results):,} windows of one day\n", style="dim")
    where, look = (ON_KAFKA, "") if on_kafka else ("", LOOK)
    console.print(NEXT.format(where=where, look=look), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    main()
