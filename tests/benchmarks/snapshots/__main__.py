"""``python -m tests.benchmarks.snapshots``: the first start on a machine without state, with a snapshot and without.

On the embedded log; both ways in turn. A quick look: ``--keys 50000 --repeats 1``.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.snapshots.first_start import FirstStart, Start

_WAYS = ("changelog", "snapshot")


def main() -> int:
    """The exit status."""
    given = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    # A shell that starts us in the background would have us ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    try:
        bench = FirstStart(folder, given.keys, given.updates, given.value_bytes)
        bench.prepare()
        starts = [bench.start(way, number) for number in range(given.repeats) for way in _WAYS]
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(table(starts))
    console.print(
        f"The snapshot has {bench.snapshot_bytes / (1 << 20):,.0f} MiB, and was there"
        f" {bench.take_seconds:.1f} s after the start that took it."
    )
    console.print(f"With a snapshot the first start is {ratio(starts):.1f} times as fast.")
    return 0


def table(starts: Sequence[Start]) -> Table:
    """A line for each start."""
    shown = Table("from", "records read", "seconds")
    for one in starts:
        shown.add_row(one.way, f"{one.records:,}", f"{one.seconds:.2f}")
    return shown


def ratio(starts: Sequence[Start]) -> float:
    """How many times as long a start takes without a snapshot, by the medians."""
    seconds = {way: statistics.median(one.seconds for one in starts if one.way == way) for way in _WAYS}
    return seconds["changelog"] / seconds["snapshot"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.snapshots", description=__doc__)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--updates", type=int, default=5, help="how often each key was written")
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--folder", type=Path, help="where the log and the state go; default: the temporary folder"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
