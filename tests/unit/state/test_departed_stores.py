"""What stores leave on the disk when they leave a task is deleted at its first commit, unless only this disk has it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams.record import ContextCell
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores
from tests.unit.state.state_kit import RESOURCES, Task, batch_of, key_value, read_all, timestamped_window

KEPT, LEFT = key_value("kept"), timestamped_window("left")


def on_disk(directory: Path) -> tuple[list[str], set[str]]:
    """The stores in a task's directory, and those that its metadata mention."""
    with closing(RocksDatabase(directory / "rocksdb", [], RESOURCES)) as database:
        mentioned = {key.partition(b"/")[2].decode() for key in database.metadata() if b"/" in key}
        return database.unopened(), mentioned


def old_version(directory: Path) -> None:
    with Task(KEPT, LEFT, directory=directory) as task:
        task["kept"].put("a", "1")
        task["left"].put("a", (1, 5), 10)
        task.commit()


def test_a_store_that_left_is_gone_after_the_first_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old_version(tmp_path / "0_0")
    with caplog.at_level(logging.INFO, "pystreams.state"), Task(KEPT, directory=tmp_path / "0_0") as task:
        assert "left" not in caplog.text
        task.commit()
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == 1
        assert told[0].endswith(": left")
        task.commit()
        assert len(caplog.records) == 1
        assert read_all(task["kept"].all()) == [("a", "1")]
    assert on_disk(tmp_path / "0_0") == (["kept"], {"kept"})


def test_without_a_commit_the_old_version_finds_its_store_again(tmp_path: Path) -> None:
    old_version(tmp_path / "0_0")
    with Task(KEPT, directory=tmp_path / "0_0") as task:
        task["kept"].put("a", "2")
    with Task(KEPT, LEFT, directory=tmp_path / "0_0") as task:
        assert task["left"].fetch("a", 10) == (1, 5)
        assert task.state.changelog_offset("left") == 1


def test_after_a_commit_the_old_version_restores_its_store_from_the_beginning(tmp_path: Path) -> None:
    old_version(tmp_path / "0_0")
    with Task(KEPT, directory=tmp_path / "0_0") as task:
        task.commit()
    with Task(KEPT, LEFT, directory=tmp_path / "0_0") as task:
        assert task.state.changelog_offset("left") is None
        assert task.state.changelog_offset("kept") == 0
        assert task["left"].fetch("a", 10) is None


def test_a_store_that_is_kept_in_memory_now_leaves_the_disk(tmp_path: Path) -> None:
    old_version(tmp_path / "0_0")
    with Task(KEPT, timestamped_window("left", persistent=False), directory=tmp_path / "0_0") as task:
        assert task.state.changelog_offset("left") is None
        task.commit()
    assert on_disk(tmp_path / "0_0") == (["kept"], {"kept"})


def test_a_standby_forgets_stores_too(tmp_path: Path) -> None:
    old_version(tmp_path / "0_0")
    with Task(KEPT, directory=tmp_path / "0_0") as task:
        task.state.restore("kept", batch_of([(b"b", b"2", 1)], 1))
        task.state.commit({})
        assert task["kept"].get("b") == "2"
    assert on_disk(tmp_path / "0_0") == (["kept"], {"kept"})


def test_a_store_that_no_topic_restores_stays(tmp_path: Path) -> None:
    def opened(*specs: StoreSpec) -> TaskStores:
        return TaskStores.open(
            tmp_path / "0_0", specs, cell=ContextCell(), log_of=lambda _: None, resources=RESOURCES
        )

    local = key_value("local", logged=False)
    with closing(opened(KEPT, local)) as state:
        state.stores["local"].put("a", "1")
        state.commit({"kept": 3})
    with closing(opened(KEPT)) as state:
        state.commit({"kept": 4})
    with closing(opened(KEPT, local)) as state:
        assert state.stores["local"].get("a") == "1"


class Killed(BaseException):
    pass


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("after", [[KEPT], [KEPT, LEFT]], ids=["the-new-version", "the-old-version"])
def test_a_deletion_that_was_killed_is_finished(
    steps: int, after: Sequence[StoreSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_version(tmp_path / "0_0")
    left = steps

    def dying(step: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            if not left:
                raise Killed
            left -= 1
            return step(*args, **kwargs)

        return run

    with Task(KEPT, directory=tmp_path / "0_0") as task:
        with monkeypatch.context() as patched:
            for step in ("write", "empty"):
                patched.setattr(RocksDatabase, step, dying(getattr(RocksDatabase, step)))
            with pytest.raises(Killed):
                task.commit()
        assert left == 0
    with Task(*after, directory=tmp_path / "0_0") as task:
        if LEFT in after and steps > 1:
            assert task.state.changelog_offset("left") is None
            assert task["left"].fetch("a", 10) is None
        task.commit()
    stores = [spec.name for spec in after]
    assert on_disk(tmp_path / "0_0") == (stores, set(stores))


def test_offsets_of_content_that_a_power_cut_took_do_not_count(tmp_path: Path) -> None:
    old_version(tmp_path / "0_0")
    with closing(RocksDatabase(tmp_path / "0_0" / "rocksdb", [], RESOURCES)) as database:
        database.empty("left")
    with Task(KEPT, LEFT, directory=tmp_path / "0_0") as task:
        assert task.state.changelog_offset("left") is None
        assert task.state.changelog_offset("kept") == 1
