"""Ways to kill the flights application on Kafka. Each ends with the audit of every window, or raises.

A scenario is determined by its seed but for the moment, in the work of a process, that a time falls on.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.kafka.kills.job import DEADLINE_S, QUICK, Flights, Job, Result, Worker
from tests.kafka.kills.worker import POINTS
from tests.kills.aim import RESTORE
from tests.live.support import eventually

WORKERS = 3

#: Every so many kills takes all processes at once.
_ALL_AT_ONCE = 6


class Outcome(NamedTuple):
    """What a scenario did and how many kills were meant."""

    name: str
    meant: int
    result: Result

    def __str__(self) -> str:
        return f"{self.name}: {self.result} ({self.meant} kills were meant)"


class Chaos:
    """Scenarios on one cluster, one after the other."""

    def __init__(self, bootstrap_servers: str, folder: Path, flights: Flights) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._folder = folder
        self._flights = flights
        self._jobs = 0

    def _job(self, choose: random.Random) -> Job:
        self._jobs += 1
        return Job(self._bootstrap_servers, self._folder / f"job-{self._jobs}", self._flights, choose)

    def undisturbed(self) -> Outcome:
        """Nobody is killed, two processes one after the other: every count equals the truth."""
        with self._job(random.Random(0)).opened() as job:
            job.feed(0.5)
            for _ in range(2):
                job.run_to_the_end(settings=())
            result = job.check()
            assert (result.again, result.doubled) == (0, 0), result
            return Outcome("undisturbed", 0, result)

    def alone(self, seed: int, moments: int) -> Outcome:
        """One process, killed at a random moment of its work again and again while flights come in; its state directory
        is deleted after about half of the kills."""
        choose = random.Random(f"alone {seed}")
        with self._job(choose).opened() as job:
            for moment in range(moments):
                share, upto = (moment + 0.3) / (moments + 1), (moment + 1) / (moments + 1)
                worker = job.start()
                job.feed(share)
                eventually(worker.works, "a process at work", DEADLINE_S)
                begun = share + (upto - share) * choose.uniform(0, 0.8)
                job.feed_meanwhile(share, begun)
                job.kill_at_work(worker, begun, upto)
                job.feed(upto)
                if choose.random() < 0.5:
                    job.lose_state()
            job.run_to_the_end()
            return Outcome(f"alone, seed {seed}", moments, job.check())

    def one_of_three(self, seed: int, moments: int) -> Outcome:
        """Three processes; one of them is killed at a random moment again and again, now and then all of them. Two
        share a state directory, and what a killed process leaves is deleted now and then."""
        choose = random.Random(f"one of three {seed}")
        states = ["state", "state", "state-of-the-third"]
        kills = 0
        with self._job(choose).opened() as job:
            workers = [job.start(state=state) for state in states]
            for moment in range(moments):
                share, upto = (moment + 0.3) / (moments + 1), (moment + 1) / (moments + 1)
                all_at_once = moment % _ALL_AT_ONCE == _ALL_AT_ONCE - 1
                victims = [0, 1, 2] if all_at_once else [choose.randrange(WORKERS)]
                job.feed(share)
                eventually(workers[victims[0]].has_tasks, "a process with tasks", DEADLINE_S)
                self._feed_and_kill(job, share, upto, [workers[victim] for victim in victims])
                kills += len(victims)
                if all_at_once or (2 in victims and choose.random() < 0.5):
                    job.lose_state(states[2])
                for victim in victims:
                    workers[victim] = job.start(state=states[victim])
            for worker in workers:
                eventually(worker.has_tasks, "a process with tasks", DEADLINE_S)
            job.feed(1)
            for worker in workers:
                worker.stop()
            job.run_to_the_end()
            return Outcome(f"one of three, seed {seed}", kills, job.check())

    def aimed(self, points: Iterable[str], seed: int) -> Outcome:
        """Killed at one step after the other while flights come in, each process the restart after the kill before
        it: in commits, restores (of everything) and rebalances. The first one finds results to restore.

        Some passing of each step is aimed at. How many there are before all is processed is a matter of time; that
        there is a first one is not: a process that ends unharmed is followed by one that is killed at that."""
        choose = random.Random(f"aimed {seed}")
        order = list(points)
        choose.shuffle(order)
        with self._job(choose).opened() as job:
            job.feed(1 / (len(order) + 2))
            job.catch_up()
            for number, point in enumerate(order, 2):
                for part, call in enumerate(dict.fromkeys((choose.randint(1, POINTS[point].early), 1))):
                    job.feed((number + part / 2) / (len(order) + 2))
                    if point in RESTORE:
                        job.lose_state()
                    if job.run_to_aim(point, call):
                        break
                else:
                    raise AssertionError(f"{point} was never passed")
            job.run_to_the_end()
            return Outcome(f"aimed at one point after the other, seed {seed}", len(order), job.check())

    def aimed_beside(self, points: Iterable[str], seed: int) -> Outcome:
        """Two processes work on; a third one joins them and is killed at a step of the rebalance."""
        choose = random.Random(f"beside {seed}")
        order = list(points)
        with self._job(choose).opened() as job:
            workers = [job.start(state=f"state-{number}", settings=QUICK) for number in range(2)]
            job.feed(1 / (len(order) + 2))
            for worker in workers:
                eventually(worker.has_tasks, "a process with tasks", DEADLINE_S)
            for number, point in enumerate(order, 1):
                job.feed((number + 1) / (len(order) + 2))
                job.run_to_aim(point, choose.randint(1, POINTS[point].early), state="state-2")
            for worker in workers:
                worker.stop()
            job.run_to_the_end(state="state-0")
            return Outcome(f"aimed beside two others, seed {seed}", len(order), job.check())

    @staticmethod
    def _feed_and_kill(job: Job, share: float, upto: float, victims: list[Worker]) -> None:
        """Flights come in; at some moment of that the victims are killed, then the rest comes in."""
        moment = share + (upto - share) * job.choose.random()
        job.feed_meanwhile(share, moment)
        for victim in victims:
            job.kill(victim)
        job.feed(upto)
