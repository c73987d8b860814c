"""Compares pystreams with the real Kafka Streams.

Four ways to call it::

python -m tests.conformance < scenarios.jsonl > results.jsonl
python -m tests.conformance --golden
PYSTREAMS_ORACLE=path/to/oracle python -m tests.conformance --fuzz --seed 7 --count 200
PYSTREAMS_ORACLE=path/to/oracle python -m tests.conformance --lines < scenarios.jsonl
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from typing import Any

from tests.conformance import fuzz, golden, oracle
from tests.conformance.compare import LEVELS, difference
from tests.conformance.lost_on_close import lost_on_close
from tests.conformance.runner import run


def main() -> int:
    """0: all agree; 1: a difference; 2: there is no oracle to ask."""
    args = _arguments()
    if args.golden:
        return run_golden(args.level)
    if args.fuzz or args.lines:
        try:
            asked = list(map(json.loads, sys.stdin)) if args.lines else _random(args)
            return fuzz.compare(asked, fuzz.Settings(args.level, args.workers))
        except oracle.OracleError as error:
            print(error, file=sys.stderr)
            return 2
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line)), ensure_ascii=False), flush=True)
    return 0


def _random(args: argparse.Namespace) -> list[Any]:
    seed = fuzz.fresh_seed() if args.seed is None else args.seed
    print(f"profile {args.profile}, seed {seed}: the same again with --seed {seed}", flush=True)
    return fuzz.scenarios(seed, args.count, args.profile)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance", description="Compare with Kafka Streams."
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--golden", action="store_true", help="run the recorded scenarios of tests/golden")
    mode.add_argument(
        "--fuzz", action="store_true", help=f"ask the oracle that {oracle.VARIABLE} names about random ones"
    )
    mode.add_argument("--lines", action="store_true", help="ask it about the scenarios on standard input")
    parser.add_argument(
        "--seed", type=_seed, help="a number, or 'commit' for the hash of git's HEAD; a fresh one each time"
    )
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--profile", default="mixed", choices=fuzz.PROFILES, help="where to look")
    parser.add_argument("--level", type=int, default=LEVELS, choices=range(1, LEVELS + 1))
    parser.add_argument("--workers", type=int, default=2, help="processes that run scenarios")
    return parser.parse_args()


def _seed(text: str) -> int:
    return fuzz.commit_seed() if text == "commit" else int(text)


def run_golden(level: int) -> int:
    """Run the recorded scenarios."""
    failed = passed = 0
    for case in golden.cases():
        found = difference(case.result, run(case.scenario), level)
        if found and not lost_on_close(case.scenario, case.result, level):
            failed += 1
            print(f"{case.name}: {found}")
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    # Scenarios drop records and fail on purpose; the results tell about it.
    logging.disable()
    sys.exit(main())
