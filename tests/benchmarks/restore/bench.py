"""Restores one changelog by each contestant in turn, and again by pystreams while its other tasks process."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.benchmarks.kafka.cluster import PARTITIONS
from tests.benchmarks.kafka.inputs import START_MS, Feed, source
from tests.benchmarks.kafka.offsets import Offsets
from tests.benchmarks.kafka.peers import Command, Peer, Run
from tests.benchmarks.kafka.processes import ProcessTree
from tests.benchmarks.kafka.running import RunFailedError, started, with_log
from tests.benchmarks.kafka.session import Session

#: All contestants are the same application, so that they restore the same changelog.
APPLICATION = "bench-restore"
CHANGELOG = f"{APPLICATION}-balances-changelog"
OUTPUT = f"{APPLICATION}_out"
_INPUTS = ("bench-deposits", "bench-lines")
_OUTPUTS = (OUTPUT, f"{OUTPUT}-letters")

#: A contestant that ends no restore for so long is stuck.
_PATIENCE_S = 1_800.0
_LOOK_INTERVAL_S = 0.05
_QUEUE = 400_000
#: A compacted changelog has keys in the order of their last changes: in none. An odd stride meets each account once.
_ACCOUNTS = 1 << 32
_STRIDE = 2_654_435_761
#: After the start of the restores, before the rate of the other tasks is measured.
_SETTLE_S = 3.0
#: Lines that a thread processes in a second at most.
_LINES_PER_S = 250_000
_COMMIT_TIMEOUT_S = 60.0
_FLUSH_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Restored:
    """How one contestant restored the changelog. ``seconds``: from the first restore's start to the last one's end;
    ``start_rss_bytes``: its memory at the former, at its highest so far."""

    peer: str
    repeat: int
    records: int
    seconds: float
    cpu_s: float
    start_rss_bytes: int
    peak_rss_bytes: int

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.seconds


@dataclass(frozen=True)
class Beside:
    """Records per second that a thread processes while another one restores, and alone."""

    during: float
    alone: float

    @property
    def share(self) -> float:
        """Of its rate alone, from 0 to 1."""
        return self.during / self.alone


class Bench:
    """On one cluster; the changelog is written once."""

    def __init__(self, session: Session, keys: int) -> None:
        self._cluster = session.cluster
        self._folder = session.folder
        self._keys = keys
        self._console = session.console

    def prepare(self) -> None:
        """Write the changelog: each key once and in no order, evenly over its partitions."""
        self._cluster.delete(lambda name: name.startswith("bench-"))
        self._cluster.create(*_INPUTS, *_OUTPUTS)
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap_servers, "log_level": 2})
        changelog = NewTopic(CHANGELOG, PARTITIONS, 1, config={"cleanup.policy": "compact"})
        for future in admin.create_topics([changelog]).values():
            future.result(30)
        started_s = time.monotonic()
        _fill(self._cluster.bootstrap_servers, self._keys)
        self._console.print(f"{self._keys:,} keys are written in {time.monotonic() - started_s:.0f} s")

    def restore(self, peer: Peer, repeat: int = 0) -> Restored:
        """One restore from the beginning. Raises ``RunFailedError``."""
        run = self._run(peer.name)
        shutil.rmtree(run.folder, ignore_errors=True)
        run.folder.mkdir(parents=True)
        log = run.folder / "log.txt"
        with started(_commands(peer, run, "balances"), log) as processes:
            tree = ProcessTree(process.pid for process in processes)
            _awaited(log, "restore-start", processes)
            start = tree.read()
            _awaited(log, "restore-end", processes)
            usage = tree.read()
        begun, ended = _times(log, "restore-start"), _times(log, "restore-end")
        records = sum(count for count, _ in ended.values())
        if records != self._keys:
            raise RunFailedError(with_log(f"{peer.name} restored {records:,} of {self._keys:,} records", log))
        seconds = (max(at for _, at in ended.values()) - min(at for _, at in begun.values())) / 1000
        return Restored(
            peer.name, repeat, records, seconds, usage.cpu_s, start.peak_rss_bytes, usage.peak_rss_bytes
        )

    def beside(self, peer: Peer, seconds: float) -> Beside:
        """The rate of tasks while the others of their thread are restored, and of the same tasks without the others,
        before and after that, because the machine's speed changes; each over ``seconds``. Raises ``RunFailedError`` if
        restore or input are over too soon."""
        feed = Feed(self._cluster.bootstrap_servers, source("wordcount"), 1, PARTITIONS)
        feed.extend_to(int((seconds + 2 * _SETTLE_S) * _LINES_PER_S))
        before = self._rate(peer, "letters", "bench-letters-1", seconds)
        during = self._rate(peer, "both", APPLICATION, seconds)
        after = self._rate(peer, "letters", "bench-letters-2", seconds)
        return Beside(during, fmean([before, after]))

    def _rate(self, peer: Peer, job: str, application_id: str, seconds: float) -> float:
        """The committed lines per second, from shortly after the start on."""
        run = self._run(f"{peer.name}-{job}", application_id)
        shutil.rmtree(run.folder, ignore_errors=True)
        run.folder.mkdir(parents=True)
        log = run.folder / "log.txt"
        with (
            closing(Offsets(run.bootstrap_servers, application_id)) as offsets,
            started(_commands(peer, run, job), log) as processes,
        ):
            if job == "both":
                _awaited(log, "restore-start", processes)
            lines = offsets.ends(["bench-lines"])["bench-lines"]
            begin_s, begin = _commit_after(offsets, _SETTLE_S, processes, log)
            end_s, end = _commit_after(offsets, seconds, processes, log)
            if end >= lines or _times(log, "restore-end"):
                raise RunFailedError(
                    f"{run.folder.name} was done too soon: give more --keys, or fewer --seconds"
                )
        return (end - begin) / (end_s - begin_s)

    def _run(self, name: str, application_id: str = APPLICATION) -> Run:
        return Run(
            job="balances",
            application_id=application_id,
            bootstrap_servers=self._cluster.bootstrap_servers,
            inputs=_INPUTS,
            output=OUTPUT,
            folder=self._folder / name,
        )


def _commands(peer: Peer, run: Run, job: str) -> list[Command]:
    """The peer's process; that of pystreams says when its restores begin and end, as Java's does."""
    if peer.name != "pystreams":
        return peer.commands(run)
    settings = {
        "application_id": run.application_id,
        "bootstrap_servers": run.bootstrap_servers,
        "state_dir": run.folder / "state",
        "commit_interval_ms": run.commit_interval_ms,
        "statestore_cache_max_bytes": run.cache_bytes,
    }
    arguments = [f"{name}={value}" for name, value in settings.items()]
    module = "tests.benchmarks.restore.restoring"
    # The letters' hashes decide how they collide in a dictionary, and so the rate: up to a tenth from seed to seed.
    environment = {"BENCH_OUTPUT": run.output, "PYTHONHASHSEED": "0"}
    return [Command([sys.executable, "-m", module, job, *arguments], environment)]


def _awaited(log: Path, what: str, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until a line of the kind has come for each partition. Raises ``RunFailedError``."""
    deadline = time.monotonic() + _PATIENCE_S
    while len(_times(log, what)) < PARTITIONS:
        _check_alive(processes, log)
        if time.monotonic() > deadline:
            raise RunFailedError(with_log(f"no {what} of all partitions in {_PATIENCE_S:g} s", log))
        time.sleep(_LOOK_INTERVAL_S)


