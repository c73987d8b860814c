"""Stores that need long to close cost no membership: a task of theirs is in one process at a time, and nothing is done
twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.app import App
from pystreams.state.task_stores import TaskStores
from tests.live.support import Log, caught_up, eventually, running

PARTITIONS = 8
#: Four tasks move, so closing them takes longer than a session.
CLOSE_S = 0.6
SESSION_TIMEOUT_MS = 1_500


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with closing(Log(tmp_path, session_timeout_ms=SESSION_TIMEOUT_MS, heartbeat_interval_ms=200)) as log:
        yield log


def counting(log: Log, process: str) -> App:
    app = log.app("slow", state_dir=log.path / process, acceptable_recovery_lag=1_000_000)
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    return app


def test_tasks_that_move_are_closed_for_longer_than_a_session(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    close, closed = TaskStores.close, []

    def close_slowly(self: TaskStores) -> None:
        time.sleep(CLOSE_S)  # a slow disk: that is what this test is about
        close(self)
        closed.append(time.monotonic())

    log.create("in", "out", partitions=PARTITIONS)
    keys = [f"k{number}" for number in range(100)]

    def write(time_ms: int) -> None:
        log.write("in", [(key, 1, time_ms) for key in keys])

    write(1)
    first = log.start(counting(log, "one"))
    caught_up(first)
    monkeypatch.setattr(TaskStores, "close", close_slowly)
    second = log.start(counting(log, "two"))
    running(second)
    write(2)
    threads = second.metadata_for_local_threads
    eventually(lambda: len(threads()[0].tasks) == PARTITIONS // 2, "half of the tasks have moved")
    assert len(closed) * CLOSE_S * 1_000 > SESSION_TIMEOUT_MS, closed
    for streams in (first, second):
        caught_up(streams)
    write(3)
    for streams in (first, second):
        caught_up(streams)
    assert "lost the membership" not in caplog.text
    counts: dict[str, list[int]] = {}
    for record in log.read("out"):
        counts.setdefault(record.key, []).append(record.value)
    assert counts == {key: [1, 2, 3] for key in keys}
