"""A process that the tests kill: ``python -m tests.live.worker PATH [--until-caught-up]``."""

from __future__ import annotations

import sys
from pathlib import Path

from pystreams.app import App
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.runtime.streams import Streams


def application(path: Path) -> App:
    """Two sub-topologies with state, a repartition topic between them."""
    app = App("killed", state_dir=path / "state", poll_ms=10, commit_interval_ms=20, num_stream_threads=2)
    sums = app.stream("in", key=str, value=int).group_by_key().reduce(lambda one, two: one + two, name="sums")
    sums.to_stream().to("sums-out")
    by_digit = sums.group_by(lambda key, total: (key[-1], total), key=str, value=int)
    totals = by_digit.aggregate(
        lambda: 0, lambda whole, new: whole + new, lambda whole, old: whole - old, name="totals", value=int
    )
    totals.to_stream().to("totals-out")
    return app


def main() -> None:
    path = Path(sys.argv[1])
    broker = EmbeddedBroker(path / "log.db")
    Streams(application(path), broker=broker).run(until_caught_up="--until-caught-up" in sys.argv)
    broker.close()


if __name__ == "__main__":
    main()
