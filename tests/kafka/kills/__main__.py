"""kill -9 on Kafka: ``python -m tests.kafka.kills [--seed N] [--moments N]``; ``make kills-kafka``."""

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

from tests.kafka.kills.job import Flights
from tests.kafka.kills.scenarios import Chaos, Outcome
from tests.kafka.kills.worker import POINTS, REBALANCE
from tests.kafka.server import KafkaServer, why_not


def scenarios(chaos: Chaos, seed: int, moments: int) -> Iterator[Callable[[], Outcome]]:
    """Every scenario, with ``moments`` kills at random moments."""
    yield chaos.undisturbed
    yield partial(chaos.alone, seed, moments)
    yield partial(chaos.one_of_three, seed, moments)
    yield partial(chaos.aimed, POINTS, seed)
    yield partial(chaos.aimed_beside, REBALANCE, seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="default: a random one")
    parser.add_argument("--moments", type=int, default=20, help="random moments of each kind (default: 20)")
    options = parser.parse_args()
    reason = why_not()
    if reason is not None:
        sys.exit(reason)
    # Kept if anything fails: logs, journals and what the processes printed are the evidence.
    folder = Path(tempfile.mkdtemp(prefix="pystreams-kills-kafka-"))
    print(f"seed {options.seed}, in {folder}", flush=True)
    began = monotonic()
    server = KafkaServer(folder / "kafka")
    server.start()
    try:
        for scenario in scenarios(
            Chaos(server.bootstrap_servers, folder, Flights()), options.seed, options.moments
        ):
            scenario_began = monotonic()
            outcome = scenario()
            print(f"  {monotonic() - scenario_began:5.1f} s  {outcome}", flush=True)
    finally:
        server.stop()
    shutil.rmtree(folder)
    print(f"seed {options.seed}, {monotonic() - began:.0f} s: no window lost a record, none has one too many")
    return 0


if __name__ == "__main__":
    sys.exit(main())
