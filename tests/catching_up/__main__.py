"""Random histories that are there before the application starts, against a plain computation in the order of time::

python -m tests.catching_up --count 100
python -m tests.catching_up --log kafka --seed 7 --count 1
python -m tests.catching_up --tables
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from tests.catching_up.histories import trial
from tests.catching_up.running import check
from tests.catching_up.tables import table_trial
from tests.catching_up.trials import Trial
from tests.conformance.progress import shown
from tests.kafka.server import KafkaServer, why_not
from tests.live.support import Log


def main() -> int:
    """0: all equal; 1: at least one is not; 2: there is no Kafka."""
    given = _parser().parse_args()
    seed = random.SystemRandom().randrange(1 << 31) if given.seed is None else given.seed
    print(
        f"seed {seed}: the same again with --log {given.log} --seed {seed} --count {given.count}"
        f"{' --tables' if given.tables else ''}",
        flush=True,
    )
    reason = why_not() if given.log == "kafka" else None
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    logging.disable()
    run = {"threads": given.threads, "workers": given.workers}
    chosen = {name: value for name, value in run.items() if value is not None}
    chosen |= {"kills": ()} if given.no_kills else {}
    made = table_trial if given.tables else trial
    trials = [made(seed + number, given.log, **chosen) for number in range(given.count)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        opened: Callable[[Path], Log] = Log
        if given.log == "kafka":
            opened = partial(_cluster, _server(stack, folder))
        return run_all(trials, folder, opened)


def _server(stack: ExitStack, folder: Path) -> KafkaServer:
    server = KafkaServer(folder / "kafka")
    server.start()
    stack.callback(server.stop)
    return server


def _cluster(server: KafkaServer, path: Path) -> Log:
    from tests.kafka.support import Cluster

    return Cluster(server.bootstrap_servers, path)


def run_all(trials: list[Trial], folder: Path, opened: Callable[[Path], Log]) -> int:
    """Each in a folder of its own."""
    came: Counter[str] = Counter()
    for one in shown(trials, len(trials), "histories"):
        path = folder / str(one.seed)
        path.mkdir()
        run = one.run
        where = f"{run.threads} threads, {run.workers} workers, {len(run.kills)} kills"
        with closing(opened(path)) as log:
            try:
                check(one, log)
            except AssertionError as difference:
                came[f"different: {where}"] += 1
                print(f"DIFFERENT: {difference}\n", flush=True)
            else:
                came[f"equal: {where}"] += 1
    for what, count in sorted(came.items()):
        print(f"{count:5}  {what}")
    differ = sum(count for what, count in came.items() if what.startswith("different"))
    print(f"{len(trials)} histories, {differ} differ")
    return 1 if differ else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.catching_up", description=__doc__)
    parser.add_argument("--log", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--seed", type=int, help="a fresh one each time")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--threads", type=int, help="by default at random")
    parser.add_argument("--workers", type=int, help="by default at random")
    parser.add_argument("--no-kills", action="store_true")
    parser.add_argument(
        "--tables", action="store_true", help="instead: tables that change, and joins with them"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
