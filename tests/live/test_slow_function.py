"""A function that turns slow after a fast stretch holds up commits and stops for a moment, not for a round of thousands
of records."""

from __future__ import annotations

import time

from pystreams.ids import TopicPartition
from tests.live.support import Log, eventually, running

FAST, SLOW = 60_000, 8_000
SLOW_S = 0.005


def test_commits_and_stops_do_not_wait_for_the_records_that_a_fast_round_would_have_taken(log: Log) -> None:
    log.create("in")
    log.write("in", [("k", i, i) for i in range(FAST + SLOW)])
    app = log.app("slowing", commit_interval_ms=100, buffered_records_per_partition=10_000)
    # The function is slow by itself, which is what this is about.
    app.stream("in", key=str, value=int).foreach(lambda value: time.sleep(SLOW_S) if value >= FAST else None)
    streams = log.start(app)
    running(streams)

    def committed() -> int:
        found = log.committed("slowing").get(TopicPartition("in", 0))
        return 0 if found is None else found.offset

    for _ in range(3):
        before = max(committed(), FAST)
        eventually(lambda before=before: committed() > before, "a commit after some slow records")
        assert committed() < before + 1_000, "some of them, not thousands"
    assert streams.close(30_000)
    assert committed() < FAST + SLOW
