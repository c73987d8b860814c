"""Word count in processes of its own, exactly once: every count of every word is written once, in order."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from pystreams.errors import BrokerUnavailableError
from tests.kafka.server import ROOT
from tests.kafka.support import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, Cluster
from tests.live.support import eventually

APPLICATION = "wordcount"
READ = ("lines", "wordcount-counts-repartition")
WORDS = ["to", "be", "or", "not", "that", "is", "the", "question", "whether", "tis", "nobler", "in", "mind"]

#: Without a cache every change of a count is an output.
SETTINGS = {
    "processing_guarantee": "exactly_once_v2",
    "statestore_cache_max_bytes": 0,
    "session_timeout_ms": SESSION_TIMEOUT_MS,
    "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
}


class WordCounts:
    """The input, the true counts, and the processes that count."""

    def __init__(self, cluster: Cluster, seed: int, partitions: int = 4) -> None:
        print(f"seed {seed}")
        cluster.create("lines", "word-counts", partitions=partitions)
        self.cluster = cluster
        self.choose = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.processes: list[subprocess.Popen[bytes]] = []
        self._lines = 0
        self._logs: list[Path] = []

    def write(self, lines: int) -> None:
        chosen = [self.choose.choices(WORDS, k=4) for _ in range(lines)]
        records = [(str(self._lines + i), " ".join(words), self._lines + i) for i, words in enumerate(chosen)]
        self.cluster.write("lines", records, value=str)
        self._lines += lines
        for words in chosen:
            self.counts.update(words)

    def write_for(self, seconds: float) -> None:
        """Lines come in for a time that matters as such: what a process is doing then is a matter of chance."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.write(8)
            time.sleep(0.04)

    def start(self, name: str, *, aim: str | None = None, **settings: object) -> subprocess.Popen[bytes]:
        """A process with a state directory of its own, ``name``. ``aim``: it kills itself there
        (``tests.chaos.worker``)."""
        program = ["pystreams"] if aim is None else ["tests.chaos.worker", aim, "none"]
        pairs = [
            part
            for setting, value in {**SETTINGS, **settings}.items()
            for part in ("-s", f"{setting}={value}")
        ]
        path = self.cluster.path / f"{name}.log"
        self._logs.append(path)
        with path.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *program, "run", "apps.wordcount", *pairs]
                + ["--state-dir", str(self.cluster.path / name)],
                cwd=ROOT,
                env={**os.environ, "PYSTREAMS_BOOTSTRAP_SERVERS": self.cluster.bootstrap_servers},
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def members(self) -> int:
        return len(self.cluster.admin.group_members(APPLICATION))

    def stop_all(self) -> None:
        """Stop the processes that still run, each with a last commit; one that is only starting just ends."""
        running = [process for process in self.processes if process.poll() is None]
        for process in running:
            process.terminate()
        codes = {process.wait(60) for process in running}
        assert codes <= {0, -signal.SIGTERM}, f"{codes}\n{self.printed()}"

    def kill_all(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()

    def printed(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in dict.fromkeys(self._logs))

    def done(self) -> None:
        """Wait until everything is processed and committed."""
        try:
            eventually(self._all_is_committed, "all is committed")
        except AssertionError:
            print(self.printed())
            raise

    def _all_is_committed(self) -> bool:
        try:
            return self.cluster.all_committed(APPLICATION, *READ)
        except BrokerUnavailableError:
            return False  # a broker that was killed, or an open transaction that its coordinator still has to end

    def check(self) -> None:
        """Every word was counted from one to its number, each count once, in order. The changelog ends in the same way:
        compaction may have taken its beginning."""
        outputs, changes = self._values("word-counts"), self._values("wordcount-counts-changelog")
        expected = {word: list(range(1, count + 1)) for word, count in self.counts.items()}
        wrong = {
            word: _difference(outputs[word], numbers)
            for word, numbers in expected.items()
            if outputs[word] != numbers
        }
        assert not wrong, f"{wrong}\n{self.printed()}"
        assert outputs.keys() == expected.keys()
        ends = {word: expected[word][-len(values) :] for word, values in changes.items()}
        assert changes == ends, self.printed()
        assert changes.keys() == expected.keys()

    def _values(self, topic: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for record in self.cluster.read(topic):
            found[record.key].append(record.value)
        return found


def _difference(found: list[int], expected: list[int]) -> str:
    at = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), None)
    around = "none" if at is None else str(found[max(0, at - 2) : at + 3])
    return f"{len(found)} of {len(expected)}, first difference {around}"
