"""A state directory that is damaged, in use, newer, or not ours to write to."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams.app import App
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import RocksResources
from tests.live.bad_input.kit import failure_of
from tests.live.support import Log, caught_up, eventually, run_to_the_end

ROOT = Path(__file__).resolve().parents[3]


def last(log: Log, **settings: Any) -> App:
    """Keeps the last value of every key; every value is read again, from RocksDB."""
    app = log.app("last", statestore_cache_max_bytes=0, **settings)
    values = app.stream("in", key=str, value=str).group_by_key().reduce(lambda one, two: two, name="last")
    values.to_stream().to("out")
    return app


@pytest.fixture
def written(log: Log) -> dict[str, str]:
    """What the store holds: enough for files of their own, in two tasks."""
    log.create("in", "out", partitions=2)
    rows = {f"key-{i}": f"{i}-{'x' * 200}" for i in range(2_000)}
    log.write("in", [(key, value, 1) for key, value in rows.items()], value=str)
    run_to_the_end(log, last(log))
    for task in ("0_0", "0_1"):
        # A run that ends may leave the last changes to RocksDB's log; this writes them to files.
        RocksDatabase(task_directory(log, task) / "rocksdb", ["last"], RocksResources()).close()
    return rows


def task_directory(log: Log, task: str) -> Path:
    return log.path / "state" / "last" / task


class Restored:
    """Records restored, by task's partition."""

    def __init__(self) -> None:
        self.records: dict[int, int] = {}

    def on_restore_start(self, partition: Any, store: str, start_offset: int, end_offset: int) -> None:
        """Only the end counts."""

    def on_batch_restored(self, partition: Any, store: str, next_offset: int, records: int) -> None:
        """Only the end counts."""

    def on_restore_end(self, partition: Any, store: str, records: int) -> None:
        self.records[partition.partition] = records


def touch_every_key(log: Log, rows: dict[str, str]) -> Restored:
    """Update every row in a new run, which reads all of them; what had to be restored for that."""
    log.write("in", [(key, "new", 2) for key in rows], value=str)
    restored = Restored()
    streams = log.start(last(log), prepare=lambda s: s.set_restore_listener(restored))
    caught_up(streams)
    assert {row[0]: row[1].value for row in streams.store("last").all()} == dict.fromkeys(rows, "new")
    out = log.read("out", value=str)
    assert len(out) == 2 * len(rows), "every record once"
    return restored


