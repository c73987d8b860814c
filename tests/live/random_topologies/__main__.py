"""Random topologies on the embedded log against a reference, task by task::

PYSTREAMS_ORACLE=path/to/oracle python -m tests.live.random_topologies --count 100
python -m tests.live.random_topologies --golden
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pystreams.errors import StreamsError
from tests.conformance import oracle
from tests.conformance.progress import shown
from tests.live.random_topologies.run import check
from tests.live.random_topologies.trials import Trial, fuzzed, recorded


def main() -> int:
    """0: no difference; 1: at least one; 2: there is no generator."""
    parser = argparse.ArgumentParser(description="Live against a reference, over random topologies.")
    parser.add_argument("--golden", action="store_true", help="the recorded scenarios instead of random ones")
    parser.add_argument("--seed", type=int, default=None, help="a fresh one each time")
    parser.add_argument("--count", type=int, default=100)
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 31) if arguments.seed is None else arguments.seed
    print(f"seed {seed}: the same again with --seed {seed}", flush=True)
    logging.disable()
    try:
        trials = list(recorded(seed) if arguments.golden else fuzzed(seed, arguments.count))
    except oracle.OracleError as error:
        print(error, file=sys.stderr)
        return 2
    return run(trials)


def run(trials: Sequence[Trial]) -> int:
    """0: no difference; 1: at least one."""
    came: Counter[str] = Counter()
    differ = 0
    for trial in shown(trials, len(trials), "topologies"):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(trial, Path(folder))
            except StreamsError as failure:
                came[f"failed by itself: {type(failure).__name__}"] += 1
                print(f"{trial.name}: {type(failure).__name__}: {failure.what[:200]}", flush=True)
            except AssertionError as difference:
                differ += 1
                print(f"{trial.name}: DIFFERENT: {trial.middle}: {str(difference)[:2000]}", flush=True)
            else:
                came[f"{trial.middle}, caches {'on' if trial.cached else 'off'}"] += 1
                came["local state lost"] += trial.wiped
    print(f"{len(trials)} topologies, {differ} differ")
    for what, count in sorted(came.items()):
        print(f"{count:5}  {what}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
