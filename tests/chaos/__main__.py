"""Random faults for as long as wanted: ``python -m tests.chaos --log kafka|embedded [--minutes N] [--seed N]``;
``make chaos-kafka``, ``make chaos``."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.places import on_kafka, on_the_embedded_log
from tests.chaos.progress import PROGRESS_TIMEOUT_S
from tests.chaos.run import Run
from tests.kafka.server import why_not

#: By the number of brokers. After the loss of the one that coordinates the group and its transactions, a lost session,
#: the fencing of transactions and the next rebalance come one after the other.
PROGRESS_TIMEOUTS_S = {1: PROGRESS_TIMEOUT_S, 3: 2 * PROGRESS_TIMEOUT_S}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--log", choices=("kafka", "embedded"), default="kafka")
    parser.add_argument("--minutes", type=float, default=10.0, help="of faults (default: 10)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="default: a random one")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="default: 1")
    options = parser.parse_args()
    reason = why_not() if options.log == "kafka" else None
    if reason is not None:
        sys.exit(reason)
    # Kept if anything fails: the log, the state and what the processes printed are the evidence.
    folder = Path(tempfile.mkdtemp(prefix="pystreams-chaos-"))
    print(f"seed {options.seed}, in {folder}", flush=True)
    opened = on_kafka(folder, options.brokers) if options.log == "kafka" else on_the_embedded_log(folder)
    with opened as place:
        run = Run(place, folder, options.seed, progress_timeout_s=PROGRESS_TIMEOUTS_S[options.brokers])
        began = time.monotonic()

        def enough() -> bool:
            minutes = (time.monotonic() - began) / 60
            faults = run.report.faults.total()
            print(f"{minutes:.0f} of {options.minutes:g} minutes, {faults} faults", flush=True)
            return minutes > options.minutes

        report = run(run.decks(enough))
    shutil.rmtree(folder)
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
