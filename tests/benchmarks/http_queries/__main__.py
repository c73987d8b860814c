"""``python -m tests.benchmarks.http_queries``: the flights of 2013 are processed, alone and while others query.

Queries ask for a day of an airline, by HTTP, at a steady rate from the start to the end. The figures are the rate of
processing with and without them, and the times of the answers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from apps.flights_feed import data_folder, read_airlines
from tests.benchmarks.http_queries.load import Answers, ask

ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    given = _parser().parse_args()
    # Each run of the application begins with the same log, and without state.
    alone = [run(given, 0)[0] for _ in range(given.repeats)]
    print(f"alone: {max(alone):,.0f} records/s")
    for freshness in given.freshness:
        runs = [run(given, given.rate, freshness) for _ in range(given.repeats)]
        rate, answers = max(runs, key=lambda one: one[0])
        print(
            f"{given.rate:,.0f} queries/s, {freshness}: {rate:,.0f} records/s, {1 - rate / max(alone):.0%} slower"
        )
        print(
            f"  answers {dict(answers.statuses)}, p50 {answers.percentile_ms(0.5):.1f} ms, "
            f"p99 {answers.percentile_ms(0.99):.1f} ms"
        )


def run(given: argparse.Namespace, rate: float, freshness: str = "latest") -> tuple[float, Answers]:
    """Records a second that one run has processed, and the answers that came meanwhile."""
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYSTREAMS_EMBEDDED_LOG": f"{folder}/log.db",
            "PYSTREAMS_STATE_DIR": f"{folder}/state",
            "PYSTREAMS_COMMIT_INTERVAL_MS": str(given.commit_ms),
        }
        feed = (sys.executable, "-m", "apps.flights_feed", "--embedded-log", f"{folder}/log.db")
        subprocess.run(feed, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        log, answers = asyncio.run(_asked(environment, rate, freshness))
    found = re.search(r"([\d,]+) records? in ([\d.]+) s", log)
    if found is None:
        sys.exit(log)
    return float(found[1].replace(",", "")) / float(found[2]), answers


async def _asked(environment: dict[str, str], rate: float, freshness: str) -> tuple[str, Answers]:
    """The log of the application, which ends when it has caught up, and the answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pystreams", "run", "apps.flights", "--until-caught-up", "--http", str(port)),
        env=environment,
        stderr=subprocess.PIPE,
    )
    ended = asyncio.Event()
    asking = asyncio.create_task(ask("127.0.0.1", port, paths(freshness), rate, ended)) if rate else None
    _, log = await process.communicate()
    ended.set()
    return log.decode(), Answers() if asking is None else await asking


def paths(freshness: str) -> list[str]:
    """A day of each airline."""
    day = "from_time=2013-06-01&to_time=2013-06-01"
    codes = [code for code, _ in read_airlines(data_folder())]
    return [f"/stores/delays-by-day/keys/{code}?{day}&freshness={freshness}" for code in codes]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=1_000, help="queries a second")
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of each kind, of which the fastest counts"
    )
    parser.add_argument("--freshness", nargs="+", default=["latest", "committed"])
    parser.add_argument("--commit-ms", type=int, default=1_000, help="commit_interval_ms of the application")
    parser.add_argument("--folder", help="where logs and state are, for a while")
    return parser


if __name__ == "__main__":
    main()
