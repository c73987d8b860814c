"""A flights application on a Kafka cluster, whose processes are killed while flights come in."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from apps.flights import AIRLINES, FLIGHTS, MEAN_DELAYS, Airline
from apps.flights_feed import KEPT, NEW_YEAR_MS, PARTITIONS, data_folder, read_airlines, read_flights
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from tests.kafka.kills.journal import CLOSED, GIVEN_UP, RUNNING, Life, read_lives
from tests.kafka.kills.ledger import Account, Input, audit, check_outputs, input_of
from tests.kafka.support import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, Cluster
from tests.kills.flights import CHANGELOG, GROUP, data_of, read
from tests.live.support import eventually, freeze

ROOT = Path(__file__).resolve().parents[3]

DEADLINE_S = 120.0

#: Each start takes one of these, so that evictions, commits and threads fall together in many ways. The default
#: commits every 30 s: nothing is committed before the kill.
SETTINGS: tuple[tuple[str, ...], ...] = (
    (),
    ("commit_interval_ms=50",),
    ("commit_interval_ms=300",),
    ("statestore_cache_max_bytes=20000", "commit_interval_ms=500"),
    ("statestore_cache_max_bytes=0", "commit_interval_ms=500"),
    ("num_stream_threads=2", "commit_interval_ms=200"),
)

#: Many commits in a short run.
QUICK = ("commit_interval_ms=50",)

#: The audit wants to see every change. Segments end by the time in the records: a week of 2013 would be one.
_EVERY_CHANGE = {"cleanup.policy": "compact", "segment.ms": str(2**63 - 1)}

_MEMBERSHIP = (
    f"session_timeout_ms={SESSION_TIMEOUT_MS}",
    f"heartbeat_interval_ms={HEARTBEAT_INTERVAL_MS}",
)


class Flights:
    """The first ``count`` flights of 2013 as they go into the log, by partition."""

    def __init__(self, count: int | None = None) -> None:
        encode = msgspec.json.Encoder().encode
        self.airlines: dict[bytes, Airline] = {
            carrier.encode(): airline for carrier, airline in read_airlines(data_folder())
        }
        self.records: list[list[tuple[bytes, bytes, int]]] = [[] for _ in range(PARTITIONS)]
        with data_of(count) as folder:
            flights = read_flights(folder)
        for carrier, flight, time_ms in flights:
            key = carrier.encode()
            self.records[partition_for_key(key, PARTITIONS)].append((key, encode(flight), time_ms))

    @cached_property
    def inputs(self) -> list[Input]:
        return [input_of(records) for records in self.records]


class Worker:
    """One process of the application, and the journal that it leaves."""

    def __init__(self, folder: Path, number: int, arguments: list[str], aim: str) -> None:
        self.printed_to = folder / f"process-{number}.txt"
        self.journal = folder / f"process-{number}.journal"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
        environment |= {"PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"}
        command = [sys.executable, "-m", "tests.kafka.kills.worker", str(self.journal), aim]
        with self.printed_to.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, "run", "apps.flights", *arguments],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def lives(self) -> list[Life]:
        return read_lives(self.journal)

    def has_tasks(self) -> bool:
        """True once it has a task that is restored. Raises ``AssertionError`` if it has ended."""
        assert self.alive, self.printed()
        return any(life.phase == RUNNING for life in self.lives())

    def works(self) -> bool:
        """True once it has processed something. Raises ``AssertionError`` if it has ended."""
        assert self.alive, self.printed()
        return any(life.last_offset >= life.first_offset for life in self.lives() if life.phase == RUNNING)

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait(DEADLINE_S) == -signal.SIGKILL, (
            f"ended before it was killed:\n{self.printed()}"
        )
        self.check_output()

    def end(self) -> int:
        """Wait for its end; gives the exit code. Who hangs prints its stacks and fails the run."""
        try:
            code = self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(10)
            raise AssertionError(f"hangs:\n{self.printed()}") from None
        self.check_output()
        return code

    def stop(self) -> None:
        """SIGTERM: commits and ends well."""
        self.process.terminate()
        assert self.end() == 0, self.printed()

    def printed(self) -> str:
        return self.printed_to.read_text(encoding="utf-8", errors="replace")

    def check_output(self) -> None:
        printed = self.printed()
        assert "ERROR" not in printed, printed
        assert "Traceback" not in printed, printed


class Result(NamedTuple):
    """What a job came to. ``hits`` are kills while the killed one had work; ``again`` and ``doubled`` as in Account."""

    kills: int
    hits: int
    lives: int
    records: int
    again: int
    doubled: int

    def __str__(self) -> str:
        share = 100 * self.again / self.records
        return (
            f"{self.kills} kills, {self.hits} of them with uncommitted work; of {self.records:,} flights "
            f"{self.again:,} ({share:.1f} %) were processed again, {self.doubled:,} of them count twice"
        )


class Job:
    """The application's topics in an empty cluster, a folder with state directories, and processes."""

    def __init__(self, bootstrap_servers: str, folder: Path, flights: Flights, choose: random.Random) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.choose = choose
        self.flights = flights
        self.kills = self.hits = 0
        self._cluster = Cluster(bootstrap_servers, folder)
        self._workers: list[Worker] = []
        self._fed = [0] * PARTITIONS
        self._cluster.create(AIRLINES, FLIGHTS, MEAN_DELAYS, partitions=PARTITIONS, config=KEPT)
        self._cluster.create(CHANGELOG, partitions=PARTITIONS, config=_EVERY_CHANGE)
        encode = msgspec.json.Encoder().encode
        airlines = [(carrier, encode(airline), NEW_YEAR_MS) for carrier, airline in flights.airlines.items()]
        self._cluster.write(AIRLINES, airlines, key=bytes, value=bytes)

    @contextmanager
    def opened(self) -> Iterator[Job]:
        """At the end no process is left; the folder is, if it failed."""
        try:
            yield self
        finally:
            for worker in self._workers:
                if worker.alive:
                    worker.process.kill()
                    worker.process.wait(DEADLINE_S)
            self._cluster.close()
        shutil.rmtree(self.folder)

    # Input

    def feed(self, share: float) -> None:
        """Write flights until this share of them is in the log."""
        for partition, records in enumerate(self.flights.records):
            upto = max(self._fed[partition], round(share * len(records)))
            new = records[self._fed[partition] : upto]
            self._cluster.write(FLIGHTS, new, key=bytes, value=bytes, partition=partition)
            self._fed[partition] = upto

    def feed_meanwhile(self, share: float, upto: float, slices: int = 10) -> None:
        """Write them in slices with pauses, so that they arrive while others work."""
        for number in range(1, slices + 1):
            self.feed(share + (upto - share) * number / slices)
            time.sleep(self.choose.uniform(0, 0.06))  # when a flight comes in is a matter of chance

    # Processes

    def start(
        self, *options: str, state: str = "state", aim: str = "none", settings: tuple[str, ...] | None = None
    ) -> Worker:
        """A process, with settings of its own choice unless some are given."""
        chosen = self.choose.choice(SETTINGS) if settings is None else settings
        arguments = ["--bootstrap-servers", self._cluster.bootstrap_servers, "--state-dir", state]
        arguments += [part for setting in (*_MEMBERSHIP, *chosen) for part in ("-s", setting)]
        worker = Worker(self.folder, len(self._workers), [*arguments, *options], aim)
        self._workers.append(worker)
        return worker

    def kill(self, worker: Worker) -> None:
        worker.kill()
        self.kills += 1
        self.hits += self._left_uncommitted(worker)

    def kill_at_work(self, worker: Worker, share: float, upto: float, slices: int = 50) -> None:
        """Kill it while something that it has read is not committed; more flights come in until that is so."""
        shares = (share + (upto - share) * number / slices for number in range(1, slices + 1))

        def caught_at_work() -> bool:
            # Frozen, so that it does not commit between the look and the kill.
            freeze(worker.process.pid)
            if self._left_uncommitted(worker):
                return True
            worker.process.send_signal(signal.SIGCONT)
            self.feed(next(shares, upto))
            return False

        eventually(caught_at_work, "something that is read and not committed", DEADLINE_S)
        self.kill(worker)

    def run_to_aim(self, point: str, call: int, *, state: str = "state") -> bool:
        """Run until the N-th passing of a point, killed there; False if it was done before."""
        worker = self.start("--until-caught-up", aim=f"{point}:{call}", state=state, settings=QUICK)
        code = worker.end()
        assert code in (0, -signal.SIGKILL), worker.printed()
        if code:
            self.kills += 1
            self.hits += self._left_uncommitted(worker)
        else:
            print(f"{point}: all was processed before passing {call}:\n{worker.printed()}")
        return code != 0

    def run_to_the_end(self, *, state: str = "state", settings: tuple[str, ...] | None = None) -> None:
        """Feed what is left, and run until caught up."""
        self.feed(1)
        self.catch_up(state=state, settings=settings)

    def catch_up(self, *, state: str = "state", settings: tuple[str, ...] | None = None) -> None:
        """Run until caught up."""
        assert self.start("--until-caught-up", state=state, settings=settings).end() == 0

    def lose_state(self, state: str = "state") -> None:
        """Delete a state directory."""
        shutil.rmtree(self.folder / state, ignore_errors=True)

    def _left_uncommitted(self, worker: Worker) -> bool:
        """Whether a process that was killed had read, in some life that it did not end, past what is committed; or had
        not come to read, with something to do."""
        lives = [life for life in worker.lives() if life.phase not in (CLOSED, GIVEN_UP)]
        committed = self._cluster.committed(GROUP)

        def reached(partition: int) -> int:
            found = committed.get(TopicPartition(FLIGHTS, partition))
            return 0 if found is None else found.offset

        if any(life.phase == RUNNING for life in lives):
            return any(life.last_offset >= reached(life.partition) for life in lives)
        return any(reached(partition) < fed for partition, fed in enumerate(self._fed))

    # The end

    def check(self) -> Result:
        """Nobody works any more: every change, every output and every window is what it must be."""
        lives = [life for worker in self._workers for life in worker.lives()]
        changes = read(self._cluster.broker, CHANGELOG)
        outputs = read(self._cluster.broker, MEAN_DELAYS)
        accounts: list[Account] = []
        for partition, given in enumerate(self.flights.inputs):
            of_partition = [life for life in lives if life.partition == partition]
            account, state = audit(given, of_partition, changes[partition])
            check_outputs(outputs[partition], state, self.flights.airlines)
            committed = self._cluster.committed(GROUP)[TopicPartition(FLIGHTS, partition)]
            assert committed.offset == given.records, (partition, committed, given.records)
            accounts.append(account)
        count, records, again, doubled = map(sum, zip(*accounts, strict=True))
        return Result(self.kills, self.hits, count, records, again, doubled)