def garble(path: Path, start: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(os.urandom(length))


@pytest.mark.parametrize(
    "damage", ["tables", "blocks", "a block of the store", "manifest", "current", "offsets"]
)
def test_damaged_files_are_deleted_and_restored_that_task_alone(
    log: Log, written: dict[str, str], damage: str
) -> None:
    directory = task_directory(log, "0_1")
    rocksdb = directory / "rocksdb"
    tables = sorted(rocksdb.glob("*.sst"))
    assert tables
    if damage == "tables":
        for table in tables:
            garble(table, 0, table.stat().st_size)
    elif damage == "blocks":
        for table in tables:
            garble(table, 10, 100)
    elif damage == "a block of the store":
        # Nobody sees it before the block is read.
        largest = max(tables, key=lambda table: table.stat().st_size)
        garble(largest, largest.stat().st_size // 2, 100)
    elif damage == "manifest":
        for manifest in rocksdb.glob("MANIFEST-*"):
            garble(manifest, 0, manifest.stat().st_size)
    elif damage == "current":
        (rocksdb / "CURRENT").write_bytes(b"nonsense")
    else:
        (directory / "offsets.json").write_text("{half a fi", encoding="utf-8")
    restored = touch_every_key(log, written)
    assert restored.records[0] == 0, "the other task kept its state"
    assert restored.records[1] > 0


def test_a_directory_in_javas_layout_is_replaced_by_what_the_changelog_has(
    log: Log, written: dict[str, str]
) -> None:
    """A RocksDB for each store, and a file that tells how far they have got."""
    directory = task_directory(log, "0_1")
    (directory / "rocksdb").rename(directory / "last")
    (directory / "rocksdb").mkdir()
    (directory / "last").rename(directory / "rocksdb" / "last")
    (directory / "offsets.json").unlink()
    (directory / ".checkpoint").write_text("0\n1\nlast-last-changelog 1 5\n", encoding="utf-8")
    restored = touch_every_key(log, written)
    assert restored.records[0] == 0, "the other task kept its state"
    assert restored.records[1] == sum(1 for _ in log.lines(TopicPartition("in", 1))) / 2
    assert {entry.name for entry in directory.iterdir()} == {".lock", "offsets.json", "rocksdb"}


def test_a_directory_of_a_newer_version_is_refused_and_left_alone(log: Log, written: dict[str, str]) -> None:
    offsets = task_directory(log, "0_1") / "offsets.json"
    newer = {**json.loads(offsets.read_text(encoding="utf-8")), "format": 99}
    offsets.write_text(json.dumps(newer), encoding="utf-8")
    failure = failure_of(log, last(log))
    assert isinstance(failure, StateError)
    assert "format 99" in failure.what
    assert str(offsets) in failure.where
    assert "another version of pystreams" in failure.why
    assert str(offsets.parent) in failure.hint
    assert json.loads(offsets.read_text(encoding="utf-8")) == newer
    shutil.rmtree(offsets.parent)
    assert touch_every_key(log, written).records[1] > 0


def test_a_process_file_of_a_newer_version_is_refused_at_start(log: Log, written: dict[str, str]) -> None:
    path = log.path / "state" / "last" / "process.json"
    path.write_text('{"format": 99, "process_id": "x"}', encoding="utf-8")
    with pytest.raises(StateError, match="format 99"):
        log.start(last(log))


@pytest.mark.parametrize("content", ["{half a fi", "[]", '{"format": 1}', '{"format": 1, "process_id": 5}'])
def test_a_damaged_process_file_says_what_deleting_it_costs(
    log: Log, written: dict[str, str], content: str
) -> None:
    path = log.path / "state" / "last" / "process.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StateError) as caught:
        log.start(last(log))
    assert str(path) in caught.value.where
    assert "delete" in caught.value.hint
    path.unlink()
    touch_every_key(log, written)


HOLDER = """
import sys
from pathlib import Path
from pystreams.state.disk.directory import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
lock.release()
"""


@pytest.fixture
def holder(log: Log, written: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A living process that holds the directory of task 0_1; closing its standard input lets it go."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(task_directory(log, "0_1"))],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_a_directory_that_a_living_process_holds_is_waited_for_and_the_wait_is_reported(
    log: Log, written: dict[str, str], holder: Any, caplog: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("pystreams.runtime.tasks.abstract_task.LOCK_WARNING_MS", 50)
    caplog.set_level(logging.WARNING)
    log.write("in", [(key, "new", 2) for key in written], value=str)
    streams = log.start(last(log))
    eventually(lambda: "0_1" in caplog.text, "a warning")
    assert "is in use" in caplog.text
    assert "another thread or process" in caplog.text
    assert str(task_directory(log, "0_1")) in caplog.text
    holder.stdin.close()
    caught_up(streams)
    assert log.table("out", value=str) == dict.fromkeys(written, "new")


PROGRAM = """
from pystreams import App
app = App("counts")
app.stream("lines", value=str).group_by(lambda line: line).count(name="counts").to_stream().to("counted")
"""


#: root may write everywhere, unless it gives that power (CAP_DAC_OVERRIDE) up.
LIKE_ANYBODY = """
import ctypes, os, sys
if os.geteuid() == 0 and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) != 0:
    sys.exit("the power to write everywhere cannot be given up")
os.execv(sys.executable, [sys.executable, "-m", "pystreams", *sys.argv[1:]])
"""


def like_anybody(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user to whom permissions apply."""
    return subprocess.run(
        [sys.executable, "-c", LIKE_ANYBODY, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def counting(pystreams: Any, folder: Path) -> Iterator[Path]:
    """A folder with a program and its log; whatever a test makes read-only in it can be deleted afterwards."""
    (folder / "counting.py").write_text(PROGRAM, encoding="utf-8")
    where = ("--embedded-log", "log.db")
    assert pystreams("topics", "create", "lines", "counted", *where).code == 0
    assert pystreams("produce", "lines", *where, stdin="a\nb\na\n").code == 0
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


RUN = ("run", "counting", "--until-caught-up", "--embedded-log", "log.db")


def test_a_state_directory_that_the_user_may_not_write_to_is_named_with_the_setting(counting: Path) -> None:
    (counting / "state").mkdir(mode=0o555)
    refused = like_anybody(counting, *RUN, "--state-dir", "state")
    assert refused.returncode == 1, refused.stderr
    assert "Traceback" not in refused.stderr
    assert "Permission denied" in refused.stderr
    assert "state/counts" in refused.stderr
    assert "set state_dir to a directory that this user may write to" in refused.stderr
    mended = like_anybody(counting, *RUN, "--state-dir", "mine")
    assert mended.returncode == 0, mended.stderr
    consumed = like_anybody(counting, "consume", "counted", "--embedded-log", "log.db")
    rows = [line.split("\t")[1:] for line in consumed.stdout.splitlines()]
    assert sorted(rows)[-2:] == [["a", "2"], ["b", "1"]]


def test_a_task_directory_that_the_user_may_not_write_to_is_named(counting: Path) -> None:
    (counting / "state" / "counts" / "1_0").mkdir(parents=True)
    (counting / "state" / "counts" / "1_0").chmod(0o555)
    refused = like_anybody(counting, *RUN, "--state-dir", "state")
    assert refused.returncode == 1, refused.stderr
    assert "Traceback" not in refused.stderr
    assert "state/counts/1_0" in refused.stderr
    assert "Permission denied" in refused.stderr


@pytest.mark.parametrize("command", [RUN, ("topics", "list", "--embedded-log", "log.db")])
def test_a_log_that_the_user_may_not_write_to_is_named(counting: Path, command: tuple[str, ...]) -> None:
    for path in counting.rglob("log.db*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    counting.chmod(0o555)
    refused = like_anybody(counting, *command)
    assert refused.returncode == 2, refused.stderr
    assert "Traceback" not in refused.stderr
    assert "log.db" in refused.stderr
    assert "next:" in refused.stderr


def test_a_log_in_a_folder_that_the_user_may_not_write_to_is_named(counting: Path) -> None:
    (counting / "closed").mkdir(mode=0o555)
    refused = like_anybody(counting, "topics", "create", "t", "--embedded-log", "closed/log.db")
    assert refused.returncode == 2, refused.stderr
    assert "Traceback" not in refused.stderr
    assert "closed/log.db" in refused.stderr
    assert "Permission denied" in refused.stderr
    assert "embedded_log" in refused.stderr
