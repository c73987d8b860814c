"""The example ``apps/flights_from_table.py`` with fewer flights, in its own process, because a process has one JVM:

python -m tests.backfill.flights_kit FOLDER TABLE [NAME=VALUE ...]
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from apps import flights_feed, flights_from_table
from apps.flights_from_table import Format

ROOT = Path(__file__).resolve().parents[2]

#: Every so many flights: some of each day, and the test is quick.
STEP = 40


def few_rows(folder: Path) -> Iterator[dict[str, str]]:
    """In the place of ``flights_feed.read_rows``."""
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        lines = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        yield from csv.DictReader(chain([next(lines)], islice(lines, 0, None, STEP)))


def demo_of_table(table: Format, folder: Path, conf: Mapping[str, str] | None = None) -> str:
    """Run the example in an empty folder; what it has printed. ``conf`` are settings of Spark."""
    given = [f"{name}={value}" for name, value in (conf or {}).items()]
    paths = filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.backfill.flights_kit", "demo", table, *given],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    return done.stdout


def main() -> None:
    folder, table, *conf = sys.argv[1:]
    flights_feed.read_rows = few_rows
    flights_from_table.main(
        Path(folder), Format(table), "auto" if table == Format.PARQUET else "local[2]", conf
    )


if __name__ == "__main__":
    main()
