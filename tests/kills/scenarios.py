"""Ways to kill the flights application. Each ends with the results of an undisturbed run, or raises.

A scenario is determined by its seed but for the moment, in the work of a process, that a time falls on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.kills.aim import POINTS, RESTORE
from tests.kills.job import QUICK, Baseline, Job, Worker

#: Two processes and what they share: the log always, the state directory or not.
SHARED, SEPARATE = ("state", "state"), ("state", "state-of-the-other")

_TRIES = 10


class Outcome(NamedTuple):
    """What a scenario did: its name with the seed, kills that hit a living process, and how many were meant."""

    name: str
    kills: int
    meant: int

    def __str__(self) -> str:
        return f"{self.kills:3} of {self.meant:3} kills  {self.name}"


class Chaos:
    """Scenarios in a folder, all against one undisturbed run."""

    def __init__(self, folder: Path, baseline: Baseline) -> None:
        self._folder = folder
        self._baseline = baseline
        self._jobs = 0

    def _job(self, choose: random.Random) -> Job:
        self._jobs += 1
        return Job(self._folder / f"job-{self._jobs}", self._baseline, choose)

    def random_moment(self, seed: int) -> Outcome:
        """Killed at a random moment, the restart killed once more, then run to the end."""
        choose = random.Random(seed)
        for _ in range(_TRIES):
            with self._job(choose).opened(full=True) as job:
                # It may be quicker this time, and the moment come after its end: then another, on a fresh log.
                if not job.run_and_kill(job.time_left_s):
                    continue
                job.run_and_kill(job.time_left_s)
                job.run_to_the_end()
                job.check_end()
                return Outcome(f"random moment, seed {seed}", job.kills, 2)
        raise AssertionError(f"always done before the moment came, in {_TRIES} tries")

    def chain(self, seed: int, moments: int, *, lose_state: bool) -> Outcome:
        """One log that grows, killed at a random moment of each part's work, each restart killed once more; with the
        state directory deleted in between, or not."""
        choose, baseline = random.Random(seed), self._baseline
        within_s = baseline.start_s + 2 * baseline.work_s / moments
        with self._job(choose).opened(full=False) as job:
            for moment in range(1, moments + 1):
                job.feed(moment / moments)
                for _ in range(2):
                    job.run_and_kill(within_s)
                    if lose_state:
                        job.lose_state()
            job.run_to_the_end()
            job.check_end()
            what = "chain without state" if lose_state else "chain"
            return Outcome(f"{what}, seed {seed}", job.kills, 2 * moments)

    def aimed(self, point: str, seed: int, passings: int) -> Outcome:
        """Killed at one of a point's first ``passings``, the restart at an early one once more."""
        choose = random.Random(f"{point} {seed}")
        with self._job(choose).opened(full=True) as job:
            if point in RESTORE:
                self._leave_something_to_restore(job)
            job.run_to_aim(point, choose.randint(1, passings))
            if point in RESTORE and choose.random() < 0.5:
                job.lose_state()
            job.run_to_aim(point, choose.randint(1, POINTS[point].early))
            job.run_to_the_end()
            job.check_end()
            return Outcome(f"aimed at {point}, seed {seed}", job.kills, 2)

    def aimed_chain(self, points: Iterable[str], seed: int) -> Outcome:
        """One log that grows, killed at an early passing of one point after the other: each process is the restart
        after the kill before it."""
        choose = random.Random(seed)
        order = list(points)
        choose.shuffle(order)
        with self._job(choose).opened(full=False) as job:
            for number, point in enumerate(order, 1):
                job.feed(number / len(order))
                if point in RESTORE:
                    job.lose_state()
                job.run_to_aim(point, choose.randint(1, POINTS[point].early))
            job.run_to_the_end()
            job.check_end()
            return Outcome(f"aimed at one point after the other, seed {seed}", job.kills, len(order))

    def aimed_beside(self, point: str, seed: int, states: tuple[str, str]) -> Outcome:
        """Two processes, of which one is killed at a point, and its restart once more."""
        choose = random.Random(f"beside {point} {seed}")
        with self._job(choose).opened(full=True) as job:
            other = job.start(state=states[0], settings=QUICK)
            job.wait_for_a_commit()
            for _ in range(2):
                job.run_to_aim(
                    point, choose.randint(1, POINTS[point].early), state=states[1], others_work=True
                )
            job.run_to_the_end(state=states[0])
            other.stop()
            job.run_to_the_end(state=states[0])
            job.check_end(state=states[0])
            return Outcome(f"aimed at {point} beside another process, seed {seed}", job.kills, 2)

    def passings(self) -> dict[str, int]:
        """How often an undisturbed run passes each point; for those of restoring, one that restores."""
        with self._job(random.Random(0)).opened(full=True) as job:
            fresh = self._counted(job)
            job.check_end()
        with self._job(random.Random(0)).opened(full=True) as job:
            self._leave_something_to_restore(job)
            restoring = self._counted(job)
            job.check_end()
        return fresh | {point: restoring[point] for point in RESTORE if point in restoring}

    def two_processes(self, seed: int, moments: int, states: tuple[str, str]) -> Outcome:
        """One log that grows under two processes; at each moment one of them is killed, and its restart once more."""
        choose, baseline = random.Random(seed), self._baseline
        within_s = baseline.start_s + baseline.work_s / moments
        with self._job(choose).opened(full=False) as job:
            job.feed(1 / (moments + 1))
            workers = [job.start(state=state) for state in states]
            for moment in range(2, moments + 2):
                job.feed(moment / (moments + 1))
                victim = choose.randrange(2)
                for _ in range(2):
                    self._killed(workers[victim], choose.uniform(0, within_s))
                    job.kills += 1
                    job.check(others_work=True)
                    workers[victim] = job.start(state=states[victim])
            job.run_to_the_end(state=states[0])
            for worker in workers:
                worker.stop()
            # Each directory holds what its process had last: one process takes all of it on.
            job.run_to_the_end(state=states[0])
            job.check_end(state=states[0])
            what = "one state directory" if states[0] == states[1] else "a state directory each"
            return Outcome(f"two processes with {what}, seed {seed}", job.kills, 2 * moments)

    @staticmethod
    def _leave_something_to_restore(job: Job) -> None:
        """A process that was killed after some commits, and whose state is gone. Counts as no kill."""
        assert job.run_to_aim("log-committed", 3)
        job.kills = 0
        job.lose_state()

    def _counted(self, job: Job) -> dict[str, int]:
        counts = job.folder / "counts.json"
        worker = job.start("--until-caught-up", aim=f"count:{counts}", settings=QUICK)
        assert worker.end() == 0, worker.printed()
        found: dict[str, int] = json.loads(counts.read_text(encoding="utf-8"))
        return found

    @staticmethod
    def _killed(worker: Worker, after_s: float) -> None:
        assert worker.kill_after(after_s), f"ended by itself:\n{worker.printed()}"
