"""``python -m tests.benchmarks.backfill``: history on Spark beside the same history processed live.

Without arguments: word count and windowed sum over 10 million records, spread evenly and with 90 % of them in one
partition, by all peers; about an hour on two cores. A quick look: ``--records 200000 --peers spark,loop``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from dataclasses import asdict
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from tests.benchmarks.backfill.bench import (
    JOBS,
    PEER_NAMES,
    SPREADS,
    Bench,
    Measured,
    Options,
    ResultsDifferError,
)
from tests.benchmarks.backfill.inputs import PARTITIONS, SKEW, WORDS_IN_LINE
from tests.benchmarks.backfill.picture import picture
from tests.benchmarks.kafka.machine import facts
from tests.benchmarks.kafka.running import RunFailedError
from tests.benchmarks.options import names
from tests.kafka.server import ROOT, why_not

FOLDER = ROOT / ".pystreams" / "bench-backfill"


def main() -> int:
    """The exit status: 1 if a run failed or results differ."""
    given = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    missing = why_not() if "live" in given.peers else None
    if missing is not None:
        console.print(f"{missing} (without live: --peers spark,inline,loop,sql)")
        return 2
    # A shell that starts us in the background would have us ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    options = Options(given.jobs, given.spreads, given.peers, given.records, given.seed, given.master)
    folder = FOLDER / f"run-{os.getpid()}"
    try:
        folder.mkdir(parents=True)
        found = Bench(folder, options, console).run()
    except (ResultsDifferError, RunFailedError) as error:
        console.print(f"{type(error).__name__}: {error}", markup=False, style="red")
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(_table(found))
    path = FOLDER / "results" / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {**asdict(options), "partitions": PARTITIONS, "words": WORDS_IN_LINE, "skew": SKEW}
    runs = [{**asdict(one), "rate": one.rate, "cpu_us": one.cpu_us} for one in found]
    path.write_text(json.dumps({"machine": facts(), "settings": settings, "runs": runs}, indent=1))
    path.with_suffix(".svg").write_text(picture(found))
    console.print(f"All results are equal. Details: {path.relative_to(ROOT)}, and as a picture beside it")
    return 0


def _table(found: list[Measured]) -> Table:
    table = Table(padding=(0, 1))
    for number, column in enumerate(
        (
            *("job", "records", "peer", "records/s", "x live", "CPU µs/record", "x live (CPU)"),
            *("at work, s", "in all, s", "peak MiB"),
        )
    ):
        table.add_column(column, justify="left" if number < 3 else "right")
    before: tuple[str, str] | None = None
    for one in found:
        if before not in {None, (one.job, one.spread)}:
            table.add_section()
        before = one.job, one.spread
        live = next((x for x in found if (x.job, x.spread, x.peer) == (*before, "live")), None)
        table.add_row(
            one.job,
            one.spread,
            one.peer,
            f"{one.rate:,.0f}",
            "" if live is None else f"{one.rate / live.rate:.2f}",
            f"{one.cpu_us:.2f}",
            "" if live is None else f"{live.cpu_us / one.cpu_us:.2f}",
            f"{one.work_s:.1f}",
            f"{one.total_s:.1f}",
            f"{one.peak_rss_bytes / (1 << 20):,.0f}",
        )
    return table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.backfill", description=__doc__)
    parser.add_argument("--jobs", type=names(JOBS), default=JOBS, help=",".join(JOBS))
    parser.add_argument("--spreads", type=names(SPREADS), default=SPREADS, help=",".join(SPREADS))
    parser.add_argument("--peers", type=names(PEER_NAMES), default=PEER_NAMES, help=",".join(PEER_NAMES))
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--master", default="local[2]")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
