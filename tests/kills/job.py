"""A flights application in a folder of its own, whose processes are killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from apps.flights import AIRLINES, FLIGHTS, MEAN_DELAYS
from apps.flights_feed import KEPT, PARTITIONS
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import Broker, TopicSpec
from tests.kills import flights
from tests.kills.flights import Raw, Truth
from tests.live.support import eventually

ROOT = Path(__file__).resolve().parents[2]

#: Whoever has not ended by itself after this long hangs: it is made to print its stacks, and the run fails.
DEADLINE_S = 120.0

#: Each start takes one of these, so that evictions, commits and threads fall together in many ways.
SETTINGS: tuple[tuple[str, ...], ...] = (
    (),
    ("commit_interval_ms=10",),
    ("statestore_cache_max_bytes=20000",),
    ("statestore_cache_max_bytes=0", "commit_interval_ms=50"),
    ("num_stream_threads=3", "commit_interval_ms=30"),
)

#: Many commits in a short run.
QUICK = ("commit_interval_ms=10",)


@dataclass
class Baseline:
    """All flights in a log, and what an undisturbed run makes of them. ``start_s`` is how long one takes that has
    nothing to do, ``work_s`` what the work adds."""

    log: Path
    inputs: Mapping[str, Mapping[int, list[Raw]]]
    truth: Truth
    results: Mapping[Any, Any] = field(default_factory=dict)
    stores: Mapping[str, list[Any]] = field(default_factory=dict)
    committed: Mapping[Any, Any] = field(default_factory=dict)
    start_s: float = 0.0
    work_s: float = 0.0


class Worker:
    """One process of the application."""

    def __init__(self, folder: Path, number: int, arguments: list[str], *, aim: str | None) -> None:
        self.output = folder / f"process-{number}.txt"
        module = ["pystreams"] if aim is None else ["tests.kills.aim", aim, "--"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
        environment |= {"PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"}
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *module, "run", "apps.flights", *arguments],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def kill_after(self, seconds: float) -> bool:
        """SIGKILL at that moment; False if it had ended by itself, and well, before."""
        try:
            self.finish(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        return self.process.returncode == -signal.SIGKILL

    def finish(self, timeout_s: float) -> None:
        """Wait for its end, which must be a good one. Raises ``TimeoutExpired``."""
        code = self.process.wait(timeout_s)
        assert code == 0, f"ended with {code}:\n{self.printed()}"
        self.check_output()

    def end(self) -> int:
        """Wait for its end, of whatever kind; gives the exit code. Who hangs prints its stacks and fails the run."""
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(10)
            raise AssertionError(f"hangs:\n{self.printed()}") from None

    def stop(self) -> None:
        """SIGTERM: commits and ends well; one that is only starting, and has printed nothing yet, just ends."""
        self.process.terminate()
        code, printed = self.end(), self.printed()
        assert code == 0 or (code == -signal.SIGTERM and not printed), f"{code}\n{printed}"
        self.check_output()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE_S)
        self.check_output()

    def printed(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def check_output(self) -> None:
        """A process that finds what a killed one left has nothing to complain about."""
        printed = self.printed()
        assert "WARNING" not in printed, printed
        assert "ERROR" not in printed, printed
        assert "Traceback" not in printed, printed


class Job:
    """A log with the flights or a part of them, a state directory or two, and the processes that work on them."""

    def __init__(self, folder: Path, baseline: Baseline, choose: random.Random) -> None:
        self.folder = folder
        self.baseline = baseline
        self.choose = choose
        self.kills = 0
        self._workers: list[Worker] = []
        self._reached = [0] * PARTITIONS
        self._fed = [0] * PARTITIONS
        folder.mkdir(parents=True)
        self.log = folder / "log.db"
        self.broker: Broker

    @contextmanager
    def opened(self, *, full: bool) -> Iterator[Job]:
        """With all flights, or with none yet. At the end no process is left."""
        if full:
            shutil.copy(self.baseline.log, self.log)
        broker = EmbeddedBroker(self.log)
        try:
            with closing(broker):
                self.broker = broker
                if not full:
                    self._create_topics()
                yield self
        finally:
            for worker in self._workers:
                if worker.process.poll() is None:
                    worker.process.kill()
                    worker.process.wait(DEADLINE_S)
        shutil.rmtree(self.folder)

    # Input

    def _create_topics(self) -> None:
        with closing(self.broker.admin()) as admin:
            admin.create_topics(
                [TopicSpec(topic, PARTITIONS, KEPT) for topic in (AIRLINES, FLIGHTS, MEAN_DELAYS)]
            )
        self._write(AIRLINES, self.baseline.inputs[AIRLINES])

    def feed(self, share: float) -> None:
        """Write flights until this share of them is in the log."""
        flights_of = self.baseline.inputs[FLIGHTS]
        upto = [int(share * len(flights_of[partition])) for partition in range(PARTITIONS)]
        self._write(FLIGHTS, {p: flights_of[p][self._fed[p] : upto[p]] for p in range(PARTITIONS)})
        self._fed = upto

    def _write(self, topic: str, records: Mapping[int, list[Raw]]) -> None:
        with closing(self.broker.producer("chaos", "chaos")) as producer:
            for partition, of_partition in records.items():
                for raw in of_partition:
                    producer.send(topic, partition, raw.key, raw.value, raw.timestamp, ())
            producer.commit({}, None)

    # Processes

    def start(
        self,
        *options: str,
        aim: str | None = None,
        state: str = "state",
        settings: tuple[str, ...] | None = None,
    ) -> Worker:
        """A process, with settings of its own choice unless some are given."""
        chosen = self.choose.choice(SETTINGS) if settings is None else settings
        arguments = ["--embedded-log", "log.db", "--state-dir", state]
        arguments += [part for setting in chosen for part in ("-s", setting)]
        worker = Worker(self.folder, len(self._workers), [*arguments, *options], aim=aim)
        self._workers.append(worker)
        return worker

    def run_to_the_end(self, *, state: str = "state", settings: tuple[str, ...] | None = None) -> float:
        """Run until caught up, undisturbed; gives the seconds."""
        began = monotonic()
        worker = self.start("--until-caught-up", state=state, settings=settings)
        assert worker.end() == 0, worker.printed()
        worker.check_output()
        return monotonic() - began

    def run_and_kill(self, within_s: float) -> bool:
        """Run until caught up, killed at a random moment of a time; False if it was done before."""
        worker = self.start("--until-caught-up")
        killed = worker.kill_after(self.choose.uniform(0, within_s))
        self.kills += killed
        self.check()
        return killed

    @property
    def time_left_s(self) -> float:
        """About how long an undisturbed run would take from here."""
        left = 1 - sum(self._reached) / self.baseline.truth.flights
        return self.baseline.start_s + left * self.baseline.work_s

    def run_to_aim(self, point: str, call: int, *, state: str = "state", others_work: bool = False) -> bool:
        """Run until the N-th passing of a point, killed there; False if it was done before."""
        worker = self.start("--until-caught-up", aim=f"{point}:{call}", state=state, settings=QUICK)
        code = worker.end()
        assert code in (0, -signal.SIGKILL), worker.printed()
        worker.check_output()
        self.kills += code != 0
        self.check(others_work=others_work)
        return code != 0

    def wait_for_a_commit(self) -> None:
        """Until some process has committed something."""
        eventually(lambda: flights.committed(self.broker), "a commit", DEADLINE_S)

    def lose_state(self, state: str = "state") -> None:
        """Delete the state directory."""
        if (self.folder / state).exists():
            shutil.rmtree(self.folder / state)

    # Checks

    def check(self, *, others_work: bool = False) -> None:
        """All that is written is right and in its place, and no offset went backward."""
        look = flights.check_meanwhile if others_work else flights.check_now
        reached = look(self.broker, self.baseline.truth)
        assert all(now >= before for now, before in zip(reached, self._reached, strict=True))
        self._reached = reached

    def check_end(self, *, state: str = "state") -> None:
        """Results, stores and offsets are those of an undisturbed run."""
        flights.check_all_rows(self.broker, self.baseline.truth)
        assert flights.results(self.broker) == self.baseline.results
        assert flights.committed(self.broker) == self.baseline.committed
        assert flights.stores(self.folder / state, self.broker) == self.baseline.stores
        self.check()


def measure(folder: Path, count: int | None = None) -> Baseline:
    """Feed a log with so many flights (None: all), run the application on copies of it, and take the results as the
    standard."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "flights.db"
    flights.feed(log, count)
    with closing(EmbeddedBroker(log)) as broker:
        inputs = {topic: flights.read(broker, topic) for topic in (AIRLINES, FLIGHTS)}
        baseline = Baseline(log, inputs, flights.truth_of(broker))
    runs_s, starts_s = [], []
    # Twice, because the first one warms the machine up: a moment is to lie within the work.
    for number in range(2):
        with Job(folder / f"undisturbed-{number}", baseline, random.Random(0)).opened(full=True) as job:
            runs_s.append(job.run_to_the_end(settings=()))
            if not number:
                baseline.results = flights.results(job.broker)
                baseline.committed = flights.committed(job.broker)
                baseline.stores = flights.stores(job.folder / "state", job.broker)
            job.check_end()
            starts_s.append(job.run_to_the_end(settings=()))
    baseline.start_s = min(starts_s)
    baseline.work_s = max(0.0, min(runs_s) - baseline.start_s)
    return baseline
