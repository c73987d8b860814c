"""Processes of the application, and what can be done to them."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tests.chaos.places import Place
from tests.live.support import eventually

ROOT = Path(__file__).resolve().parents[2]
SESSION_TIMEOUT_MS = 4_000
END_TIMEOUT_S = 120.0
#: A broker that has come back may be slow for so long, on a busy machine.
_SLOW_AFTER_S = 180.0

SETTINGS = {
    "num_standby_replicas": 1,
    "session_timeout_ms": SESSION_TIMEOUT_MS,
    "heartbeat_interval_ms": 400,
    "commit_interval_ms": 200,
    "poll_ms": 40,
    # A client of Kafka that reads no more is to be noticed well before the run gives up.
    "stall_timeout_ms": 20_000,
    # What is left open by the dead is not to end by itself.
    "transaction_timeout_ms": 600_000,
}
#: Slots that share a state directory are workers of one machine: they notice when one of them dies.
STATES = ("state-0", "state-0", "state-1", "state-2", "state-3")
#: So many processes work when nothing happens.
WORKERS = 3


class Worker:
    """One process. Processes in the same ``slot`` follow each other and share a state directory."""

    def __init__(self, slot: int, state: Path, printed_to: Path, command: list[str]) -> None:
        self.slot = slot
        self.state = state
        self.printed_to = printed_to
        self.started = time.monotonic()
        #: A fault has to do with it: others leave it alone.
        self.taken = False
        #: It is to end by itself.
        self.doomed = False
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
        environment |= {"PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"}
        # Through a pipe: a process whose files may not grow can still say why it ends.
        self.process = subprocess.Popen(
            command,
            cwd=printed_to.parent,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        self._reader = threading.Thread(target=self._read, name=printed_to.name, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.printed_to.open("wb", buffering=0) as output, self.process.stdout:
            for line in self.process.stdout:
                output.write(line)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def runs(self) -> bool:
        return "running " in self.printed()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def limit_files(self) -> None:
        """From now on no file of it may grow: as on a full disk, RocksDB cannot write."""
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (0, hard))

    def end(self) -> int:
        """Wait for its end; gives the exit code. Who hangs prints its stacks and fails the run."""
        try:
            return self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGABRT)
            self.process.wait(10)
            raise AssertionError(f"hangs:\n{self.printed()}") from None

    def printed(self) -> str:
        if not self.alive:
            self._reader.join(END_TIMEOUT_S)
        return self.printed_to.read_text(encoding="utf-8", errors="replace")

    def __str__(self) -> str:
        end = "\n".join(self.printed().splitlines()[-30:])
        return f"{self.printed_to}, exit code {self.process.poll()}:\n{end}"


class Workers:
    """Those that run, each in a slot of its own."""

    def __init__(self, place: Place, folder: Path, choose: random.Random, broken: str = "none") -> None:
        """``broken``: the fault that was put into all of them on purpose (``worker.BREAKS``)."""
        self.alive: list[Worker] = []
        #: How many ended by themselves, and why that was allowed.
        self.ended: Counter[str] = Counter()
        self._place = place
        self._folder = folder
        self._choose = choose
        self._broken = broken
        self._started = 0
        folder.mkdir()

    def start(self, slot: int | None = None, aim: str = "none") -> Worker:
        slot = self._choose.choice(self.free_slots()) if slot is None else slot
        command = [
            sys.executable,
            "-m",
            "tests.chaos.worker",
            aim,
            self._broken,
            "run",
            "tests.chaos.program",
        ]
        # Verbose, so that the files of a run that failed show who had which tasks.
        command += [*self._place.arguments, "--verbose", "--state-dir", str(self._folder / STATES[slot])]
        threads = self._choose.choice((1, 1, 2))
        for name, value in {**SETTINGS, "num_stream_threads": threads}.items():
            command += ["-s", f"{name}={value}"]
        printed_to = self._folder / f"process-{self._started}.txt"
        printed_to.touch()
        self._started += 1
        worker = Worker(slot, self._folder / STATES[slot], printed_to, command)
        self.alive.append(worker)
        return worker

    def free_slots(self) -> list[int]:
        taken = {worker.slot for worker in self.alive}
        return [slot for slot in range(len(STATES)) if slot not in taken]

    def take(self, *, alone: bool = False) -> Worker | None:
        """One that runs and that no other fault has to do with, if there is one; it is not free until released.
        ``alone``: nobody shares its state directory."""
        states = Counter(worker.state for worker in self.alive)
        free = [
            worker
            for worker in self.alive
            if not worker.taken and worker.alive and worker.runs and not (alone and states[worker.state] > 1)
        ]
        if not free:
            return None
        worker = self._choose.choice(free)
        worker.taken = True
        return worker

    def kill(self, worker: Worker) -> None:
        assert worker.alive, f"ended before it was killed: {worker}"
        worker.send(signal.SIGKILL)
        assert worker.end() == -signal.SIGKILL, worker
        self.alive.remove(worker)

    def stop(self, worker: Worker) -> None:
        """SIGTERM: commits and ends well."""
        worker.send(signal.SIGTERM)
        code = worker.end()
        # Who is only starting just ends.
        assert code == 0 or (code == -signal.SIGTERM and not worker.runs), worker
        self.alive.remove(worker)

    def replace_the_ended(self) -> None:
        """Start those again that ended by themselves, as a supervisor would. Raises ``AssertionError`` unless they had
        a reason."""
        for worker in [worker for worker in self.alive if not worker.alive and not worker.doomed]:
            self.alive.remove(worker)
            assert self.could_not_start(worker), f"ended by itself: {worker}"
            self.start(worker.slot)

    def could_not_start(self, worker: Worker) -> bool:
        """Whether a process has ended at its start because a broker was away, or has only just come back: then it may
        not answer in time."""
        since = worker.started - _SLOW_AFTER_S
        if worker.runs or not any(b.was_away_since(since) for b in self._place.brokers):
            return False
        self.ended["at their start, when a broker was away"] += 1
        return True

    def print_stacks(self) -> None:
        """Have all processes end with the stacks of their threads in what they print: the evidence of a failed run."""
        for worker in self.alive:
            if worker.alive:
                worker.send(signal.SIGCONT)
                worker.send(signal.SIGABRT)
                worker.process.wait(10)

    def kill_all(self) -> None:
        """Whatever happened, nothing is left behind."""
        for worker in self.alive:
            if worker.alive:
                worker.send(signal.SIGKILL)
                worker.process.wait()
        self.alive.clear()

    def wait_until_all_run(self) -> None:
        def all_run() -> bool:
            self.replace_the_ended()
            return all(worker.runs for worker in self.alive)

        eventually(all_run, "all processes run", END_TIMEOUT_S)
