"""``python -m tests.benchmarks.large``: an application with 200 partitions and 50 stores in one process, started twice.

Each partition is a task with all the stores: 10,000 stores, each with a partition of its own changelog. A quick look:
``--partitions 40 --stores 10``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from contextlib import ExitStack, closing

from rich.console import Console
from rich.table import Table

from tests.benchmarks.kafka.cluster import cluster
from tests.benchmarks.large.measured import Measured, Size
from tests.kafka.server import ROOT, why_not
from tests.kafka.support import Cluster
from tests.live.support import Log

FOLDER = ROOT / ".pystreams" / "bench"


def main() -> int:
    """The exit status."""
    given = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    if given.log == "kafka" and (reason := why_not()) is not None:
        console.print(reason)
        return 2
    folder = FOLDER / f"large-{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        with ExitStack() as stack:
            if given.log == "kafka":
                broker = stack.enter_context(cluster(folder, None))
                log: Log = stack.enter_context(closing(Cluster(broker.bootstrap_servers, folder)))
            else:
                log = stack.enter_context(closing(Log(folder)))
            measured = Measured(log, Size(given.partitions, given.stores, given.threads))
            try:
                measured.run()
            finally:
                console.print(_table(measured))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.large", description=__doc__)
    parser.add_argument("--partitions", type=int, default=200, help="of the input: tasks")
    parser.add_argument("--stores", type=int, default=50, help="of each task")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--log", choices=("embedded", "kafka"), default="embedded")
    return parser


def _table(measured: Measured) -> Table:
    table = Table("step", "seconds", "of CPU", "memory, MiB", "open files")
    for step in measured.steps:
        figures = f"{step.seconds:.2f}", f"{step.cpu_seconds:.2f}", str(step.memory_mib), str(step.open_files)
        table.add_row(step.name, *figures)
    return table


sys.exit(main())
