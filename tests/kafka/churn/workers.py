"""Processes that come, go, are killed and frozen at random; what each of them wrote down."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.kafka.churn.ownership import History, read_history
from tests.kafka.churn.worker import SESSION_TIMEOUT_MS
from tests.live.support import eventually

ROOT = Path(__file__).resolve().parents[3]
SESSION_S = SESSION_TIMEOUT_MS / 1000
START_TIMEOUT_S = STOP_TIMEOUT_S = 180.0

WORKERS_MIN, WORKERS_MAX = 2, 4
#: Of these seconds is the pause between two things that happen.
PAUSE_S = (1.0, 4.0)
#: Freezing for less than a session is a slow member, for more a zombie.
SHORT_S, LONG_S = (0.5, 4.0), (SESSION_S + 1, SESSION_S + 6)


@dataclass
class Worker:
    """One process. Processes in the same ``slot`` follow each other and share a state directory."""

    name: str
    slot: int
    process: subprocess.Popen[bytes]
    journal: Path
    log: Path
    frozen_until: float | None = None


class Workers:
    """Several workers of one application, and what is done to them."""

    def __init__(self, bootstrap_servers: str, folder: Path, choose: random.Random) -> None:
        self.histories: dict[str, History] = {}
        self.done: Counter[str] = Counter()
        #: Frozen for longer than the session and woken up again.
        self.zombies: list[str] = []
        #: How workers ended that nobody had killed: nothing to see here if all went well.
        self.failures: list[str] = []
        self._bootstrap_servers = bootstrap_servers
        self._folder = folder
        self._choose = choose
        self._alive: list[Worker] = []
        self._started = 0
        folder.mkdir(parents=True, exist_ok=True)

    def churn(self, seconds: float) -> None:
        """Do something to the workers every few seconds. The pauses are random: that is what this is about.

        The first thing is to freeze an owner for too long: short runs want to see a zombie."""
        while len(self._alive) < WORKERS_MAX - 1:
            self.start()
        eventually(self._all_own, "all own tasks", START_TIMEOUT_S)
        end = time.monotonic() + seconds
        self._freeze(self._alive[0], LONG_S)
        while (now := time.monotonic()) < end:
            pause = min(self._choose.uniform(*PAUSE_S), end - now)
            wake = min([now + pause, *(w.frozen_until for w in self._alive if w.frozen_until is not None)])
            time.sleep(max(0.0, wake - now))
            self._thaw(time.monotonic())
            self._check()
            if wake == now + pause:
                self._act()

    def settle(self) -> None:
        """Wake all who are frozen, and start another one."""
        self._thaw(float("inf"))
        self.start()
        self._check()

    def start(self) -> None:
        taken = {worker.slot for worker in self._alive}
        slot = self._choose.choice([slot for slot in range(WORKERS_MAX + 1) if slot not in taken])
        name = f"w{self._started}"
        self._started += 1
        journal, log = self._folder / f"{name}.journal", self._folder / f"{name}.log"
        journal.touch()
        command = [sys.executable, "-m", "tests.kafka.churn.worker", self._bootstrap_servers]
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*command, str(self._folder / f"state{slot}"), str(journal)],
                cwd=ROOT,
                stdout=output,
                stderr=output,
            )
        self._alive.append(Worker(name, slot, process, journal, log))
        self.done["joined"] += 1

    def stop(self, worker: Worker) -> None:
        """Ask it to stop, as a deployment does; it leaves the group."""
        worker.process.terminate()
        self._reap(worker, expected=0)
        self.done["stopped"] += 1

    def stop_all(self) -> None:
        for worker in list(self._alive):
            self.stop(worker)

    def kill_all(self) -> None:
        """Whatever happened, nothing is left behind."""
        for worker in list(self._alive):
            self._kill(worker)

    def check(self) -> None:
        """Raises ``AssertionError`` if a worker has ended that was not told to."""
        self._check()
        assert not self.failures, "\n".join(self.failures)

    def _all_own(self) -> bool:
        self.check()
        return all(_owns(worker) for worker in self._alive)

    def _act(self) -> None:
        awake = [worker for worker in self._alive if worker.frozen_until is None]
        actions = []
        if len(self._alive) < WORKERS_MAX:
            actions += ["join", "join"]
        if len(awake) >= WORKERS_MIN:
            actions += ["stop", "kill", "freeze", "freeze"]
        action = self._choose.choice(actions or ["join"])
        if action == "join":
            self.start()
            return
        worker = self._choose.choice(awake)
        if action == "stop":
            self.stop(worker)
        elif action == "kill":
            self._kill(worker)
        else:
            self._freeze(worker, self._choose.choice([SHORT_S, LONG_S]))

    def _kill(self, worker: Worker) -> None:
        worker.process.kill()
        self._reap(worker, expected=-signal.SIGKILL)
        self.done["killed"] += 1

    def _freeze(self, worker: Worker, span_s: tuple[float, float]) -> None:
        os.kill(worker.process.pid, signal.SIGSTOP)
        worker.frozen_until = time.monotonic() + self._choose.uniform(*span_s)
        if span_s is LONG_S:
            self.zombies.append(worker.name)
        self.done["frozen for longer than the session" if span_s is LONG_S else "frozen for a moment"] += 1

    def _thaw(self, now: float) -> None:
        for worker in self._alive:
            if worker.frozen_until is not None and worker.frozen_until <= now:
                worker.frozen_until = None
                os.kill(worker.process.pid, signal.SIGCONT)

    def _check(self) -> None:
        for worker in list(self._alive):
            if worker.process.poll() is not None:
                self._reap(worker, expected=None)

    def _reap(self, worker: Worker, expected: int | None) -> None:
        """``expected`` None: it was not to end at all."""
        self._alive.remove(worker)
        try:
            code: int | None = worker.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = None
            worker.process.kill()
            worker.process.wait()
        ended = time.monotonic()
        self.histories[worker.name] = read_history(worker.journal, ended, SESSION_S)
        if code is None or code != expected:
            told = "\n".join(worker.log.read_text(errors="replace").splitlines()[-30:])
            how = f"did not stop within {STOP_TIMEOUT_S:g} s" if code is None else f"ended with {code}"
            self.failures.append(f"{worker.name} {how}, not {expected}:\n{told}")


def _owns(worker: Worker) -> bool:
    return '"open"' in worker.journal.read_text()
