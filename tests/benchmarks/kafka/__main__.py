"""``python -m tests.benchmarks.kafka``: pystreams beside its peers, on one broker and the same topics.

Without arguments: all jobs and peers, 30 s of steady work each. Quick looks are had with, for instance,
``--jobs wordcount --seconds 5 --repeats 1 --threads 1``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console

from tests.benchmarks.kafka.bench import Bench, Options
from tests.benchmarks.kafka.cluster import PARTITIONS, cluster
from tests.benchmarks.kafka.docs import render
from tests.benchmarks.kafka.machine import facts
from tests.benchmarks.kafka.observer import BEGIN, END
from tests.benchmarks.kafka.outputs import OutputsDifferError
from tests.benchmarks.kafka.peers import JOBS, PEERS
from tests.benchmarks.kafka.profiled import show_profiles
from tests.benchmarks.kafka.report import rows, save, show
from tests.benchmarks.kafka.running import Result, RunFailedError
from tests.benchmarks.options import names
from tests.kafka.server import ROOT, why_not

FOLDER = ROOT / ".pystreams" / "bench"
DOCS = ROOT / "docs" / "benchmarks.md"


def main() -> int:
    """The exit status: 1 if a run failed or outputs differ."""
    given = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    missing = why_not() if given.bootstrap_servers is None else None
    peers = tuple(PEERS[name] for name in given.peers)
    for reason in (missing, *(peer.why_not() for peer in peers)):
        if reason is not None:
            console.print(reason)
            return 2
    # A shell that starts us in the background would have us ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    profiles = FOLDER / "profiles" if given.profile else None
    if profiles is not None:
        peers, given.threads, given.repeats = (PEERS["pystreams"],), (1,), 1
        shutil.rmtree(profiles, ignore_errors=True)
    options = Options(
        jobs=given.jobs,
        peers=peers,
        threads=given.threads,
        repeats=given.repeats,
        seconds=given.seconds,
        records=given.records,
        seed=given.seed,
        profiles=profiles,
    )
    started = time.monotonic()
    for peer in peers:
        peer.build(FOLDER)
    folder = FOLDER / f"run-{os.getpid()}"
    try:
        with cluster(folder, given.bootstrap_servers) as found:
            results = Bench(found, folder, options, console).run()
    except (OutputsDifferError, RunFailedError) as error:
        console.print(f"{type(error).__name__}: {error}", markup=False, style="red")
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(
        f"All outputs of each job are equal; {(time.monotonic() - started) / 60:.1f} minutes in all."
    )
    if profiles is not None:
        show_profiles(profiles, console)
        return 0
    _report(console, options, results, write_docs=given.write_docs)
    return 0


def _report(console: Console, options: Options, results: Sequence[Result], *, write_docs: bool) -> None:
    found, machine, now = rows(results), facts(), datetime.now(UTC)
    settings = {
        "seconds": options.seconds,
        "repeats": options.repeats,
        "seed": options.seed,
        "commit_interval_ms": options.commit_interval_ms,
        "partitions": PARTITIONS,
        "begin": BEGIN,
        "end": END,
    }
    show(console, found)
    short = [f"{row.job} {row.peer} x{row.threads}" for row in found if row.steady_s < options.seconds]
    if short and options.records is None:
        console.print(f"Less than {options.seconds:g} s of steady work: {', '.join(short)}")
    path = FOLDER / "results" / f"{now:%Y-%m-%dT%H%M%S}.json"
    save(path, results, machine, settings, now.isoformat(timespec="seconds"))
    console.print(f"Details: {path.relative_to(ROOT)}")
    if write_docs:
        DOCS.write_text(render(found, machine, settings, f"{now:%Y-%m-%d}"))
        console.print(f"Written: {DOCS.relative_to(ROOT)}")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.kafka", description=__doc__)
    parser.add_argument("--jobs", type=names(JOBS), default=JOBS, help=",".join(JOBS))
    parser.add_argument("--peers", type=names((*PEERS,)), default=(*PEERS,), help=",".join(PEERS))
    parser.add_argument("--threads", type=_numbers, default=(1, 2), help="1,2")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="steady work per run, of the fastest peer"
    )
    parser.add_argument("--records", type=int, help="size of the input, instead of --seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bootstrap-servers", help="a broker that is there, instead of one of our own")
    parser.add_argument(
        "--profile", action="store_true", help="profile pystreams with one thread instead of measuring"
    )
    parser.add_argument(
        "--write-docs", action="store_true", help="write the result to docs/benchmarks.md, too"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
