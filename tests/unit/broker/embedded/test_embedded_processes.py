"""Several processes on one log, killed and stopped at any moment: commits are whole or not there, offsets contiguous,
and nobody works on what another one holds."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from pystreams.broker.embedded import EmbeddedBroker
from pystreams.ids import TopicPartition
from tests.live.support import eventually
from tests.unit.broker.embedded.log_worker import PARTITIONS
from tests.unit.broker.log_helpers import create, freeze, read, values


class Process:
    """A worker process with its output in a file."""

    def __init__(self, directory: Path, role: str, name: str) -> None:
        self.output = directory / f"{name}.out"
        self._log = directory / "log.db"
        self._sink = self.output.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.unit.broker.embedded.log_worker", str(self._log), role, name],
            cwd=Path(__file__).parents[4],
            stdout=self._sink,
        )

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def freeze(self) -> None:
        freeze(self._process.pid, self._log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._sink.close()

    def lines(self) -> list[str]:
        """What it has printed; a line that it was killed in is left out."""
        return [line for line in self.output.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def last(self, word: str) -> list[int]:
        """The numbers of the last line that begins with a word."""
        found = [line.split()[1:] for line in self.lines() if line.startswith(word)]
        return [int(number) for number in found[-1]] if found else []


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker(tmp_path / "log.db")
    create(broker, "t", 4)
    create(broker, "out", 4)
    yield broker
    broker.close()


@pytest.fixture
def start(tmp_path: Path, log: EmbeddedBroker) -> Iterator[Callable[[str, str], Process]]:
    processes = []

    def start(role: str, name: str) -> Process:
        processes.append(Process(tmp_path, role, name))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()


def test_killed_writers_leave_whole_commits_and_contiguous_offsets(log, start):
    promised = {}
    survivor = start("writer", "survivor")
    for round_ in range(4):
        victim = start("writer", f"victim{round_}")
        eventually(lambda victim=victim, round_=round_: len(victim.lines()) > 3 + 7 * round_)
        victim.kill()
        promised[f"victim{round_}"] = victim.last("committed")[0]
    before = len(survivor.lines())
    eventually(lambda: len(survivor.lines()) > before + 3)
    survivor.kill()
    promised["survivor"] = survivor.last("committed")[0]
    # What a writer had printed is there; of what it was killed in either all or nothing, the same in every partition.
    logs = [read(log, partition) for partition in PARTITIONS]
    for name, last in promised.items():
        per_partition = [[row[2] for row in rows if row[1] == name.encode()] for rows in logs]
        assert per_partition == [per_partition[0]] * 4
        commits, rest = divmod(len(per_partition[0]), 50)
        assert rest == 0
        assert commits in (last + 1, last + 2)
        assert per_partition[0] == [
            b"%d.%d" % (number, part) for number in range(commits) for part in range(50)
        ]
    for rows in logs:
        assert [row[0] for row in rows] == list(range(len(rows)))
        # A commit lies in one piece.
        runs = [len(list(run)) for _, run in groupby(rows, key=lambda row: (row[1], row[3]))]
        assert set(runs) == {50}


def test_partitions_of_a_killed_member_are_taken_over_and_every_step_is_done_once(log, start):
    a, b = start("member", "a"), start("member", "b")
    eventually(lambda: a.last("holds") == [0, 2] and b.last("holds") == [1, 3])
    b.kill()
    eventually(lambda: a.last("holds") == [0, 1, 2, 3])
    c = start("member", "c")
    eventually(lambda: a.last("holds") == [0, 2] and c.last("holds") == [1, 3])
    steps = len(values(log, TopicPartition("out", 3)))
    eventually(lambda: len(values(log, TopicPartition("out", 3))) > steps + 10)
    a.kill()
    c.kill()
    check_every_step_once(log)


def test_a_stopped_member_is_replaced_and_its_commits_are_refused_when_it_wakes(log, start):
    a, b = start("member", "a"), start("member", "b")
    eventually(lambda: a.last("holds") == [0, 2] and b.last("holds") == [1, 3])
    b.freeze()
    eventually(lambda: a.last("holds") == [0, 1, 2, 3])
    b.send(signal.SIGCONT)
    eventually(lambda: a.last("holds") == [0, 2] and b.last("holds") == [1, 3])
    a.kill()
    b.kill()
    check_every_step_once(log)


def check_every_step_once(log: EmbeddedBroker) -> None:
    admin = log.admin()
    offsets = admin.group_offsets("g")
    admin.close()
    for partition in PARTITIONS:
        steps = [int(value or b"") for value in values(log, TopicPartition("out", partition.partition))]
        assert steps == list(range(offsets[partition].offset))
        assert steps
