"""At the head of its topics an application closes windows with the record that shows that they are over, however long
its commit interval is: stream time waits for nobody there."""

from __future__ import annotations

import time

import pytest

from pystreams import EmitStrategy, TimeWindows
from pystreams.ids import TopicPartition
from pystreams.runtime.catching_up import group_lag
from tests.live.support import TIMEOUT_S, Log, eventually, running

PARTITIONS = 2
MINUTE = 60_000
#: Longer than the test waits for anything.
COMMIT_INTERVAL_MS = int(2_000 * TIMEOUT_S)
#: A thread that has not looked since all are up to date commits once more. Then nothing is shown.
ATTEMPTS = 5


@pytest.mark.kafka
def test_a_window_closes_with_the_record_that_is_later(cluster: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Kafka, where others read what is written before it is committed."""
    monkeypatch.setattr(group_lag, "_AFTERWARDS_MS", 1.0)
    cluster.create("in", partitions=PARTITIONS)
    cluster.create("out")
    app = cluster.app("live", commit_interval_ms=COMMIT_INTERVAL_MS, num_stream_threads=2)
    by_value = app.stream("in", key=str, value=int).group_by(
        lambda key, value: value, key=int, repartition="by-value"
    )
    windows = by_value.windowed_by(TimeWindows.tumbling(MINUTE)).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
    windows.count().to_stream().map(lambda key, n: (str(key.start), n), key=str, value=int).to("out")
    now = int(time.time() * 1_000) // MINUTE * MINUTE
    for partition in range(PARTITIONS):
        cluster.write("in", [("k", 1, now)] * 10, partition=partition)
    streams = cluster.start(app)
    running(streams)
    context = streams._context
    assert context is not None
    watch = context.watch
    assert watch is not None
    eventually(lambda: watch.seen is not None and not watch.seen.view.commit_often, "nothing lags")
    eventually(lambda: cluster.all_committed("live", "in", "live-by-value-repartition"), "all is committed")
    for attempt in range(ATTEMPTS):
        committed = offsets(cluster)
        for minute in range(3 * attempt + 1, 3 * attempt + 4):
            for partition in range(PARTITIONS):
                cluster.write("in", [("k", 1, now + minute * MINUTE)], partition=partition)
            # A thread may read the next minute before the other has read this one, which is late then.
            grouped = 10 * PARTITIONS + minute * PARTITIONS
            eventually(
                lambda n=grouped: len(cluster.read("live-by-value-repartition")) == n,
                f"all of minute {minute}",
            )
            eventually(lambda minute=minute: len(cluster.read("out")) == minute, f"window {minute}")
        if offsets(cluster) == committed:
            break
    else:
        pytest.fail("windows closed only with a commit")
    assert [record.value for record in cluster.read("out")] == [20, *[2] * (3 * attempt + 2)]


def offsets(log: Log) -> dict[TopicPartition, int]:
    """The committed offsets. A last commit may still say that nothing waits any more, beside the same offsets."""
    return {partition: at.offset for partition, at in log.committed("live").items()}
