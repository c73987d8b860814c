"""What hundreds of steps of one task must remember is committed on a broker that limits what a commit may hold."""

from __future__ import annotations

import time
from collections import Counter

from pystreams import App, TimeWindows
from pystreams.engine.offset_metadata import TEXT_CHARACTERS_MAX
from pystreams.ids import TopicPartition
from tests.kafka.support import Cluster
from tests.live.support import run_to_the_end

STEPS = 70
WINDOWS = TimeWindows.tumbling(10_000, grace=5_000)


def counting(cluster: Cluster) -> App:
    """Counts every record in many ways. The stores keep windows for longer than the steps accept records."""
    app = cluster.app("counting")
    windowed = app.stream("in", key=str, value=int).group_by_key().windowed_by(WINDOWS)
    for step in range(STEPS):
        counts = windowed.count(name=f"count-{step}", retention=3_600_000).to_stream()
        counts.map(lambda _, count, step=step: (step, count), key=int, value=int).to("out")
    return app


def test_windows_of_every_step_stay_closed_after_a_restart(cluster: Cluster) -> None:
    cluster.create("in", "out")
    now_ms = time.time_ns() // 1_000_000 // 10_000 * 10_000
    cluster.write("in", [("k", 1, now_ms), ("k", 1, now_ms + 40_000)])
    run_to_the_end(cluster, counting(cluster))
    text = cluster.committed("counting")[TopicPartition("in", 0)].metadata
    assert 0 < len(text) <= TEXT_CHARACTERS_MAX
    cluster.write("in", [("k", 1, now_ms + 1_000), ("k", 1, now_ms + 41_000)])
    run_to_the_end(cluster, counting(cluster))
    outputs = Counter(record.key for record in cluster.read("out", key=int))
    assert outputs == dict.fromkeys(range(STEPS), 3)
