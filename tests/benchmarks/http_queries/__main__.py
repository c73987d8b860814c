"""``python -m tests.benchmarks.http_queries``: flights are processed, alone and while others query.

The flights are those of 2013, as if the same had departed in each of several years. Queries ask for the present day of
an airline, by HTTP, at a steady rate until the end. The figures are the rate of processing with and without them, the
times of the answers, and the processor time of both sides. Who asks takes a part of the machine, too: so there is a
third kind of run, beside a neighbour that is as busy and asks nothing. In a fourth kind, live pages are open.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from apps.flights import AIRLINES, FLIGHTS
from apps.flights_feed import NEW_YEAR_MS, create_topics, data_folder, read_airlines, read_flights
from pystreams import open_log
from tests.benchmarks.http_queries.load import Answers, ask, watch

ROOT = Path(__file__).resolve().parents[3]

#: A neighbour works and rests once in this time, as a client does between two questions.
_TURN_S = 0.001

_YEAR_MS = 365 * 86_400_000
#: More than are asked for in a run.
_NEW_KEYS = 200_000

#: What happens beside the application, by host and port, until an event is set.
Beside = Callable[..., Awaitable[Answers]]


@dataclass
class Run:
    """The speed of processing, the processor time of the application, and the answers that came meanwhile."""

    records_per_s: float
    cpu_s: float
    answers: Answers


def main(arguments: Sequence[str] | None = None) -> None:
    """``arguments`` None: those of the process."""
    given = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        log = Path(folder) / "log.db"
        write_flights(log, given.years, given.flights)
        compare(given, log)


def write_flights(path: Path, years: int, of_year: int | None) -> None:
    """``of_year``: so many flights of each year; None: all."""
    flights = read_flights(data_folder())[:of_year]
    airlines = read_airlines(data_folder())
    with open_log(path) as log:
        create_topics(log)
        log.produce_many(AIRLINES, [(carrier, airline, NEW_YEAR_MS) for carrier, airline in airlines])
        for year in range(years):
            log.produce_many(FLIGHTS, ((key, flight, at + year * _YEAR_MS) for key, flight, at in flights))


def compare(given: argparse.Namespace, log: Path) -> None:
    runs: defaultdict[str, list[Run]] = defaultdict(list)
    # In turn, because the machine may have others to serve.
    for _ in range(given.repeats):
        runs["alone"].append(run(given, log, 0))
        for freshness in given.freshness:
            asked = run(given, log, given.rate, freshness)
            runs[freshness].append(asked)
            busy = asked.answers.cpu_s / asked.answers.took_s
            runs[f"beside {freshness}"].append(run(given, log, 0, busy=busy))
        if given.pages:
            runs["pages"].append(run(given, log, 0, pages=given.pages))
    fastest = {kind: max(of_kind, key=lambda one: one.records_per_s) for kind, of_kind in runs.items()}
    print(f"alone: {fastest['alone'].records_per_s:,.0f} records/s")
    for freshness in given.freshness:
        print(f"{given.rate:,.0f} queries/s, {freshness}:")
        _tell(fastest["alone"], fastest[freshness], fastest[f"beside {freshness}"])
    if given.pages:
        _tell_pages(given.pages, fastest["alone"], fastest["pages"])


def _tell(alone: Run, asked: Run, beside: Run) -> None:
    answers = asked.answers
    count = len(answers.latencies_ms)
    if not count:
        sys.exit("no answer came before all was processed: ask about more years")
    busy = answers.cpu_s / answers.took_s
    print(
        f"  {asked.records_per_s:,.0f} records/s, {1 - asked.records_per_s / alone.records_per_s:.0%} slower; "
        f"{1 - asked.records_per_s / beside.records_per_s:.0%} slower than beside a neighbour as busy as the client "
        f"({beside.records_per_s:,.0f} records/s)"
    )
    print(
        f"  answers {dict(answers.statuses)}, {count / answers.took_s:,.0f} a second, "
        f"p50 {answers.percentile_ms(0.5):.1f} ms, p99 {answers.percentile_ms(0.99):.1f} ms"
    )
    print(
        f"  processor time of 1,000 queries: {(asked.cpu_s - alone.cpu_s) / count * 1000:.3f} s of the application, "
        f"{answers.cpu_s / count * 1000:.3f} s of the client, which took {busy / (os.cpu_count() or 1):.0%} of the "
        "machine"
    )


def _tell_pages(pages: int, alone: Run, watched: Run) -> None:
    events = watched.answers.statuses[200]
    if not events:
        sys.exit("no event came before all was processed: process more years")
    print(
        f"{pages} open live page{'s' if pages > 1 else ''}:\n"
        f"  {watched.records_per_s:,.0f} records/s, {1 - watched.records_per_s / alone.records_per_s:.0%} slower, "
        f"{watched.cpu_s - alone.cpu_s:.2f} s of processor time for {events:,} events"
    )


def run(
    given: argparse.Namespace,
    log: Path,
    rate: float,
    freshness: str = "latest",
    busy: float = 0.0,
    pages: int = 0,
) -> Run:
    """One run. ``busy``: how much of a core a neighbour takes that does not ask. ``pages``: how many are open."""
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYSTREAMS_EMBEDDED_LOG": f"{folder}/log.db",
            "PYSTREAMS_STATE_DIR": f"{folder}/state",
            "PYSTREAMS_COMMIT_INTERVAL_MS": str(given.commit_ms),
        }
        shutil.copy(log, folder)
        before_s = _cpu_of_children_s()
        if pages:
            beside: Beside = partial(watch, pages=pages)
        elif rate:
            beside = partial(ask, paths=paths(freshness, given.new_keys), rate=rate)
        else:
            beside = partial(_busy, share=busy)
        said, answers = asyncio.run(_with(environment, given.workers, beside))
        cpu_s = _cpu_of_children_s() - before_s
    found = re.search(r"([\d,]+) records? in ([\d.]+) s", said)
    if found is None:
        sys.exit(said)
    return Run(float(found[1].replace(",", "")) / float(found[2]), cpu_s, answers)


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _with(environment: dict[str, str], workers: int, beside: Beside) -> tuple[str, Answers]:
    """The application runs until it has caught up: what it has logged, and the answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "pystreams",
        "run",
        "apps.flights",
        "--until-caught-up",
        "--http",
        str(port),
    ]
    if workers:
        command += ["--workers", str(workers)]
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stderr=subprocess.PIPE,
    )
    ended = asyncio.Event()
    meanwhile = asyncio.create_task(beside("127.0.0.1", port, until=ended))
    _, said = await process.communicate()
    ended.set()
    return said.decode(), await meanwhile


