"""T8: what is read ahead is bounded, however much waits."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.kafka.support import Cluster
from tests.live.support import Log, eventually, running

pytestmark = pytest.mark.both_logs

WAITING = 500_000
#: Half a million buffered records take over 100 MB. librdkafka holds up to 100,000 of each partition, which take 47 MB.
GROWTH_BYTES_MAX = {"embedded": 20_000_000, "kafka": 80_000_000}


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_slow_function_never_has_more_than_the_limit_waiting_in_memory(log: Log) -> None:
    log.create("in", partitions=2)
    log.write("in", ((str(i), i, i) for i in range(WAITING)))
    limit, poll = 500, 1_000
    app = log.app("slow", buffered_records_per_partition=limit)
    # The function is slow by itself, which is what this is about.
    app.stream("in", key=str, value=int).foreach(lambda value: time.sleep(0.001))
    before_bytes = resident_bytes()
    streams = log.start(app)
    running(streams)
    most, paused = 0, False

    def processed(records: int) -> bool:
        nonlocal most, paused
        progress = streams.progress()
        for thread in progress.threads:
            most = max([most, *(task.buffered for task in thread.tasks)])
            paused |= bool(thread.paused)
        return progress.records >= records

    eventually(lambda: processed(3_000), "3,000 records processed")
    assert 0 < most <= limit + poll
    assert paused, "partitions that are full enough are shown as paused"
    kind = "kafka" if isinstance(log, Cluster) else "embedded"
    assert resident_bytes() - before_bytes < GROWTH_BYTES_MAX[kind]
