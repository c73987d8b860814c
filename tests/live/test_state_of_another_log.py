"""A state directory that has served one log does not spoil the results on another: its offsets mean nothing there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pystreams import App, Streams
from pystreams.errors import StateError
from tests.live.support import Log, run_to_the_end


def counting(log: Log, state: Path, *, logged: bool = True) -> App:
    app = log.app("counting", state_dir=state)
    grouped = app.stream("in", key=str, value=int).group_by_key()
    grouped.count(name="counts", logged=logged).to_stream().to("out")
    return app


def count(log: Log, state: Path, keys: range, times: int) -> None:
    """Write every key so often, and have the application count them with its stores in ``state``."""
    log.write("in", [(f"k{key}", 1, 0) for key in keys for _ in range(times)])
    run_to_the_end(log, counting(log, state))


def new_log(path: Path) -> Log:
    path.mkdir()
    log = Log(path)
    log.create("in", "out")
    return log


def test_stores_that_followed_another_logs_changelog_are_restored_from_this_ones(tmp_path: Path):
    first, second = new_log(tmp_path / "first"), new_log(tmp_path / "second")
    # The second log's changelog is the longer one: as far as offsets go, the first one's stores could go on there.
    count(first, tmp_path / "state", range(10), times=3)
    count(second, tmp_path / "elsewhere", range(20), times=1)
    count(second, tmp_path / "state", range(1), times=1)
    assert second.table("out") == {"k0": 2, **{f"k{key}": 1 for key in range(1, 20)}}
    for log in (first, second):
        log.close()


def test_a_log_that_was_deleted_and_made_anew_is_another_one(tmp_path: Path):
    log = new_log(tmp_path / "log")
    count(log, tmp_path / "state", range(10), times=3)
    log.close()
    shutil.rmtree(tmp_path / "log")
    log = new_log(tmp_path / "log")
    count(log, tmp_path / "elsewhere", range(20), times=1)
    count(log, tmp_path / "state", range(1), times=1)
    assert log.table("out")["k0"] == 2
    log.close()


def test_a_log_that_was_moved_is_the_same_one(tmp_path: Path, caplog):
    log = new_log(tmp_path / "log")
    count(log, tmp_path / "state", range(10), times=1)
    log.close()
    (tmp_path / "log").rename(tmp_path / "moved")
    log = Log(tmp_path / "moved")
    count(log, tmp_path / "state", range(10), times=1)
    assert set(log.table("out").values()) == {2}
    assert "another log" not in caplog.text
    log.close()


def test_a_store_that_no_changelog_can_bring_back_is_not_deleted(tmp_path: Path):
    for name in ("first", "second"):
        log = new_log(tmp_path / name)
        log.write("in", [("k", 1, 0)])
        app = counting(log, tmp_path / "state", logged=False)
        if name == "first":
            run_to_the_end(log, app)
        else:
            with pytest.raises(StateError, match="delete the directory to start with an empty store"):
                Streams(app, broker=log.broker).run(until_caught_up=True)
        log.close()
