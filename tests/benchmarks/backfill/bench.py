"""The bench: for each job and each way its records are spread, all peers in turn on the same records; same results."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tests.benchmarks.backfill.inputs import Input, fill_topic, make_input
from tests.benchmarks.backfill.tables import Table, boil_down, read_rows
from tests.benchmarks.backfill.timing import read_took
from tests.benchmarks.kafka.cluster import cluster
from tests.benchmarks.kafka.peers import PEERS, Run
from tests.benchmarks.kafka.processes import ProcessTree
from tests.benchmarks.kafka.running import RunFailedError, measure
from tests.kafka.server import ROOT

JOBS = ("wordcount", "windows", "declared")
SPREADS = ("even", "skewed")

#: Who is measured. ``live``: two workers on a Kafka of our own; ``spark``: a backfill; ``processes``: the same without
#: Spark, in two processes; ``inline``: in one; ``loop`` and ``sql``: no pystreams at all.
PEER_NAMES = ("live", "spark", "processes", "inline", "loop", "sql")

_SAMPLE_INTERVAL_S = 0.2


@dataclass(frozen=True)
class Options:
    """What to measure."""

    jobs: Sequence[str]
    spreads: Sequence[str]
    peers: Sequence[str]
    records: int
    seed: int
    master: str


@dataclass(frozen=True)
class Measured:
    """One run. ``work_s`` begins when the first records were known to be done: live, the first commit; a backfill,
    its first progress. ``cpu_s`` is the CPU time at work (live: as in the steady part of the run), ``peak_rss_bytes``
    the sum of what each process had at its highest, both without Kafka's broker."""

    job: str
    spread: str
    peer: str
    records: int
    work_s: float
    cpu_s: float
    total_s: float
    peak_rss_bytes: int

    @property
    def rate(self) -> float:
        """Records per second at work."""
        return self.records / self.work_s

    @property
    def cpu_us(self) -> float:
        """CPU time for a record, in microseconds: it depends less than the rate on what else the machine does."""
        return 1e6 * self.cpu_s / self.records


class ResultsDifferError(AssertionError):
    """A run did not come to what the input adds up to, or two did not come to the same."""


class Bench:
    """Keeps everything below ``folder``, and deletes it as soon as it is not needed."""

    def __init__(self, folder: Path, options: Options, console: Console) -> None:
        self._folder = folder
        self._options = options
        self._console = console

    def run(self) -> list[Measured]:
        """Run all. Raises ``ResultsDifferError`` and ``RunFailedError``."""
        return [
            measured
            for job in self._options.jobs
            for spread in self._options.spreads
            for measured in self._compare(job, spread)
        ]

    def _compare(self, job: str, spread: str) -> list[Measured]:
        options, archive = self._options, self._folder / f"{job}-{spread}"
        input = make_input(job, archive, options.records, options.seed, skewed=spread == "skewed")
        self._console.print(f"{job}, {spread}: {options.records:,} records in {_size(archive)}")
        found: list[Measured] = []
        first: tuple[str, Table] | None = None
        for peer in options.peers:
            measured, table = (
                self._live(input, spread) if peer == "live" else self._process(input, spread, peer)
            )
            _check(input, peer, table, first)
            first = first or (peer, table)
            found.append(measured)
            self._console.print(
                f"{job}, {spread}, {peer}: {measured.rate:,.0f} records/s, {measured.work_s:.1f} s at work,"
                f" {measured.cpu_us:.2f} µs of CPU time a record,"
                f" {measured.total_s:.1f} s in all, {measured.peak_rss_bytes / (1 << 20):,.0f} MiB"
            )
        shutil.rmtree(archive)
        return found

    def _live(self, input: Input, spread: str) -> tuple[Measured, Table]:
        """A broker of its own: it has its memory for this run alone, and takes none from the others."""
        folder = self._folder / "live"
        with cluster(folder, None) as found:
            found.create(input.topic)
            fill_topic(found.bootstrap_servers, input)
            name = f"bench-{input.job}"
            run = Run(
                job=input.job,
                application_id=name,
                bootstrap_servers=found.bootstrap_servers,
                inputs=(input.topic,),
                output=f"{name}_out",
                folder=folder / name,
                threads=2,
            )
            result, output = measure(found, PEERS["pystreams"], run, input.topic, 1)
        shutil.rmtree(folder)
        rows = (
            (key, int.from_bytes(value, "big")) for key, (_, value) in output.table.items() if key and value
        )
        measured = Measured(
            input.job,
            spread,
            "live",
            input.records,
            result.seconds - result.startup_s,
            1e-6 * result.cpu_us * input.records,
            result.seconds,
            result.peak_rss_bytes,
        )
        return measured, boil_down(rows)

    def _process(self, input: Input, spread: str, peer: str) -> tuple[Measured, Table]:
        output, staging = self._folder / "output", self._folder / "staging"
        for left in (output, staging):
            shutil.rmtree(left, ignore_errors=True)
            left.unlink(missing_ok=True)
        began = time.monotonic()
        told, peak_rss_bytes = _watched(
            self._command(peer, spread, [input.job, str(input.folder), str(output)], str(staging))
        )
        total_s = time.monotonic() - began
        measured = Measured(input.job, spread, peer, input.records, *read_took(told), total_s, peak_rss_bytes)
        return measured, read_rows(output)

    def _command(self, peer: str, spread: str, arguments: list[str], staging: str) -> list[str]:
        module, more = {
            "spark": ("backfilled", [spread, self._options.master, staging]),
            "processes": ("backfilled", [spread, "processes", staging]),
            "inline": ("backfilled", [spread, "none", staging]),
            "loop": ("plain_loop", []),
            "sql": ("native_sql", [self._options.master]),
        }[peer]
        return [sys.executable, "-m", f"tests.benchmarks.backfill.{module}", *arguments, *more]


def _check(input: Input, peer: str, table: Table, first: tuple[str, Table] | None) -> None:
    if table.total != input.total:
        raise ResultsDifferError(
            f"{input.job}: the results of {peer} add up to {table.total:,}, not to {input.total:,}"
        )
    if first is not None and table != first[1]:
        raise ResultsDifferError(f"{input.job}: {first[0]} has {first[1]}, {peer} has {table}")


def _watched(command: Sequence[str]) -> tuple[str, int]:
    """Run a process. Gives what it printed, and the memory of it and its children at its highest."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        tree, ended = ProcessTree([process.pid]), threading.Event()

        def sample() -> None:
            # Children come and go: they are looked for as long as the process is there.
            while not ended.wait(_SAMPLE_INTERVAL_S):
                tree.read()

        sampling = threading.Thread(target=sample)
        sampling.start()
        try:
            out, said = process.communicate()
        except BaseException:
            process.terminate()
            raise
        finally:
            ended.set()
            sampling.join()
    if process.returncode:
        raise RunFailedError(f"{' '.join(command)} ended with {process.returncode}:\n{said[-3000:]}")
    return out, tree.read().peak_rss_bytes


def _size(folder: Path) -> str:
    return f"{sum(path.stat().st_size for path in folder.iterdir()) / (1 << 20):,.0f} MiB of Parquet"
