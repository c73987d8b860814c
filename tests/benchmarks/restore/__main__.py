"""``python -m tests.benchmarks.restore``: one changelog restored by pystreams and by Java Kafka Streams, on one broker.

Then pystreams restores it once more while other tasks of the same thread process: their rate is compared with that
without a restore. A quick look: ``--keys 1000000 --seconds 5``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table

from tests.benchmarks.kafka.peers import PEERS
from tests.benchmarks.kafka.session import Session, run_session
from tests.benchmarks.options import names
from tests.benchmarks.restore.bench import Bench, Restored

_CONTESTANTS = ("pystreams", "java")


def main() -> int:
    """The exit status: see ``run_session``."""
    given = _parser().parse_args()
    peers = [PEERS[name] for name in given.peers]

    def work(session: Session) -> None:
        bench = Bench(session, given.keys)
        bench.prepare()
        restored = []
        for repeat in range(given.repeats):
            for peer in peers:
                restored.append(bench.restore(peer, repeat))
                session.console.print(f"{peer.name}: {restored[-1].rate:,.0f} records/s")
        session.console.print(table(restored))
        beside = None
        if given.seconds > 0:
            beside = bench.beside(PEERS["pystreams"], given.seconds)
            session.console.print(
                f"Other tasks while stores are restored: {beside.during:,.0f} lines/s, {beside.share:.0%} of"
                f" {beside.alone:,.0f} lines/s without a restore"
            )
        session.save(
            {
                "keys": given.keys,
                "restores": [asdict(one) for one in restored],
                "beside": None if beside is None else asdict(beside),
            }
        )

    return run_session("restore", peers, work)


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
