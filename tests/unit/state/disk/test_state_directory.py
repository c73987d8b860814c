"""The state directory: locks, format version, process id, damage, cleaning."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from pystreams.clock import ManualClock, SystemClock
from pystreams.errors import StateCorruptedError, StateError, StateLockedError
from pystreams.ids import TaskId
from pystreams.state.disk.directory import (
    FORMAT_VERSION,
    OFFSETS_FILE,
    DirectoryLock,
    StateDirectory,
    read_json,
    write_json,
)
from tests.unit.state.state_kit import Task, key_value

TASK = TaskId(0, 1)


def fill(directory: Path) -> None:
    with Task(key_value(), directory=directory) as task:
        for number in range(100):
            task.store.put(str(number), "v")
        task.commit()


def test_a_second_opening_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_1") as task:
        with pytest.raises(StateLockedError, match="0_1 is in use"):
            Task(key_value(), directory=tmp_path / "0_1")
        task.store.put("a", "1")
    Task(key_value(), directory=tmp_path / "0_1").state.close()


def test_a_second_process_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.unit.state.state_kit import Task, key_value\n"
        "task = Task(key_value(), directory=Path(sys.argv[1]))\n"
        "print('open', flush=True); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "0_1")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StateLockedError):
            Task(key_value(), directory=tmp_path / "0_1")
        holder.kill()
        holder.wait(10)
    Task(key_value(), directory=tmp_path / "0_1").state.close()


def test_an_opening_that_fails_releases_the_lock(tmp_path: Path) -> None:
    fill(tmp_path / "0_1")
    (tmp_path / "0_1" / "rocksdb" / "CURRENT").write_text("nothing")
    with pytest.raises(StateCorruptedError):
        Task(key_value(), directory=tmp_path / "0_1")
    DirectoryLock(tmp_path / "0_1").release()


def test_damaged_files_ask_for_a_restore(tmp_path: Path) -> None:
    fill(tmp_path / "0_1")
    for manifest in (tmp_path / "0_1" / "rocksdb").glob("MANIFEST*"):
        manifest.write_bytes(b"\xde\xad" * 100)
    with pytest.raises(StateCorruptedError, match="damaged") as caught:
        Task(key_value(), directory=tmp_path / "0_1")
    assert caught.value.action == "wipe"
    StateDirectory(tmp_path.parent, tmp_path.name).wipe(TASK)
    with Task(key_value(), directory=tmp_path / "0_1") as task:
        assert task.state.changelog_offset("store") is None


def test_an_interrupted_wipe_is_not_taken_for_a_whole_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(rocksdb: Path) -> None:
        for log in rocksdb.glob("*.log"):
            log.unlink()
        raise KeyboardInterrupt

    fill(tmp_path / "0_1")
    monkeypatch.setattr(shutil, "rmtree", interrupted)
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(sorted(path.glob("*"), reverse=True)))
    with pytest.raises(KeyboardInterrupt):
        StateDirectory(tmp_path.parent, tmp_path.name).wipe(TASK)
    monkeypatch.undo()
    with pytest.raises(StateCorruptedError, match="with their format version"):
        Task(key_value(), directory=tmp_path / "0_1")
    StateDirectory(tmp_path.parent, tmp_path.name).wipe(TASK)
    with Task(key_value(), directory=tmp_path / "0_1") as task:
        assert task.state.changelog_offset("store") is None


def test_an_interrupted_change_of_a_small_file_leaves_the_old_content_and_no_heap_of_drafts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(draft: Path, target: Path) -> None:
        raise KeyboardInterrupt

    write_json(tmp_path / "file", {"format": FORMAT_VERSION, "old": 1})
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                write_json(tmp_path / "file", {"format": FORMAT_VERSION, "new": 1})
    assert read_json(tmp_path / "file") == {"format": FORMAT_VERSION, "old": 1}
    assert len(list(tmp_path.iterdir())) == 2
    write_json(tmp_path / "file", {"format": FORMAT_VERSION, "new": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_directory_that_is_taken_again_while_it_is_deleted_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "0_1")
    rmdir, others = Path.rmdir, []

    def taken_before(path: Path) -> None:
        others.append(DirectoryLock(path))
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", taken_before)
    StateDirectory(tmp_path.parent, tmp_path.name).wipe(TASK)
    with pytest.raises(StateLockedError):
        DirectoryLock(tmp_path / "0_1")
    others[0].release()
    with Task(key_value(), directory=tmp_path / "0_1") as task:
        assert task.state.changelog_offset("store") is None


def test_missing_table_files_ask_for_a_restore(tmp_path: Path) -> None:
    fill(tmp_path / "0_1")
    Task(key_value(), directory=tmp_path / "0_1").state.close()
    tables = list((tmp_path / "0_1" / "rocksdb").glob("*.sst"))
    assert tables
    for table in tables:
        table.unlink()
    with pytest.raises(StateCorruptedError):
        Task(key_value(), directory=tmp_path / "0_1")


@pytest.mark.parametrize("content", ["{", "[1]", ""])
def test_a_damaged_offsets_file_asks_for_a_restore(content: str, tmp_path: Path) -> None:
    fill(tmp_path / "0_1")
    (tmp_path / "0_1" / OFFSETS_FILE).write_text(content)
    with pytest.raises(StateCorruptedError, match="damaged"):
        Task(key_value(), directory=tmp_path / "0_1")


def test_stores_without_the_file_that_names_their_format_ask_for_a_restore(tmp_path: Path) -> None:
    fill(tmp_path / "0_1")
    (tmp_path / "0_1" / OFFSETS_FILE).unlink()
    with pytest.raises(StateCorruptedError, match="format"):
        Task(key_value(), directory=tmp_path / "0_1")


def test_a_directory_of_another_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    fill(tmp_path / "0_1")
    path = tmp_path / "0_1" / OFFSETS_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(StateError, match="format 99") as caught:
        Task(key_value(), directory=tmp_path / "0_1")
    assert caught.value.action == "fail"
    assert "another version of pystreams wrote it" in str(caught.value)
    assert (tmp_path / "0_1" / "rocksdb" / "CURRENT").exists()


def test_a_directory_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with pytest.raises(StateError, match="cannot be used") as caught:
        Task(key_value(), directory=blocked / "app" / "0_1")
    assert str(blocked) in caught.value.where
    assert "state_dir" in caught.value.hint
    with pytest.raises(StateError, match="cannot be used"):
        _ = StateDirectory(blocked, "app").process_id


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_a_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StateError, match="cannot be used"):
            Task(key_value(), directory=tmp_path / "app" / "0_1")
    finally:
        tmp_path.chmod(0o700)


def test_all_processes_of_a_directory_have_the_same_id(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pystreams.state.disk.directory import StateDirectory\n"
        "print(StateDirectory(Path(sys.argv[1]), 'app').process_id)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    ids = {process.communicate(timeout=30)[0].strip() for process in running}
    assert ids == {StateDirectory(tmp_path, "app").process_id}
    assert uuid.UUID(ids.pop())
    assert [path.name for path in (tmp_path / "app").iterdir()] == ["process.json"]
    assert StateDirectory(tmp_path, "other").process_id != StateDirectory(tmp_path, "app").process_id


def test_a_damaged_process_id_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "process.json").write_text('{"format": 1, "process_id": "x"}')
    with pytest.raises(StateError, match="process id"):
        _ = StateDirectory(tmp_path, "app").process_id


def test_local_tasks_are_listed_with_their_offsets_while_they_are_open(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    assert directory.local_tasks() == {}
    fill(directory.task_directory(TASK))
    (tmp_path / "app" / "not a task").mkdir()
    (tmp_path / "app" / "3_3").mkdir()
    assert directory.local_tasks() == {TASK: {"store": 100}}
    with Task(key_value(), directory=directory.task_directory(TASK)) as task:
        task.state.commit({"store": 20_000}, {})
        assert directory.local_tasks() == {TASK: {"store": 20_000}}
        task.state.commit({"store": 20_001}, {})
    assert directory.local_tasks() == {TASK: {"store": 20_001}}


def test_cleaning_deletes_old_tasks_that_nobody_has_open(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    open_id, idle_id = TaskId(0, 0), TaskId(0, 1)
    for task_id in (open_id, idle_id):
        fill(directory.task_directory(task_id))
    now_ms = SystemClock().now_ms()
    with Task(key_value(), directory=directory.task_directory(open_id)):
        assert directory.clean_up(600_000, ManualClock(now_ms)) == []
        assert directory.clean_up(600_000, ManualClock(now_ms + 700_000)) == [idle_id]
        assert not directory.task_directory(idle_id).exists()
        assert directory.task_directory(open_id).exists()


def test_a_lock_that_was_deleted_under_us_is_taken_anew(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "0_1")
    (tmp_path / "0_1" / "file").write_text("x")
    lock.delete()
    assert not (tmp_path / "0_1").exists()
    again = DirectoryLock(tmp_path / "0_1")
    with pytest.raises(StateLockedError):
        DirectoryLock(tmp_path / "0_1")
    again.release()
