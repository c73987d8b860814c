"""Print which airlines left New York latest in 2013, from the topic that apps/flights.py writes."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from apps.flights import MEAN_DELAYS, MeanDelay
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import Broker
from pystreams.ids import TopicPartition
from pystreams.serde import STR, JsonSerde, TimeWindowedSerde

DAY_MS = 86_400_000

NEXT = """\
What to try next, in this folder (the command is .venv/bin/pystreams):

  [bold]pystreams consume mean-delays --from -1[/]
      the last results, as they stand in the topic
  [bold]pystreams describe apps.flights --format code[/]
      the Python that the topology in apps/flights.py compiles to
  [bold]pystreams reset apps.flights && pystreams run apps.flights[/]
      all of it once more, until Ctrl-C; start it twice to share the work
  [bold]sqlite3 .pystreams/log.db .tables[/]
      the log is a file: look into it

README.md goes on from here."""


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


def main() -> None:
    """Read the embedded log in the place where ``pystreams run`` keeps it, and print."""
    broker = EmbeddedBroker(Path(os.environ.get("PYSTREAMS_EMBEDDED_LOG", ".pystreams/log.db")))
    try:
        results = read_results(broker)
    finally:
        broker.close()
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
    console.print(NEXT, soft_wrap=True, highlight=False)


if __name__ == "__main__":
    main()
