"""Read from the latest offset on: the place where reading began is remembered, though nothing was read."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.app import App
from pystreams.runtime.streams import Streams
from tests.live.support import Log, caught_up, eventually, run_to_the_end

pytestmark = pytest.mark.both_logs


def latest(log: Log, **settings: Any) -> App:
    app = log.app("latest", auto_offset_reset="latest", **settings)
    app.stream("in", key=str, value=int).to("out")
    return app


def test_catching_up_ends_although_there_is_nothing_to_read(log: Log) -> None:
    log.create("in", "out", partitions=2)
    log.write("in", [("old", 1, 1)] * 10)
    Streams(latest(log), broker=log.broker).run(until_caught_up=True)
    assert log.read("out") == []


def test_records_that_come_between_two_runs_are_read(log: Log) -> None:
    log.create("in", "out")
    log.write("in", [("old", 1, 1)])
    run_to_the_end(log, latest(log))
    log.write("in", [("new", 2, 2)])
    caught_up(log.start(latest(log)))
    assert [record.key for record in log.read("out")] == ["new"]


def test_a_process_that_is_killed_before_its_first_commit_is_due_has_committed_where_it_began(
    log: Log,
) -> None:
    log.create("in", "out")
    log.write("in", [("old", 1, 1)] * 10)
    log.start(latest(log, commit_interval_ms=3_600_000))
    eventually(lambda: log.committed("latest"), "where it began is committed")
    assert {str(partition): at.offset for partition, at in log.committed("latest").items()} == {"in-0": 10}


def test_a_topic_without_records_gets_no_offset(log: Log) -> None:
    log.create("in", "out")
    run_to_the_end(log, latest(log))
    assert log.committed("latest") == {}
