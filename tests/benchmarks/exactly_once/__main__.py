"""``python -m tests.benchmarks.exactly_once``: what exactly-once costs pystreams and Java Kafka Streams.

Each job is run at least once and exactly once, with a commit every second and every 100 ms. All outputs must be equal.
A quick look: ``--jobs wordcount --records 300000 --repeats 1``.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from tests.benchmarks.exactly_once.price import Bench, Options, table
from tests.benchmarks.kafka.peers import JOBS, PEERS
from tests.benchmarks.kafka.session import Session, run_session
from tests.benchmarks.options import names

_CONTESTANTS = ("pystreams", "java")


def main() -> int:
    """The exit status: see ``run_session``."""
    given = _parser().parse_args()
    peers = tuple(PEERS[name] for name in given.peers)
    options = Options(given.jobs, peers, repeats=given.repeats, records=given.records, seed=given.seed)

    def work(session: Session) -> None:
        prices = Bench(session, options).run()
        session.console.print(table(prices))
        session.save({"prices": [*map(asdict, prices)]})

    return run_session("exactly-once", peers, work)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.exactly_once", description=__doc__)
    parser.add_argument("--jobs", type=names(JOBS), default=("stateless", "wordcount"), help=",".join(JOBS))
    parser.add_argument(
        "--peers", type=names(_CONTESTANTS), default=_CONTESTANTS, help=",".join(_CONTESTANTS)
    )
    parser.add_argument("--records", type=int, default=4_000_000, help="input records of each run")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
