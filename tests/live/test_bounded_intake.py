"""T8: what is read ahead is bounded, however much waits."""

from __future__ import annotations

import time

from tests.live.support import Log, eventually, running


def test_a_slow_function_never_has_more_than_the_limit_waiting_in_memory(log: Log) -> None:
    log.create("in", partitions=2)
    log.write("in", ((str(i), i, i) for i in range(50_000)))
    limit, poll = 500, 1_000
    app = log.app("slow", buffered_records_per_partition=limit)
    # The function is slow by itself, which is what this is about.
    app.stream("in", key=str, value=int).foreach(lambda value: time.sleep(0.001))
    streams = log.start(app)
    running(streams)
    most, paused = 0, False

    def looked_long_enough() -> bool:
        nonlocal most, paused
        progress = streams.progress()
        for thread in progress.threads:
            most = max([most, *(task.buffered for task in thread.tasks)])
            paused |= bool(thread.paused)
        return progress.records >= 2_000

    eventually(looked_long_enough, "2,000 records processed")
    assert 0 < most <= limit + poll
    assert paused
