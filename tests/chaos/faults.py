"""What goes wrong. A fault is a generator: it does harm, yields how many seconds the harm lasts, and heals.

Each returns what it has done, in words, once for each time that it is seen to have happened; nothing if there was
nothing to harm.
"""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path

from pystreams.errors import StateLockedError
from pystreams.state.disk.directory import DirectoryLock
from tests.chaos.places import Broker, Place
from tests.chaos.progress import LOOK_S, Progress
from tests.chaos.workers import SESSION_TIMEOUT_MS, WORKERS, Worker, Workers

SESSION_S = SESSION_TIMEOUT_MS / 1000
SEEN_TIMEOUT_S = 120.0

#: In so many tasks of a process a file is damaged.
_DAMAGED_TASKS = 3

Fault = Generator[float, None, list[str]]
Kind = Callable[[], Fault]


class Faults:
    """The kinds of faults, on one place."""

    def __init__(self, place: Place, workers: Workers, progress: Progress, choose: random.Random) -> None:
        self._place = place
        self._workers = workers
        self._progress = progress
        self._choose = choose

    def kinds(self) -> list[Kind]:
        of_workers = [
            self.kill,
            self.kill_at_a_point,
            self.freeze_shortly,
            self.freeze_for_long,
            self.storm,
            self.fill_disk,
            self.corrupt,
            self.lose_machine,
        ]
        if not self._place.brokers:
            return of_workers
        if len(self._place.brokers) == 1:
            return [*of_workers, self.kill_broker]
        return [*of_workers, self.kill_broker, self.freeze_broker]

    def _take(self, *, alone: bool = False) -> Generator[float, None, Worker]:
        """A process that works, and that no other fault has to do with; waits for one."""
        lasted = 0.0
        while (worker := self._workers.take(alone=alone)) is None:
            assert lasted < SEEN_TIMEOUT_S, f"no process works: {[*map(str, self._workers.alive)]}"
            yield LOOK_S
            lasted += LOOK_S
        return worker

    def kill(self) -> Fault:
        """SIGKILL; it comes back soon, or after others have taken its tasks."""
        worker = yield from self._take()
        self._workers.kill(worker)
        yield self._choose.uniform(0, 1.5 * SESSION_S)
        self._workers.start(worker.slot)
        return ["killed"]

    def kill_at_a_point(self) -> Fault:
        """SIGKILL in the middle of a commit, of an assignment, ..."""
        point = self._choose.choice([*self._place.points])
        return self.kill_at(point, self._choose.randint(1, self._place.points[point].early))

    def kill_at(self, point: str, passing: int) -> Fault:
        """A process is stopped, and the next one in its slot kills itself at a passing of a point."""
        killed = yield from self._killed_at(point, passing)
        yield self._choose.uniform(0, 1.5 * SESSION_S)
        self._workers.start(killed.slot)
        return ["killed at a point of a commit or an assignment"]

    def _killed_at(self, point: str, passing: int, *, alone: bool = False) -> Generator[float, None, Worker]:
        worker = yield from self._take(alone=alone)
        yield from self._stop(worker)
        while True:
            aimed = self._workers.start(worker.slot, f"{point}:{passing}")
            aimed.taken = aimed.doomed = True
            yield from self._wait_for_the_end(aimed)
            if not self._workers.could_not_start(aimed):
                break
        assert aimed.process.returncode == -signal.SIGKILL, aimed
        return aimed

    def lose_machine_at(self, point: str, passing: int) -> Fault:
        """A process kills itself at a passing of a point, and another one comes without its state and its identity."""
        killed = yield from self._killed_at(point, passing, alone=True)
        shutil.rmtree(killed.state)
        self._workers.start(killed.slot)
        return ["killed at a point, and its state directory deleted"]

    def lose_machine(self) -> Fault:
        """It is killed, and another one comes without its state and its identity."""
        worker = yield from self._take(alone=True)
        self._workers.kill(worker)
        shutil.rmtree(worker.state)
        yield self._choose.uniform(0, SESSION_S)
        self._workers.start(worker.slot)
        return ["killed, and its state directory deleted"]

    def freeze_shortly(self) -> Fault:
        """SIGSTOP for less than the session."""
        return (yield from self._freeze(0.3, SESSION_S - 2, "frozen for a moment"))

    def freeze_for_long(self) -> Fault:
        """SIGSTOP for longer than the session: others take its tasks, and it wakes up in the middle of its work."""
        return (yield from self._freeze(SESSION_S + 1, 2 * SESSION_S, "frozen for longer than the session"))

    def _freeze(self, least_s: float, most_s: float, told: str) -> Fault:
        worker = yield from self._take()
        worker.send(signal.SIGSTOP)
        yield self._choose.uniform(least_s, most_s)
        worker.send(signal.SIGCONT)
        worker.taken = False
        return [told]

    def storm(self) -> Fault:
        """Processes join and leave, each in the rebalance of the one before."""
        done = []
        for _ in range(self._choose.randint(3, 6)):
            leaver = self._workers.take() if len(self._workers.alive) >= WORKERS else None
            if leaver is not None:
                yield from self._stop(leaver)
                done.append("left")
            elif self._workers.free_slots():
                self._workers.start()
                done.append("joined")
            yield self._choose.uniform(0.2, 2)
        while len(self._workers.alive) < WORKERS:
            self._workers.start()
            done.append("joined")
        return done

    def fill_disk(self) -> Fault:
        """No file of the process can grow any more, until it ends; then there is room again."""
        worker = yield from self._take()
        worker.doomed = True
        worker.limit_files()
        yield from self._wait_for_the_end(worker)
        assert worker.process.returncode > 0, worker
        assert "File too large" in worker.printed(), worker
        yield self._choose.uniform(0, SESSION_S)
        self._workers.start(worker.slot)
        return ["ended by a full disk"]

    def corrupt(self) -> Fault:
        """It is killed, and some bytes of its stores are flipped before it comes back."""
        worker = yield from self._take()
        self._workers.kill(worker)
        files = self._flip(worker)
        yield self._choose.uniform(0, SESSION_S)
        self._workers.start(worker.slot)
        return ["store files damaged"] if files else []

    def _flip(self, worker: Worker) -> list[Path]:
        """Damage stores that no process has open: others may share the state directory."""
        directories = sorted(worker.state.glob("*/*/rocksdb"))
        self._choose.shuffle(directories)
        damaged: list[Path] = []
        for directory in directories:
            try:
                lock = DirectoryLock(directory.parent)
            except StateLockedError:
                continue
            files = [path for path in sorted(directory.iterdir()) if _is_store(path)]
            if files and len(damaged) < _DAMAGED_TASKS:
                damaged.append(self._choose.choice(files))
                _flip_bytes(damaged[-1], self._choose)
            lock.release()
        return damaged

    def _stop(self, worker: Worker) -> Generator[float, None, None]:
        """SIGTERM: it commits and leaves. What it cannot commit while a broker is away, others do again."""
        began = time.monotonic()
        worker.doomed = True
        worker.send(signal.SIGTERM)
        yield from self._wait_for_the_end(worker)
        away = any(broker.was_away_since(began) for broker in self._place.brokers)
        assert worker.process.returncode == 0 or away, worker

    def _wait_for_the_end(self, worker: Worker) -> Generator[float, None, None]:
        lasted = 0.0
        while worker.alive:
            assert lasted < SEEN_TIMEOUT_S, f"does not end: {worker}"
            yield LOOK_S
            lasted += LOOK_S
        self._workers.alive.remove(worker)

    def kill_broker(self, chosen: Broker | None = None) -> Fault:
        """SIGKILL; it comes back on the same data."""
        broker = yield from self._take_broker(chosen)
        broker.kill()
        yield self._choose.uniform(1, 8)
        yield from self._others_go_on()
        broker.start()
        return ["broker killed"]

    def freeze_broker(self, chosen: Broker | None = None) -> Fault:
        """SIGSTOP: its connections stay open, and nobody answers. The others elect new leaders without it."""
        broker = yield from self._take_broker(chosen)
        broker.freeze()
        yield self._choose.uniform(1, 8)
        yield from self._others_go_on()
        broker.thaw()
        return ["broker frozen"]

    def _others_go_on(self) -> Generator[float, None, None]:
        """If there are other brokers, all partitions are processed without this one."""
        if len(self._place.brokers) > 1:
            yield from self._progress.all_grow()

    def _take_broker(self, chosen: Broker | None) -> Generator[float, None, Broker]:
        """The chosen one, or any. Two of three keep every partition, one does not: waits until it can be lost."""
        lasted = 0.0
        while not self._place.may_lose_a_broker():
            assert lasted < SEEN_TIMEOUT_S, "the brokers do not come to have all records"
            yield LOOK_S
            lasted += LOOK_S
        return chosen or self._choose.choice(self._place.brokers)


def _is_store(path: Path) -> bool:
    return (path.suffix == ".sst" or path.name.startswith("MANIFEST-")) and path.stat().st_size > 0


def _flip_bytes(path: Path, choose: random.Random) -> None:
    content = bytearray(path.read_bytes())
    start = choose.randrange(len(content))
    for at in range(start, min(start + choose.randint(1, 64), len(content))):
        content[at] ^= 0xFF
    path.write_bytes(content)
