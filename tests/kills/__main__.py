"""kill -9 in every way: ``python -m tests.kills [--seed N] [--moments N]``; ``make kills``."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic

from tests.kills.aim import POINTS
from tests.kills.job import measure
from tests.kills.scenarios import SEPARATE, SHARED, Chaos, Outcome


def scenarios(chaos: Chaos, seed: int, moments: int) -> Iterator[Callable[[], Outcome]]:
    """Every scenario, ``moments`` random ones of each kind and every point."""
    for trial in range(moments):
        yield partial(chaos.random_moment, seed + trial)
    for lose_state in (False, True):
        yield partial(chaos.chain, seed, moments, lose_state=lose_state)
    for states in (SHARED, SEPARATE):
        yield partial(chaos.two_processes, seed, moments, states)
    passings = chaos.passings()
    for point in POINTS:
        yield partial(chaos.aimed, point, seed, max(1, passings[point] * 2 // 3))
    yield partial(chaos.aimed_chain, POINTS, seed)
    for number, point in enumerate(POINTS):
        yield partial(chaos.aimed_beside, point, seed, (SHARED, SEPARATE)[(seed + number) % 2])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="default: a random one")
    parser.add_argument("--moments", type=int, default=20, help="random moments of each kind (default: 20)")
    options = parser.parse_args()
    # Kept if anything fails: the log, the state and what the processes printed are the evidence.
    folder = Path(tempfile.mkdtemp(prefix="pystreams-kills-"))
    print(f"seed {options.seed}, in {folder}", flush=True)
    began = monotonic()
    kills = meant = 0
    baseline = measure(folder / "baseline")
    print(f"undisturbed: {baseline.start_s:.1f} s to start, {baseline.work_s:.1f} s of work", flush=True)
    for scenario in scenarios(Chaos(folder, baseline), options.seed, options.moments):
        scenario_began = monotonic()
        outcome = scenario()
        kills, meant = kills + outcome.kills, meant + outcome.meant
        print(f"  {monotonic() - scenario_began:5.1f} s  {outcome}", flush=True)
    shutil.rmtree(folder)
    took_s = monotonic() - began
    print(f"{kills} of {meant} kills, seed {options.seed}, {took_s:.0f} s: nothing lost, nothing doubled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