def _commit_after(
    offsets: Offsets, seconds: float, processes: Sequence[subprocess.Popen[bytes]], log: Path
) -> tuple[float, int]:
    """When the first commit showed that came after so many seconds, and what was committed by then."""
    due = time.monotonic() + seconds
    before = None
    while True:
        _check_alive(processes, log)
        committed = offsets.committed(["bench-lines"])["bench-lines"]
        if time.monotonic() >= due and before is not None and committed != before:
            return time.monotonic(), committed
        before = committed
        if time.monotonic() > due + _COMMIT_TIMEOUT_S:
            raise RunFailedError(with_log(f"no commit for {_COMMIT_TIMEOUT_S:g} s", log))
        time.sleep(_LOOK_INTERVAL_S)


def _check_alive(processes: Sequence[subprocess.Popen[bytes]], log: Path) -> None:
    if any(process.poll() is not None for process in processes):
        raise RunFailedError(with_log("a process ended", log))


def _times(log: Path, what: str) -> dict[str, tuple[int, int]]:
    """The lines of a kind: records (or offsets) and time (ms), by partition."""
    found = {}
    for line in log.read_text(errors="replace").splitlines():
        words = line.split()
        if len(words) == 4 and words[0] == what:
            found[words[1]] = (int(words[2]), int(words[3]))
    return found


def _fill(bootstrap_servers: str, keys: int) -> None:
    """Write the changelog, and wait until the broker has it."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": _QUEUE,
            "log_level": 2,
        }
    )
    produce = producer.produce
    for number in range(keys):
        key, value = b"account-%010d" % (number * _STRIDE % _ACCOUNTS), struct.pack(">q", number)
        while True:
            try:
                produce(CHANGELOG, value, key, number % PARTITIONS, timestamp=START_MS + number // 1_000)
                break
            except BufferError:
                producer.poll(0.1)
    if left := producer.flush(_FLUSH_TIMEOUT_S):
        raise RunFailedError(f"{left:,} records of the changelog were not written")
