"""A process killed in the middle of a commit leaves a store that the tail of the changelog makes right."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from pystreams.errors import StateError
from tests.unit.state.state_kit import Task, batch_of, key_value, read_all, timestamped, timestamped_window

KEYS = 2500
#: Commits of 2,500 entries per store; the process dies before the n-th slice of the last one.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from tests.unit.state.test_state_survives_kill import ROUNDS, SPECS, write_round
from tests.unit.state.state_kit import Task

task = Task(*SPECS, directory=Path(sys.argv[1]))
die_at = int(sys.argv[2])
inner, written = task.state._database._db, 0

class Dying:
    def write(self, batch):
        global written
        if task.dying and written == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        written += task.dying
        inner.write(batch)
    def __getattr__(self, name):
        return getattr(inner, name)

task.state._database._db = Dying()
task.dying = False
for number in range(ROUNDS):
    write_round(task, number)
    task.dying = number == ROUNDS - 1
    task.commit(round=number)
print("survived")
task.state._database._db = inner
task.state.close()
"""
ROUNDS = 3
SPECS = (timestamped("kv", cached=True), timestamped_window("w", retention_ms=200_000))


def write_round(task: Task, number: int) -> None:
    """The same writes for the same number, whatever else has happened."""
    generator = random.Random(number)
    for index in range(KEYS):
        key = f"k{generator.randrange(KEYS)}".encode()
        value = None if generator.random() < 0.1 else index
        task["kv"].write(key, value, number)
        task["w"].write(key, generator.randrange(3) * 60_000 + number * 60_000, value, number)


def written(rounds: int) -> Task:
    task = Task(*SPECS)
    for number in range(rounds):
        write_round(task, number)
        task.commit()
    return task


@pytest.mark.parametrize("die_at", [0, 1, 2, 3, 4, 5])
def test_a_kill_between_two_slices_is_healed_by_the_tail_of_the_changelog(
    die_at: int, tmp_path: Path
) -> None:
    directory = tmp_path / "0_0"
    command = [sys.executable, "-c", PROGRAM, str(directory), str(die_at)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr) in {(-9, ""), (0, "")}
    survived = run.stdout == "survived\n"
    assert survived == (run.returncode == 0)
    with written(ROUNDS) as expected, Task(*SPECS, directory=directory) as task:
        ends = expected.end_offsets()
        before = written(ROUNDS - 1)
        starts = before.end_offsets()
        before.state.close()
        assert task.state.metadata("round") == (ROUNDS - 1 if survived else ROUNDS - 2)
        for store, end in ends.items():
            offset = task.state.changelog_offset(store)
            assert offset == (end if survived else starts[store])
            task.state.restore(store, batch_of(expected.records(store)[offset:], offset))
            assert read_all(task[store].all()) == read_all(expected[store].all())


def test_a_kill_while_restoring_loses_nothing_that_was_restored(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from pathlib import Path
from tests.unit.state.state_kit import Task, batch_of, key_value
task = Task(key_value(), directory=Path(sys.argv[1]))
for first in range(0, 3000, 500):
    task.state.restore("store", batch_of([(b"%d" % n, b"v", 0) for n in range(first, first + 500)], first))
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "0_0")]
    assert subprocess.run(command, timeout=60, check=False).returncode == -9
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        assert task.state.changelog_offset("store") == 3000
        assert len(read_all(task.store.all())) == 3000


def test_a_database_that_refuses_a_write_is_a_clear_error(tmp_path: Path) -> None:
    class Full:
        def __init__(self, inner: object) -> None:
            self._inner = inner

        def write(self, batch: object) -> None:
            raise Exception("IO error: No space left on device: While appending to file: 000004.log")

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    with Task(key_value(), directory=tmp_path / "0_0") as task:
        database = task.state._database
        assert database is not None
        task.store.put("a", "1")
        database._db = Full(database._db)
        with pytest.raises(StateError, match="disk is full") as caught:
            task.commit()
        assert "state_dir" in caught.value.hint
