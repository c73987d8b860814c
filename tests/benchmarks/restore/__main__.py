"""``python -m tests.benchmarks.restore``: one changelog restored by pystreams and by Java Kafka Streams, on one broker.

Then pystreams restores it once more while other tasks of the same thread process: their rate is compared with that
without a restore. A quick look: ``--keys 1000000 --seconds 5``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import median

from rich.table import Table

from pystreams.config.streams_config import StreamsConfig
from tests.benchmarks.kafka.peers import PEERS
from tests.benchmarks.kafka.session import Session, run_session
from tests.benchmarks.options import names
from tests.benchmarks.restore.bench import Bench, Restored

_CONTESTANTS = ("pystreams", "java")
#: Of Python, clients and code, as the manual plans it (docs/how-to/sizing.md).
_PROCESS_BYTES = 100_000_000


def main() -> int:
    """The exit status: see ``run_session``."""
    given = _parser().parse_args()
    peers = [PEERS[name] for name in given.peers]

    def work(session: Session) -> None:
        bench = Bench(session, given.keys)
        bench.prepare()
        restored, besides = [], []
        for repeat in range(given.repeats):
            # What one leaves behind (a warm disk, a busy broker) is to help each as often as the other.
            for peer in peers if repeat % 2 == 0 else peers[::-1]:
                restored.append(bench.restore(peer, repeat))
                session.console.print(f"{peer.name}: {restored[-1].rate:,.0f} records/s")
        session.console.print(table(restored))
        for line in summary(restored):
            session.console.print(line)
        for _ in range(given.repeats if given.seconds > 0 else 0):
            beside = bench.beside(PEERS["pystreams"], given.seconds)
            besides.append(beside)
            session.console.print(
                f"Other tasks while stores are restored: {beside.during:,.0f} lines/s, {beside.share:.0%} of"
                f" {beside.alone:,.0f} lines/s without a restore"
            )
        if len(besides) > 1:
            session.console.print(f"Median: {median(beside.share for beside in besides):.0%}")
        session.save(
            {
                "keys": given.keys,
                "restores": [asdict(one) for one in restored],
                "beside": [asdict(one) for one in besides],
            }
        )

    return run_session("restore", peers, work)


def table(restored: Sequence[Restored]) -> Table:
    """A line for each restore."""
    shown = Table("peer", "run", "records", "seconds", "records/s", "CPU s", "MiB at start", "peak MiB")
    for one in restored:
        shown.add_row(
            one.peer,
            str(one.repeat + 1),
            f"{one.records:,}",
            f"{one.seconds:.1f}",
            f"{one.rate:,.0f}",
            f"{one.cpu_s:.1f}",
            _mib(one.start_rss_bytes),
            _mib(one.peak_rss_bytes),
        )
    return shown


def summary(restored: Sequence[Restored]) -> Iterator[str]:
    """How fast pystreams is beside Java, pair by pair, and how its memory compares with what its settings allow."""
    ours, theirs = ({one.repeat: one for one in restored if one.peer == peer} for peer in _CONTESTANTS)
    ratios = sorted(ours[repeat].rate / theirs[repeat].rate for repeat in ours.keys() & theirs.keys())
    if ratios:
        spread = f"median of {len(ratios)} pairs, {ratios[0]:.2f} to {ratios[-1]:.2f}"
        yield f"Rate beside Java's: {median(ratios):.2f} ({spread})"
    if ours:
        config = StreamsConfig(application_id="budget")
        planned = _PROCESS_BYTES + config.statestore_cache_max_bytes + config.statestore_uncommitted_max_bytes
        planned += config.rocksdb_block_cache_bytes + config.rocksdb_write_buffer_bytes
        most = max(one.peak_rss_bytes for one in ours.values())
        yield f"Memory of pystreams: at most {_mib(most)} MiB, where its settings allow {_mib(planned)}"


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):,.0f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.restore", description=__doc__)
    parser.add_argument("--keys", type=int, default=20_000_000)
    parser.add_argument(
        "--peers", type=names(_CONTESTANTS), default=_CONTESTANTS, help=",".join(_CONTESTANTS)
    )
    parser.add_argument(
        "--repeats", type=int, default=1, help="pairs of restores, and runs beside other tasks"
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="for how long other tasks are measured; 0: not at all"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
