"""Print which airlines left New York latest in 2013, from the topic that apps/flights.py writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime

from rich import box
from rich.console import Console
from rich.table import Table

from apps.flights import MEAN_DELAYS, MeanDelay
from pystreams.broker.port import Broker
from pystreams.cli.connection import open_broker
from pystreams.cli.main import run_alone
from pystreams.cli.options import BootstrapServersOption, EmbeddedLogOption
from pystreams.ids import TopicPartition
from pystreams.serde import STR, JsonSerde, TimeWindowedSerde

DAY_MS = 86_400_000

NEXT = """\
What to try next, in this folder (the command is .venv/bin/pystreams){where}:

  [bold]pystreams consume mean-delays --from -1[/]
      the last results, as they stand in the topic
  [bold]pystreams describe apps.flights --format code[/]
      the Python that the topology in apps/flights.py compiles to
  [bold]pystreams reset apps.flights && pystreams run apps.flights[/]
      all of it once more, until Ctrl-C; with --workers 2 by two processes
{look}
README.md goes on from here."""

ON_KAFKA = """, with
PYSTREAMS_BOOTSTRAP_SERVERS in the environment (127.0.0.1:9092 while `make kafka` runs)"""

LOOK = """\
  [bold]sqlite3 .pystreams/log.db .tables[/]
      the log is a file: look into it
"""


def read_results(broker: Broker) -> dict[tuple[str, date], MeanDelay]:
    """The last result of every carrier and day (UTC)."""
    keys = TimeWindowedSerde(STR, DAY_MS).deserializer(MEAN_DELAYS)
    values: Callable[[bytes], MeanDelay] = JsonSerde(MeanDelay).deserializer(MEAN_DELAYS)
    admin = broker.admin()
    partitions = [
        TopicPartition(MEAN_DELAYS, p)
        for topic in admin.describe_topics([MEAN_DELAYS]).values()
        for p in range(topic.partitions)
    ]
    ends = admin.end_offsets(partitions)
    starts = admin.beginning_offsets(partitions)
    admin.close()
    results = {}
    consumer = broker.consumer("flights-report")
    consumer.assign(starts)
    while any(consumer.position(p) < ends[p] for p in partitions):
        for batch in consumer.poll(100):
            for key, value in zip(batch.keys, batch.values, strict=True):
                if key is not None and value is not None:
                    window = keys(key)
                    day = datetime.fromtimestamp(window.start / 1000, UTC).date()
                    results[window.key, day] = values(value)
    consumer.close()
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


def main(embedded_log: EmbeddedLogOption = None, bootstrap_servers: BootstrapServersOption = None) -> None:
    """Read what apps/flights.py has written, and print who was latest."""
    with open_broker(embedded_log, bootstrap_servers) as broker:
        results = read_results(broker)
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
    where, look = (ON_KAFKA, "") if bootstrap_servers else ("", LOOK)
    console.print(NEXT.format(where=where, look=look), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    run_alone(main)
