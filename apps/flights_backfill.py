"""The flights of 2013 once more: January to October from an archive on Spark, November and December live.

    the log ── pystreams archive ──► Parquet ── pystreams backfill ──┐ state, offsets, results
    (keeps November and December) ───────────── pystreams run ◄──────┘ goes on at the cut

Beside it the same application runs over the whole year, live, on a log of its own. At the end both have written the
same results, record by record. `make backfill-demo` runs it; every command that it runs is shown.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from time import perf_counter
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from apps.flights import AIRLINES, FLIGHTS, MEAN_DELAYS
from apps.flights_feed import data_folder, feed
from pystreams import open_log
from pystreams.log import Log

#: The file that marks a folder as this demo's own.
_MARK = ".flights-backfill"

CUT = "2013-11-01"

#: Without a cache every update is a result, so that results can be compared one by one.
EVERY_UPDATE = ("-s", "statestore_cache_max_bytes=0")

_console = Console(highlight=False, soft_wrap=True)


class Result(NamedTuple):
    """A record of the results' topic, in bytes."""

    key: bytes | None
    value: bytes | None
    timestamp: int


class Home(NamedTuple):
    """The folder of one life of the application."""

    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "log.db"

    def run(self) -> None:
        """Run the application until it has caught up."""
        state = ("--state-dir", str(self.folder / "state"))
        run_command("run", "apps.flights", "--until-caught-up", *EVERY_UPDATE, *self.at, *state)

    @property
    def at(self) -> tuple[str, str]:
        """The command-line option that names this log."""
        return "--embedded-log", str(self.log)


def main(
    folder: Annotated[Path, typer.Option(help="The folder for all files of the demo.")] = Path(
        ".pystreams/backfill-demo"
    ),
    master: Annotated[str, typer.Option(help="Spark's master. none: without Spark.")] = "local[*]",
) -> None:
    """Backfill ten months of flights on Spark, go on live, and compare with a year that was live from the beginning."""
    began = perf_counter()
    make_empty(folder)
    live, handed = Home(folder / "live"), Home(folder / "handed-over")
    archive = folder / "archive"
    say("1. The whole year, live from the beginning: the reference")
    fill(live)
    live.run()
    where = "in this process" if master == "none" else f"on Spark, {master}"
    say(f"2. The same flights in another log, and from there in an archive of Parquet files, {where}")
    fill(handed)
    run_command("archive", FLIGHTS, AIRLINES, "--to", str(archive), "--master", master, *handed.at)
    say(f"3. Retention: the log deletes what is older than {CUT}")
    print(f"{truncate(handed.log):,} flights are only in the archive now.")
    say(f"4. January to October, {where}, handed over to the application on that log")
    source, staging = ("--source", f"parquet:{archive}"), ("--staging", str(folder / "staging"))
    outputs = ("--emit", "topic", "--hand-over", "embedded")
    run_command(
        *("backfill", "apps.flights", *source, "--until", CUT, "--master", master),
        *(*staging, *outputs, *EVERY_UPDATE, *handed.at),
    )
    say("5. November and December, live, from the cut on")
    handed.run()
    say("6. Compare the two results")
    seconds = perf_counter() - began
    if not compare(live.log, handed.log):
        sys.exit(1)
    _console.print(f"Done in {seconds:.0f} s. Everything is in {folder}: look around.", style="dim")


def make_empty(folder: Path) -> None:
    """Delete what an earlier run of the demo left. Exits if the folder holds anything else."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / _MARK).exists():
            sys.exit(f"{folder} holds files that are not of this demo: choose another --folder.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()


def truncate(log: Path, before: str = CUT) -> int:
    """Delete the flights before a day, as time-based retention does. Returns their number."""
    with open_log(log) as opened:
        return opened.delete_records(FLIGHTS, before=before)


def compare(one: Path, other: Path) -> bool:
    """Print whether the results on two logs are the same, partition by partition and record by record."""
    with open_log(one) as a, open_log(other) as b:
        records = 0
        for partition in range(a.describe_topic(MEAN_DELAYS).partitions):
            pairs = zip_longest(results(a, partition), results(b, partition))
            for number, (left, right) in enumerate(pairs):
                if left != right:
                    _console.print(
                        f"[bold red]Different[/] at record {number:,} of {MEAN_DELAYS}-{partition}:"
                    )
                    _console.print(f"  live from the beginning: {left}", markup=False)
                    _console.print(f"  handed over:             {right}", markup=False)
                    return False
                records += 1
    if not records:
        _console.print(f"[bold red]Nothing to compare:[/] {MEAN_DELAYS} has no results.")
        return False
    _console.print(f"[bold green]The same: {records:,} results, in the same order, byte for byte.[/]")
    return True


def results(log: Log, partition: int) -> Iterator[Result]:
    """All records of a partition, in order."""
    for record in log.consume(MEAN_DELAYS, partitions=partition):
        yield Result(record.key, record.value, record.timestamp)


def fill(home: Home) -> None:
    """Write the flights into the log of a home."""
    home.folder.mkdir(parents=True)
    with open_log(home.log) as log:
        print(f"{feed(log, data_folder()):,} flights written into {home.log}.")


def say(text: str) -> None:
    """Print what the demo does next."""
    _console.print(f"\n[bold]{text}[/]")


def run_command(*arguments: str) -> None:
    """Print a command and run it. Exits with its exit code if it fails."""
    _console.print(f"$ pystreams {shlex.join(arguments)}", style="cyan", markup=False)
    ended = subprocess.run([sys.executable, "-m", "pystreams", *arguments], check=False)  # noqa: S603 - our own
    if ended.returncode:
        sys.exit(ended.returncode)


if __name__ == "__main__":
    typer.run(main)
