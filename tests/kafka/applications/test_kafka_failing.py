"""An application that has ended with an error counts what it does again once, when it is started again."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import App
from pystreams.broker.port import TopicSpec
from pystreams.errors import ProductionError, StateError
from pystreams.ids import TopicPartition
from pystreams.state.task_stores import TaskStores
from tests.kafka.support import Cluster
from tests.kafka.trouble_support import failure_of
from tests.live.support import KEPT, eventually, run_to_the_end

CHANGELOG = TopicPartition("counting-counts-changelog", 0)
#: The longest record of a topic that takes short ones only.
LIMIT = 5_000
RECORDS = [(f"k{i % 7}", i, i + 1) for i in range(100)]

stores = pytest.mark.parametrize("store", [{}, {"persistent": False}], ids=str)


@stores
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

    cluster.write("in", RECORDS)
    for _ in range(2):
        assert "ninety is too many" in str(failure_of(cluster.start(counting())))
        before = cluster.admin.end_offsets([CHANGELOG])[CHANGELOG]
    armed = False
    run_to_the_end(cluster, counting())
    assert cluster.table("out") == {f"k{i}": 15 if i < 2 else 14 for i in range(7)}


@stores
def test_what_a_last_commit_that_fails_has_logged_counts_once(
    cluster: Cluster, store: dict[str, Any]
) -> None:
    cluster.create("in", "out")
    cluster.admin.create_topics([TopicSpec("short", 1, {**KEPT, "max.message.bytes": str(LIMIT)})])
    armed = True

    def text(value: int) -> str:
        return "x" * (2 * LIMIT if armed and value == 90 else 1)

    def counting() -> App:
        # Nothing is committed before the end.
        interval_ms = 600_000 if armed else 100
        app = cluster.app("counting", commit_interval_ms=interval_ms)
        source = app.stream("in", key=str, value=int)
        source.group_by_key().count(name="counts", **store).to_stream().to("out")
        source.map_values(text).to("short", value=str)
        return app

    cluster.write("in", RECORDS)
    streams = cluster.start(counting())
    eventually(lambda: streams.progress().records >= len(RECORDS), "all processed")
    streams.close()
    assert isinstance(streams.failure, ProductionError)
    armed = False
    run_to_the_end(cluster, counting())
    assert cluster.table("out") == {f"k{i}": 15 if i < 2 else 14 for i in range(7)}


@stores
def test_what_a_commit_has_brought_to_the_log_but_not_to_the_stores_counts_once(
    cluster: Cluster, store: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create("in", "out")

    def counting() -> App:
        app = cluster.app("counting", commit_interval_ms=100)
        app.stream("in", key=str, value=int).group_by_key().count(name="counts", **store).to_stream().to(
            "out"
        )
        return app

    def refuse(*_: object, **__: object) -> None:
        raise StateError("the disk is full")

    cluster.write("in", RECORDS)
    with monkeypatch.context() as patch:
        patch.setattr(TaskStores, "commit", refuse)
        assert "the disk is full" in str(failure_of(cluster.start(counting())))
    cluster.write("in", RECORDS)
    run_to_the_end(cluster, counting())
    assert cluster.table("out") == {f"k{i}": 30 if i < 2 else 28 for i in range(7)}
