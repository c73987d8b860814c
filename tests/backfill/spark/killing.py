"""Ends of processes: a driver with all that belongs to it, a worker at work, a worker that publishes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark import TaskContext

from pystreams.backfill.application import Application, LoadedApplication
from pystreams.backfill.compute.executor import PartitionFunction, Report, SliceJob
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.broker.embedded.transactions import EmbeddedTransactionalProducer
from pystreams.broker.kafka.transactions import KafkaTransactionalProducer
from pystreams.engine.hosted_task import HostedTask
from tests.backfill.random_topologies import StopError
from tests.live.support import eventually

_DRIVER_TIMEOUT_S = 300


def killed_driver(module: str, *arguments: str) -> None:
    """Run a driver that kills itself, and stop its JVM and its workers as a dead machine would.

    They are all of one session; Python's workers have a process group of their own.
    """
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    with tempfile.TemporaryFile("w+") as told:
        with subprocess.Popen(command, stdout=told, stderr=told, start_new_session=True) as process:
            try:
                code = process.wait(_DRIVER_TIMEOUT_S)
            finally:
                kill_session(process.pid)
        told.seek(0)
        assert code == -signal.SIGKILL, told.read()[-5000:]


def kill_session(session: int) -> None:
    """End all processes of a session, and wait until none is left."""

    def left() -> list[int]:
        found = list(_of_session(session))
        for pid in found:
            # One that has ended by itself since then is not there to be killed.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return found

    eventually(lambda: not left(), "the driver's processes end")


def _of_session(session: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (
                    (entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
                )
            except (FileNotFoundError, ProcessLookupError):
                continue
            # State, parent, group, session: one that is dead already waits to be asked for.
            if int(fields[3]) == session and fields[0] != "Z":
                yield int(entry.name)


@dataclass(frozen=True)
class _DeadlyApplication:
    """In a worker, the first commit of a task kills it, once for each sub-topology: it leaves a file first."""

    application: Application
    marker: Path

    def load(self) -> LoadedApplication:
        if TaskContext.get() is not None:
            _arm(self.marker)
        return self.application.load()


def _arm(marker: Path) -> None:
    flush = HostedTask.flush

    def deadly(self: HostedTask) -> None:
        try:
            Path(f"{marker}-{self.stream.task_id.subtopology}").touch(exist_ok=False)
        except FileExistsError:
            flush(self)
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    # A worker that lives on runs other tasks: what it does then is the same as before.
    patch.object(HostedTask, "flush", deadly).start()


class Deadly(SparkExecutor):
    def __init__(self, executor: SparkExecutor, marker: Path) -> None:
        super().__init__(executor._session)
        self._marker = marker

    def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
        work = replace(job.work, application=_DeadlyApplication(job.work.application, self._marker))
        return super().compute(replace(job, work=work), report)


class Stopping(SparkExecutor):
    """Dies when a slice is staged, and the manifest does not say so yet."""

    def __init__(self, executor: SparkExecutor, slice: int) -> None:
        super().__init__(executor._session)
        self._slice = slice
        self.computed: list[int] = []

    def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
        outcomes = super().compute(job, report)
        self.computed.append(job.work.slice.index)
        if job.work.slice.index == self._slice:
            raise StopError
        return outcomes


@dataclass(frozen=True)
class KilledOnce:
    """What publishes a store partition: its worker is killed when all is sent and nothing committed, once."""

    function: PartitionFunction
    marker: Path

    def __call__(self, partition: int, batches: Iterator[Any]) -> bytes:
        if not self.marker.exists():
            for producer in (EmbeddedTransactionalProducer, KafkaTransactionalProducer):
                patch.object(producer, "commit", self._kill).start()
        return self.function(partition, batches)

    def _kill(self) -> None:
        self.marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
