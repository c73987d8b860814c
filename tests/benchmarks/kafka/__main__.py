"""``python -m tests.benchmarks.kafka``: pystreams beside its peers, on one broker and the same topics.

Without arguments: all jobs and peers, 30 s of steady work each. Quick looks are had with, for instance,
``--jobs wordcount --seconds 5 --repeats 1 --threads 1``.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from tests.benchmarks.kafka.bench import Bench, Options
from tests.benchmarks.kafka.cluster import PARTITIONS
from tests.benchmarks.kafka.docs import render
from tests.benchmarks.kafka.machine import facts
from tests.benchmarks.kafka.observer import BEGIN, END
from tests.benchmarks.kafka.peers import JOBS, PEERS
from tests.benchmarks.kafka.profiled import show_profiles
from tests.benchmarks.kafka.report import as_json, rows, show
from tests.benchmarks.kafka.running import Result
from tests.benchmarks.kafka.session import FOLDER, Session, run_session
from tests.benchmarks.options import names
from tests.kafka.server import ROOT

DOCS = ROOT / "docs" / "benchmarks.md"


def main() -> int:
    """The exit status: see ``run_session``."""
    given = _parser().parse_args()
    peers = tuple(PEERS[name] for name in given.peers)
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
    work = partial(_work, options, write_docs=given.write_docs)
    return run_session("run", peers, work, given.bootstrap_servers)


def _work(options: Options, session: Session, *, write_docs: bool) -> None:
    started = time.monotonic()
    results = Bench(session, options).run()
    session.console.print(
        f"All outputs of each job are equal; {(time.monotonic() - started) / 60:.1f} minutes in all."
    )
    if options.profiles is not None:
        show_profiles(options.profiles, session.console)
    else:
        _report(session, options, results, write_docs=write_docs)


def _report(session: Session, options: Options, results: Sequence[Result], *, write_docs: bool) -> None:
    found = rows(results)
    settings = {
        "seconds": options.seconds,
        "repeats": options.repeats,
        "seed": options.seed,
        "commit_interval_ms": options.commit_interval_ms,
        "partitions": PARTITIONS,
        "begin": BEGIN,
        "end": END,
    }
    show(session.console, found)
    short = [f"{row.job} {row.peer} x{row.threads}" for row in found if row.steady_s < options.seconds]
    if short and options.records is None:
        session.console.print(f"Less than {options.seconds:g} s of steady work: {', '.join(short)}")
    session.save({"settings": settings, **as_json(results)})
    if write_docs:
        DOCS.write_text(render(found, facts(), settings, f"{datetime.now(UTC):%Y-%m-%d}"))
        session.console.print(f"Written: {DOCS.relative_to(ROOT)}")


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
