"""Compares pystreams with the real Kafka Streams.

Three ways to call it::

python -m tests.conformance < scenarios.jsonl > results.jsonl
python -m tests.conformance --golden
PYSTREAMS_ORACLE=path/to/oracle python -m tests.conformance --fuzz --seed 7 --count 200
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from tests.conformance import golden, oracle
from tests.conformance.compare import LEVELS, difference
from tests.conformance.deliberate import deliberate_difference
from tests.conformance.missing import missing_operators, pruned
from tests.conformance.runner import run

Json = Any


def main() -> int:
    """0: all agree; 1: a difference; 2: there is no oracle to ask."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance", description="Compare with Kafka Streams."
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--golden", action="store_true", help="run the recorded scenarios of tests/golden")
    mode.add_argument(
        "--fuzz", action="store_true", help=f"ask the oracle that {oracle.VARIABLE} names about random ones"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument(
        "--profile", default="all", help="where to look: all, stateless, windows, tables, processors"
    )
    parser.add_argument("--level", type=int, default=LEVELS, choices=range(1, LEVELS + 1))
    parser.add_argument("--workers", type=int, default=2, help="processes that run scenarios")
    args = parser.parse_args()
    if args.golden:
        return run_golden(args.level)
    if args.fuzz:
        try:
            return run_fuzz(args)
        except oracle.OracleError as error:
            print(error, file=sys.stderr)
            return 2
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line)), ensure_ascii=False), flush=True)
    return 0


def run_golden(level: int) -> int:
    """Run what can be run, name the rest by what it lacks."""
    missing: Counter[str] = Counter()
    failed = passed = 0
    for case in golden.cases():
        lacks = missing_operators(case.scenario)
        if lacks:
            missing[", ".join(lacks)] += 1
        elif found := difference(case.result, run(case.scenario), level):
            failed += 1
            print(f"{case.name}: {found}")
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed, {missing.total()} need operators that do not exist yet")
    for names, count in missing.most_common():
        print(f"{count:5}  {names}")
    return 1 if failed else 0


def run_fuzz(args: argparse.Namespace) -> int:
    """Compare random scenarios, cut down to the settings that exist."""
    generated = oracle.fuzz_scenarios(args.seed, args.count, args.profile)
    scenarios = [pruned(scenario) for scenario in generated]
    expected = oracle.ask(scenarios)
    failed = 0
    meant: Counter[str] = Counter()
    for scenario, theirs, ours in zip(scenarios, expected, _run_all(scenarios, args.workers), strict=True):
        found = difference(theirs, ours, args.level)
        if found and (why := deliberate_difference(scenario)) is not None:
            meant[why] += 1
        elif found:
            failed += 1
            print(
                f"seed {args.seed} profile {args.profile} {scenario['name']}: {found}\n  {json.dumps(scenario)}"
            )
    agree = len(scenarios) - failed - meant.total()
    print(f"seed {args.seed}, profile {args.profile}, level {args.level}: {agree} agree, {failed} differ")
    for why, count in meant.most_common():
        print(f"{count:5} differ on purpose: {why}")
    return 1 if failed else 0


def _run_all(scenarios: Iterable[Json], workers: int) -> Iterator[Json]:
    if workers < 2:
        yield from map(run, scenarios)
        return
    # Spawned, not forked: RocksDB holds threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=logging.disable) as pool:
        yield from pool.map(run, scenarios, chunksize=10)


if __name__ == "__main__":
    # Scenarios drop records and fail on purpose; the results tell about it.
    logging.disable()
    sys.exit(main())
