"""Members join, leave, are killed and frozen under load: ``python -m tests.kafka.churn [--seconds N] [--seed N]``."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from tests.kafka.churn.job import run
from tests.kafka.server import KafkaServer, why_not
from tests.kafka.support import Cluster


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.churn", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="of churn (default: 120)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="default: a random one")
    options = parser.parse_args()
    reason = why_not()
    if reason is not None:
        raise SystemExit(reason)
    # Kept if anything fails: journals and logs are the evidence.
    folder = Path(tempfile.mkdtemp(prefix="pystreams-churn-"))
    print(f"seed {options.seed}, in {folder}", flush=True)
    server = KafkaServer(folder / "kafka")
    server.start()
    began = time.monotonic()
    try:
        with closing(Cluster(server.bootstrap_servers, folder)) as cluster:
            report = run(cluster, folder / "workers", options.seconds, options.seed)
    finally:
        server.stop()
    shutil.rmtree(folder)
    print(f"{report}\nseed {options.seed}, {time.monotonic() - began:.0f} s")
    if not report.refused:
        print("no commit of a zombie was refused: choose another seed, or more seconds")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
