"""``python -m tests.benchmarks.restore``: one changelog restored by pystreams and by Java Kafka Streams, on one broker.

Then pystreams restores it once more while other tasks of the same thread process: their rate is compared with that
without a restore. A quick look: ``--keys 1000000 --seconds 5``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from tests.benchmarks.kafka.cluster import cluster
from tests.benchmarks.kafka.machine import facts
from tests.benchmarks.kafka.peers import PEERS
from tests.benchmarks.kafka.running import RunFailedError
from tests.benchmarks.options import names
from tests.benchmarks.restore.bench import Bench, Beside, Restored
from tests.kafka.server import ROOT, why_not

FOLDER = ROOT / ".pystreams" / "bench"
_CONTESTANTS = ("pystreams", "java")


def main() -> int:
    """The exit status: 1 if a run failed."""
    given = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    peers = [PEERS[name] for name in given.peers]
    for reason in (why_not(), *(peer.why_not() for peer in peers)):
        if reason is not None:
            console.print(reason)
            return 2
    # A shell that starts us in the background would have us ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    for peer in peers:
        peer.build(FOLDER)
    folder = FOLDER / f"restore-{os.getpid()}"
    try:
        with cluster(folder, None) as found:
            bench = Bench(found, folder, given.keys, console)
            bench.prepare()
            restored = []
            for repeat in range(given.repeats):
                for peer in peers:
                    restored.append(bench.restore(peer, repeat))
                    console.print(f"{peer.name}: {restored[-1].rate:,.0f} records/s")
            beside = bench.beside(PEERS["pystreams"], given.seconds) if given.seconds > 0 else None
    except RunFailedError as error:
        console.print(f"{type(error).__name__}: {error}", markup=False, style="red")
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(table(restored))
    if beside is not None:
        console.print(
            f"Other tasks while stores are restored: {beside.during:,.0f} lines/s, {beside.share:.0%} of"
            f" {beside.alone:,.0f} lines/s without a restore"
        )
    _save(restored, beside, given.keys, console)
    return 0


def table(restored: Sequence[Restored]) -> Table:
    """A line for each restore."""
    shown = Table("peer", "run", "records", "seconds", "records/s", "CPU s", "peak MiB")
    for one in restored:
        shown.add_row(
            one.peer,
            str(one.repeat + 1),
            f"{one.records:,}",
            f"{one.seconds:.1f}",
            f"{one.rate:,.0f}",
            f"{one.cpu_s:.1f}",
            f"{one.peak_rss_bytes / (1 << 20):,.0f}",
        )
    return shown


def _save(restored: Sequence[Restored], beside: Beside | None, keys: int, console: Console) -> None:
    now = datetime.now(UTC)
    path = FOLDER / "results" / f"restore-{now:%Y-%m-%dT%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "at": now.isoformat(timespec="seconds"),
        "keys": keys,
        "machine": facts(),
        "restores": [asdict(one) for one in restored],
        "beside": None if beside is None else asdict(beside),
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
    console.print(f"Details: {path.relative_to(ROOT)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.restore", description=__doc__)
    parser.add_argument("--keys", type=int, default=20_000_000)
    parser.add_argument(
        "--peers", type=names(_CONTESTANTS), default=_CONTESTANTS, help=",".join(_CONTESTANTS)
    )
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="for how long other tasks are measured; 0: not at all"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
