"""An application that a function of its own has ended counts what it does again once, when it is started again."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.ids import TopicPartition
from tests.kafka.support import Cluster
from tests.kafka.trouble_support import failure_of
from tests.live.support import eventually, run_to_the_end

CHANGELOG = TopicPartition("counting-counts-changelog", 0)


@pytest.mark.parametrize("store", [{}, {"persistent": False}], ids=str)
def test_what_came_before_the_record_that_failed_counts_once(cluster: Cluster, store: dict[str, Any]) -> None:
    cluster.create("in", "out")
    armed, before = True, 0

    def trap(value: int) -> None:
        if armed and value == 90:
            # By then all that came before has left for the changelog.
            eventually(
                lambda: cluster.admin.end_offsets([CHANGELOG])[CHANGELOG] >= before + 90, "it is logged"
            )
            raise ValueError("ninety is too many")

    def counting() -> Any:
        # Nothing is committed before the failure.
        interval_ms = 60_000 if armed else 100
        app = cluster.app("counting", commit_interval_ms=interval_ms, statestore_cache_max_bytes=0)
        source = app.stream("in", key=str, value=int)
        source.group_by_key().count(name="counts", **store).to_stream().to("out")
        source.foreach(trap)
        return app

    cluster.write("in", [(f"k{i % 7}", i, i + 1) for i in range(100)])
    for _ in range(2):
        assert "ninety is too many" in str(failure_of(cluster.start(counting())))
        before = cluster.admin.end_offsets([CHANGELOG])[CHANGELOG]
    armed = False
    run_to_the_end(cluster, counting())
    assert cluster.table("out") == {f"k{i}": 15 if i < 2 else 14 for i in range(7)}