async def _busy(host: str, port: int, *, share: float, until: asyncio.Event) -> Answers:
    """Takes this share of a core, and asks nothing."""
    while not until.is_set():
        end = time.process_time() + share * _TURN_S
        while time.process_time() < end:
            pass
        await asyncio.sleep((1 - share) * _TURN_S)
    return Answers()


def paths(freshness: str, new_keys: bool) -> list[str]:
    """The windows of each airline that the store still has: those of the present day. With ``new_keys``, nine of ten
    keys are ones that nobody has asked for."""
    codes = [code for code, _ in read_airlines(data_folder())]
    keys = [f"new-{n}" if n % 10 else codes[n % len(codes)] for n in range(_NEW_KEYS)] if new_keys else codes
    return [f"/stores/delays-by-day/keys/{key}?freshness={freshness}" for key in keys]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=1_000, help="queries a second")
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of each kind, of which the fastest counts"
    )
    parser.add_argument("--freshness", nargs="+", default=["latest", "committed"])
    parser.add_argument("--new-keys", action="store_true", help="ask for keys that nobody has asked for")
    parser.add_argument(
        "--pages", type=int, default=1, help="open live pages in a run of their own; 0: without"
    )
    parser.add_argument("--commit-ms", type=int, default=1_000, help="commit_interval_ms of the application")
    parser.add_argument("--years", type=int, default=6, help="years of flights to process")
    parser.add_argument("--flights", type=int, help="so many flights of each year; default: all")
    parser.add_argument("--workers", type=int, default=0, help="as for pystreams run; 0: without workers")
    parser.add_argument("--folder", help="where logs and state are, for a while")
    return parser


if __name__ == "__main__":
    main()
