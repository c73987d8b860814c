"""Answers a second of an application's stores, of both kinds, while its thread is idle and while it is stuck in a
function of the program (``make bench-reads``)."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from pystreams.partitioning import partition_for_key
from tests.live.support import Log, caught_up

KEYS, STUCK = 20_000, -1
SECONDS = 3.0


def rate(store: Any) -> tuple[float, float]:
    """Answers a second, and the longest wait for one (ms)."""
    count, worst, begun = 0, 0.0, time.perf_counter()
    while (now := time.perf_counter()) - begun < SECONDS:
        assert store.get(f"k{count % KEYS}").value == count % KEYS
        worst = max(worst, time.perf_counter() - now)
        count += 1
    return count / SECONDS, 1000 * worst


def report(name: str, ask: Callable[[], tuple[float, float]]) -> None:
    answers, worst_ms = ask()
    print(f"{name:46}{answers:10,.0f} answers/s, the slowest {worst_ms:.1f} ms")


def main() -> None:
    """Measure, and print a line for each case."""
    stuck, free = threading.Event(), threading.Event()

    def step(value: int) -> int:
        if value == STUCK:
            stuck.set()
            free.wait()
        return value

    with tempfile.TemporaryDirectory() as folder, closing(Log(Path(folder))) as log:
        log.create("in", partitions=2)
        log.write("in", [(f"k{number}", number, number) for number in range(KEYS)])
        app = log.app("queried")
        app.stream("in", key=str, value=int).map_values(step).to_table(name="latest")
        streams = log.start(app)
        caught_up(streams)
        committed = streams.store("latest", freshness="committed")
        located = streams.store("latest", freshness="committed", partitioner=partition_for_key)
        report("latest, idle", lambda: rate(streams.store("latest")))
        report("committed, idle", lambda: rate(committed))
        try:
            log.write("in", [("stuck", STUCK, 0)])
            stuck.wait()
            report("committed, the thread is stuck", lambda: rate(committed))
            report("committed, stuck, the partitioner is known", lambda: rate(located))
        finally:
            free.set()


if __name__ == "__main__":
    main()
