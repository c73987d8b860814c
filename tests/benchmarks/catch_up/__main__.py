"""``python -m tests.benchmarks.catch_up``: two days of orders are there before the application starts.

Counts of five minutes with a grace of one minute, behind two repartition topics: by one process, by three workers of
which one is killed, by one process with Java's stream time, and by Java Kafka Streams, on one broker and the same
topics. A quick look: ``--orders 40000``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.catch_up.bench import CONTESTANTS, Bench, Outcome
from tests.benchmarks.catch_up.inputs import History
from tests.benchmarks.catch_up.picture import picture
from tests.benchmarks.kafka.cluster import cluster
from tests.benchmarks.kafka.machine import facts
from tests.benchmarks.kafka.running import RunFailedError
from tests.benchmarks.options import names
from tests.kafka.server import ROOT, why_not

FOLDER = ROOT / ".pystreams" / "bench"
_MIB = 1 << 20


def main() -> int:
    """The exit status: 1 if a run failed."""
    given = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    for reason in (why_not(), *(CONTESTANTS[name].peer.why_not() for name in given.contestants)):
        if reason is not None:
            console.print(reason)
            return 2
    # A shell that starts us in the background would have us ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    for name in given.contestants:
        CONTESTANTS[name].peer.build(FOLDER)
    history = History(given.orders, given.hours)
    folder = FOLDER / f"catch-up-{os.getpid()}"
    try:
        with cluster(folder, None) as found:
            outcomes = Bench(found, folder, history, given.seed, console).run(given.contestants)
    except RunFailedError as error:
        console.print(f"{type(error).__name__}: {error}", markup=False, style="red")
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(table(outcomes))
    given.picture.parent.mkdir(parents=True, exist_ok=True)
    given.picture.write_text(picture(outcomes, history.begin_ms, history.hours), encoding="utf-8")
    details = FOLDER / "results" / f"catch-up-{datetime.now(UTC):%Y-%m-%dT%H%M%S}.json"
    save(details, outcomes, given.orders, given.hours, given.seed)
    console.print(f"Picture: {given.picture}; details: {details}", soft_wrap=True)
    return 0


def table(outcomes: Sequence[Outcome]) -> Table:
    """For people."""
    columns = (
        "orders lost",
        "of all",
        "windows incomplete",
        "counted twice",
        "s",
        "spread h",
        "state MiB",
        "RSS MiB",
    )
    shown = Table("", padding=(0, 1))
    for column in columns:
        shown.add_column(column, justify="right")
    for one in outcomes:
        shown.add_row(
            one.contestant,
            f"{one.lost:,}",
            f"{one.lost / one.orders:.1%}",
            f"{one.windows_incomplete:,} of {one.windows:,}",
            f"{one.twice:,}",
            f"{one.seconds:.1f}",
            f"{one.spread_ms / 3_600_000:.1f}",
            f"{one.peak_state_bytes / _MIB:,.1f}",
            f"{one.peak_rss_bytes / _MIB:,.0f}",
        )
    return shown


def save(path: Path, outcomes: Sequence[Outcome], orders: int, hours: float, seed: int) -> None:
    """For machines, without the looks."""
    runs = [{name: value for name, value in vars(one).items() if name != "looks"} for one in outcomes]
    settings = {"orders": orders, "hours": hours, "seed": seed}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": facts(), "settings": settings, "runs": runs}, indent=1))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.catch_up", description=__doc__)
    parser.add_argument(
        "--contestants", type=names((*CONTESTANTS,)), default=(*CONTESTANTS,), help=",".join(CONTESTANTS)
    )
    parser.add_argument("--orders", type=int, default=400_000)
    parser.add_argument("--hours", type=float, default=48.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", type=Path, default=FOLDER / "results" / "catch-up.svg")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
