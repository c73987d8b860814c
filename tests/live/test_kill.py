"""``kill -9`` at any moment, of one process or of one of two, and the results are those of an undisturbed run."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.live.support import Log, eventually

pytestmark = pytest.mark.slow

ROUNDS = 5
RECORDS_PER_ROUND = 20_000
ROOT = Path(__file__).parents[2]


def start(path: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.live.worker", str(path), *options], cwd=ROOT)


class Job:
    """Input that is written bit by bit, and what must come out of all of it."""

    def __init__(self, log: Log, seed: int) -> None:
        self.log = log
        self.choose = random.Random(seed)
        self.sums: Counter[str] = Counter()
        self._committed: object = None
        log.create("in", "sums-out", "totals-out", partitions=4)

    def feed(self) -> None:
        """One round's input."""
        self._committed = self.log.committed("killed")
        choose = self.choose
        records = [(f"k{choose.randrange(500)}", choose.randrange(10), i) for i in range(RECORDS_PER_ROUND)]
        self.log.write("in", records)
        for key, value, _ in records:
            self.sums[key] += value

    def wait_for_a_random_moment_of_work(self) -> None:
        """Until somewhere between the first commit since the last round's input and a good deal later."""
        eventually(lambda: self.log.committed("killed") != self._committed, "a commit")
        # A random moment is what this test is about.
        time.sleep(self.choose.uniform(0, 0.3))

    def finish_and_check(self) -> None:
        assert start(self.log.path, "--until-caught-up").wait(120) == 0
        totals: Counter[str] = Counter()
        for key, total in self.sums.items():
            totals[key[-1]] += total
        assert self.log.table("sums-out") == dict(self.sums)
        assert self.log.table("totals-out") == dict(totals)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def test_one_process_killed_while_it_works(log: Log) -> None:
    job = Job(log, seed=1)
    for _ in range(ROUNDS):
        job.feed()
        process = start(log.path)
        job.wait_for_a_random_moment_of_work()
        kill(process)
    job.finish_and_check()


def test_one_process_killed_while_it_restores(log: Log) -> None:
    job = Job(log, seed=2)
    job.feed()
    process = start(log.path)
    job.wait_for_a_random_moment_of_work()
    kill(process)
    for _ in range(ROUNDS):
        if job.choose.random() < 0.5:
            # Where the last one was killed early there is none.
            shutil.rmtree(log.path / "state", ignore_errors=True)
        process = start(log.path)
        eventually(lambda: log.admin.group_members("killed"), "it has joined")
        # A random moment of the time after that is what this test is about.
        time.sleep(job.choose.uniform(0, 0.3))
        kill(process)
    job.finish_and_check()


def test_two_processes_one_of_them_killed(log: Log) -> None:
    job = Job(log, seed=3)
    processes = [start(log.path), start(log.path)]
    try:
        for _ in range(ROUNDS):
            job.feed()
            job.wait_for_a_random_moment_of_work()
            victim = job.choose.randrange(2)
            kill(processes[victim])
            processes[victim] = start(log.path)
        job.finish_and_check()
    finally:
        for process in processes:
            process.terminate()
            process.wait(60)
