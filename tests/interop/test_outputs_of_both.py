"""The same program over the same records writes the same bytes to the same partitions, whoever runs it."""

from __future__ import annotations

import time

from pystreams import TimeWindows
from tests.interop.java_side import JavaSide
from tests.kafka.support import Cluster
from tests.live.support import Line, eventually, run_to_the_end

Records = dict[str, list[list[Line]]]

WRITTEN = ("out", "windows-wins-changelog")
SIZE_MS = 10_000


def create(cluster: Cluster) -> None:
    cluster.create("in", partitions=3)
    cluster.create("out", partitions=5)
    # An hour ago: topics with a time limit keep them. Out of order, and some too late for their windows.
    origin_ms = (time.time_ns() // 1_000_000 - 3_600_000) // SIZE_MS * SIZE_MS
    cluster.write("in", [(f"k{i % 17}", i, origin_ms + 50 * i - (i % 7) * 3_000) for i in range(1_000)])


def written(cluster: Cluster) -> Records:
    """What each partition holds. Several tasks write to a partition of ``out``, in any order among each other."""
    return {
        topic: [
            sorted(cluster.lines(p).values(), key=lambda line: (line.key or b"", line.value))
            for p in cluster.partitions(topic)
        ]
        for topic in WRITTEN
    }


def java_writes(cluster: Cluster, java: JavaSide) -> Records:
    java.start("windows", "windows", cluster.path / "java")
    eventually(lambda: cluster.all_committed("windows", "in"), "Java has committed everything")
    java.stop("windows")
    return written(cluster)


def we_write(cluster: Cluster) -> Records:
    app = cluster.app("windows", statestore_cache_max_bytes=0)
    windows = TimeWindows.tumbling(SIZE_MS, grace=5_000)
    grouped = app.stream("in", key=str, value=int).group_by_key()
    grouped.windowed_by(windows).count(name="wins", retention=3_600_000).to_stream().to("out")
    run_to_the_end(cluster, app)
    return written(cluster)


def test_windowed_counts_and_their_changelog_are_equal_byte_by_byte(cluster: Cluster, java: JavaSide):
    create(cluster)
    theirs = java_writes(cluster, java)
    assert all(sum(map(len, partitions)) > 500 for partitions in theirs.values())
    assert all(theirs["out"])
    cluster.admin.delete_topics(WRITTEN)
    cluster.admin.delete_group("windows")
    cluster.create("out", partitions=5)
    assert we_write(cluster) == theirs
