"""An application with many tasks and stores, and what it takes to start, to process, to commit and to stop."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pystreams.app import App
from tests.live.support import Log, caught_up, running

TOPIC, OUT = "in", "out"
#: On average.
_KEYS_OF_PARTITION = 5


@dataclass(frozen=True)
class Size:
    """``stores`` is the number of stores of each task; each partition of the input is a task."""

    partitions: int
    stores: int
    threads: int = 1


@dataclass(frozen=True)
class Step:
    """What one step took, and what the process had at its end. ``memory_mib`` is resident."""

    name: str
    seconds: float
    cpu_seconds: float
    memory_mib: int
    open_files: int


class Measured:
    """Runs the application twice on a log, and measures ``steps``."""

    def __init__(self, log: Log, size: Size) -> None:
        self.steps: list[Step] = []
        self._log = log
        self._size = size
        self._keys = [f"key-{number}" for number in range(_KEYS_OF_PARTITION * size.partitions)]

    def run(self) -> None:
        """Raises ``AssertionError`` if a result is wrong."""
        size, log = self._size, self._log
        with self._step("topics and input"):
            log.create(TOPIC, partitions=size.partitions)
            log.create(OUT)
            self._write(1_000)
        for run in (1, 2):
            streams = log.start(self._app())
            with self._step(f"run {run}: start"):
                running(streams)
            with self._step(f"run {run}: catch up"):
                caught_up(streams)
            with self._step(f"run {run}: a record for each key"):
                self._write(1_000 + run)
                caught_up(streams)
            with self._step(f"run {run}: one record"):
                log.write(TOPIC, [(self._keys[0], 0, 2_000)])
                caught_up(streams)
            with self._step(f"run {run}: stop"):
                assert streams.close(600_000)
        self._check()

    def _app(self) -> App:
        app = self._log.app("large", num_stream_threads=self._size.threads, commit_interval_ms=1_000)
        grouped = app.stream(TOPIC, key=str, value=int).group_by_key()
        for store in range(self._size.stores):
            sums = grouped.reduce(int.__add__, name=f"sums-{store}").to_stream()
            if store == 0:
                sums.to(OUT)
        return app

    def _write(self, timestamp: int) -> None:
        self._log.write(TOPIC, [(key, 1, timestamp) for key in self._keys])

    def _check(self) -> None:
        assert self._log.table(OUT) == dict.fromkeys(self._keys, 3)

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        began, cpu_began = time.perf_counter(), time.process_time()
        yield
        took, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        self.steps.append(Step(name, took, cpu, _memory_mib(), _open_files()))


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _memory_mib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20
