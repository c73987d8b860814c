"""Repartition topics keep only what is not processed yet, so that they do not grow for ever."""

from __future__ import annotations

import pytest

from tests.live.support import Log, caught_up, eventually

pytestmark = pytest.mark.both_logs


def test_what_is_processed_and_committed_is_deleted_between_sub_topologies(log: Log) -> None:
    log.create("in", "out", partitions=2)
    app = log.app("purge", repartition_purge_interval_ms=0)
    words = app.stream("in", key=str, value=str).group_by(lambda word: word, repartition="by-word")
    words.count(name="counts").to_stream().to("out")
    log.write("in", [(None, "a", 1), (None, "b", 2)] * 50, value=str)
    streams = log.start(app)
    caught_up(streams)
    partitions = log.partitions("purge-by-word-repartition")
    ends = log.admin.end_offsets(partitions)
    assert sum(ends.values()) == 100
    eventually(lambda: log.admin.beginning_offsets(partitions) == ends, "all is deleted")
    streams.close()

    log.write("in", [(None, "a", 3)], value=str)
    caught_up(log.start(app))
    assert log.table("out") == {"a": 51, "b": 50}
