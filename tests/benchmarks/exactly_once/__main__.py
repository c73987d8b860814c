"""``python -m tests.benchmarks.exactly_once``: what exactly-once costs pystreams and Java Kafka Streams.

Each job is run at least once and exactly once, with a commit every second and every 100 ms. All outputs must be equal.
A quick look: ``--jobs wordcount --records 300000 --repeats 1``.
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

from tests.benchmarks.exactly_once.price import Bench, Options, table
from tests.benchmarks.kafka.cluster import cluster
from tests.benchmarks.kafka.machine import facts
from tests.benchmarks.kafka.outputs import OutputsDifferError
from tests.benchmarks.kafka.peers import JOBS, PEERS
from tests.benchmarks.kafka.running import RunFailedError
from tests.benchmarks.options import names
from tests.kafka.server import ROOT, why_not

FOLDER = ROOT / ".pystreams" / "bench"
_CONTESTANTS = ("pystreams", "java")


def main() -> int:
    """The exit status: 1 if a run failed or outputs differ."""
    given = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    peers = tuple(PEERS[name] for name in given.peers)
    for reason in (why_not(), *(peer.why_not() for peer in peers)):
        if reason is not None:
            console.print(reason)
            return 2
    # A shell that starts us in the background would have us ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    for peer in peers:
        peer.build(FOLDER)
    options = Options(given.jobs, peers, repeats=given.repeats, records=given.records, seed=given.seed)
    folder = FOLDER / f"exactly-once-{os.getpid()}"
    try:
        with cluster(folder, None) as found:
            prices = Bench(found, folder, options, console).run()
    except (OutputsDifferError, RunFailedError) as error:
        console.print(f"{type(error).__name__}: {error}", markup=False, style="red")
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(table(prices))
    now = datetime.now(UTC)
    path = FOLDER / "results" / f"exactly-once-{now:%Y-%m-%dT%H%M%S}.json"
    content = {
        "date": now.isoformat(timespec="seconds"),
        "machine": facts(),
        "prices": [*map(asdict, prices)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1))
    console.print(f"Details: {path.relative_to(ROOT)}")
    return 0


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
