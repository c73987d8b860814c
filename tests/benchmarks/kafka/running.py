"""One run: a fresh output, group and state; start, watch, stop, read what was written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.kafka.cluster import PARTITIONS, Cluster
from tests.benchmarks.kafka.observer import Observer, Sample, Steady, StuckError, steady
from tests.benchmarks.kafka.outputs import Output, read_output
from tests.benchmarks.kafka.peers import Command, Peer, Run
from tests.benchmarks.kafka.processes import ProcessTree
from tests.kafka.server import ROOT

_STOP_TIMEOUT_S = 60.0
_LOG_LINES = 25
#: What a process that was told to stop ends with; Java says 128 + SIGTERM although it stopped cleanly.
CLEAN_EXITS = {0, 128 + signal.SIGTERM}


@dataclass(frozen=True)
class Result:
    """What was measured of one run. ``startup_s``: from the start of its processes to the first commit."""

    job: str
    peer: str
    threads: int
    repeat: int
    records: int
    seconds: float
    startup_s: float
    steady: Steady
    peak_rss_bytes: int
    output_records: int

    @property
    def rate(self) -> float:
        """Input records per second, steady."""
        return self.steady.records / self.steady.seconds

    @property
    def cpu_us(self) -> float:
        """CPU of the application per input record, in microseconds."""
        return 1e6 * self.steady.cpu_s / self.steady.records

    @property
    def cores(self) -> float:
        """Cores that the application kept busy."""
        return self.steady.cpu_s / self.steady.seconds

    @property
    def broker_cores(self) -> float:
        """Cores that the broker kept busy; 0 if it is not ours."""
        return self.steady.broker_cpu_s / self.steady.seconds


class RunFailedError(RuntimeError):
    """An application failed, stopped working, or would not stop; with the end of its log."""


def measure(cluster: Cluster, peer: Peer, run: Run, main_topic: str, repeat: int) -> tuple[Result, Output]:
    """Do one run; only its output topic stays. Raises ``RunFailedError``.

    ``main_topic`` is the input whose records are counted.
    """
    shutil.rmtree(run.folder, ignore_errors=True)
    run.folder.mkdir(parents=True)
    cluster.create(run.output)
    inputs = cluster.records(run.inputs)
    samples, peak_rss_bytes = _watched(cluster, peer, run, inputs)
    cluster.delete(lambda name: name.startswith(f"{run.application_id}-"))  # its internal topics
    output = read_output(cluster.bootstrap_servers, run.job, run.output, PARTITIONS)
    result = Result(
        job=run.job,
        peer=peer.name,
        threads=run.threads,
        repeat=repeat,
        records=inputs[main_topic],
        seconds=samples[-1].time_s,
        startup_s=next(sample.time_s for sample in samples if any(sample.committed.values())),
        steady=steady(samples, inputs[main_topic]),
        peak_rss_bytes=peak_rss_bytes,
        output_records=output.records,
    )
    return result, output


def _watched(cluster: Cluster, peer: Peer, run: Run, inputs: dict[str, int]) -> tuple[list[Sample], int]:
    log = run.folder / "log.txt"
    try:
        with (
            closing(Observer(cluster.bootstrap_servers, run.application_id, inputs, run.output)) as observer,
            started(peer.commands(run), log) as processes,
        ):
            application = ProcessTree(process.pid for process in processes)
            samples = observer.watch(
                application,
                ProcessTree(cluster.broker_pids),
                lambda: all(process.poll() is None for process in processes),
            )
            peak_rss_bytes = application.read().peak_rss_bytes
    except StuckError as error:
        raise RunFailedError(with_log(str(error), log)) from error
    for process in processes:
        if abs(process.returncode) not in CLEAN_EXITS:
            raise RunFailedError(with_log(f"{run.application_id} ended with {process.returncode}", log))
    return samples, peak_rss_bytes


def with_log(what: str, log: Path) -> str:
    """What happened, and the end of the log."""
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
    return "\n".join([f"{what}; the end of {log}:", *lines])


@contextmanager
def started(commands: Sequence[Command], log: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that run; told to stop at the end, and waited for."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("ab") as out:
            for command in commands:
                processes.append(  # noqa: PERF401 - those that have started are stopped if one does not start
                    subprocess.Popen(
                        command.arguments,
                        cwd=ROOT,
                        env={**os.environ, **command.environment},
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=out,
                    )
                )
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
