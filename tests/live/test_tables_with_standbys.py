"""A table that is restored from the topic that it reads has standbys, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.app import App
from pystreams.runtime.streams import Streams
from tests.live.standby_worker import SETTINGS
from tests.live.support import Log, eventually, running

pytestmark = [pytest.mark.slow, pytest.mark.both_logs]


def sizes(state_dir: Path) -> App:
    app = App(
        "tables",
        state_dir=state_dir,
        num_standby_replicas=1,
        topology_optimization="all",
        **SETTINGS,
    )
    table = app.table("sizes", key=str, value=int, name="sizes-store")
    app.stream("in", key=str, value=int).join(table, lambda one, two: one + two, value=int).to("out")
    return app


def tasks_of(streams: Streams) -> int:
    return sum(len(thread.tasks) for thread in streams.progress().threads)


def test_standbys_of_a_table_without_a_changelog_follow_what_is_committed(log: Log) -> None:
    log.create("sizes", "in", "out", partitions=2)
    log.write("sizes", [(f"k{i}", i, i) for i in range(200)])
    one = log.start(sizes(log.path / "one"))
    running(one)
    eventually(lambda: log.all_committed("tables", "sizes"), "all committed")
    two = log.start(sizes(log.path / "two"))
    for streams in (one, two):
        eventually(
            lambda streams=streams: (
                tasks_of(streams) == 1 and [standby.lag for standby in streams.progress().standbys] == [0]
            ),
            "one task and one standby each",
        )
    two.close()
    log.write("in", [(f"k{i}", 1000, 1000 + i) for i in range(200)])
    eventually(lambda: log.all_committed("tables", "sizes", "in"), "all committed")
    assert log.table("out") == {f"k{i}": 1000 + i for i in range(200)}
