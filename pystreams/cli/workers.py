"""``pystreams run --workers N``: starts the workers, keeps them alive, shows their progress, stops them together."""

from __future__ import annotations

import os
import selectors
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

from pystreams.cli.console import log_to_stderr, note, show_parts
from pystreams.cli.progress import Meter
from pystreams.cli.worker_channel import Job
from pystreams.cli.worker_process import WorkerProcess
from pystreams.cli.workers_display import workers_display_for_terminal
from pystreams.clock import SystemClock
from pystreams.runtime.signals import stop_on_signals
from pystreams.runtime.workers import Failure, Instruction, Kill, Report, Start, Stop, Supervision, Tell

_WAIT_S = 0.1


class _Readable(Protocol):
    """What a worker talks into."""

    def fileno(self) -> int: ...

    def read(self) -> Sequence[Any] | None:
        """What has arrived; None at the end."""
        ...


@dataclass(frozen=True, slots=True)
class _Source:
    """Where something of a worker comes from, and who takes each piece."""

    process: WorkerProcess
    readable: _Readable
    take: Callable[[WorkerProcess, Any], None]


class Supervisor:
    """Carries out what a ``Supervision`` decides, with real processes. None of them is left when its block ends."""

    def __init__(self, supervision: Supervision, jobs: Mapping[int, Job]) -> None:
        self.supervision = supervision
        self._jobs = jobs
        self._processes: dict[int, WorkerProcess] = {}
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.kill()
        for process in list(self._processes.values()):
            self._bury(process)
        self._selector.close()

    def run(self, stop: threading.Event, on_progress: Callable[[], None]) -> None:
        """Until all workers have ended; setting ``stop`` tells them to."""
        self._carry_out(self.supervision.begin())
        while not self.supervision.over:
            if stop.is_set() and not self.supervision.stopping:
                self._carry_out(self.supervision.stop())
            self._read_what_is_there(_WAIT_S)
            for process in list(self._processes.values()):
                code = process.exit_code()
                if code is not None:
                    self._bury(process)
                    self._carry_out(self.supervision.ended(process.number, code, list(process.last_lines)))
            self._carry_out(self.supervision.tick())
            if not self.supervision.over:
                on_progress()

    def pids(self) -> dict[int, int]:
        """The processes that are there, by the workers' numbers."""
        return {number: process.pid for number, process in self._processes.items()}

    def _carry_out(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Start(number):
                    self._start(number)
                case Stop(number):
                    self._processes[number].stop()
                case Kill(number):
                    self._processes[number].kill()
                case Tell(text):
                    note(text)

    def _start(self, number: int) -> None:
        process = WorkerProcess(self._jobs[number])
        self._processes[number] = process
        for source in (
            _Source(process, process.channel, self._hear),
            _Source(process, process.output, _relay_output),
            _Source(process, process.log, _relay_log),
        ):
            self._selector.register(source.readable, selectors.EVENT_READ, source)

    def _bury(self, process: WorkerProcess) -> None:
        """Hear what it has said last, and forget it. Its own children may hold its pipes open: no end is waited for."""
        while self._read_what_is_there(0, process):
            pass
        for source in self._sources(process):
            self._selector.unregister(source.readable)
        del self._processes[process.number]
        process.close()

    def _sources(self, process: WorkerProcess) -> list[_Source]:
        return [key.data for key in self._selector.get_map().values() if key.data.process is process]

    def _read_what_is_there(self, wait_s: float, only: WorkerProcess | None = None) -> bool:
        """Of one worker or of all; True if there was anything."""
        found = False
        for key, _ in self._selector.select(wait_s):
            source: _Source = key.data
            if only is not None and source.process is not only:
                continue
            found = True
            arrived = source.readable.read()
            if arrived is None:
                self._selector.unregister(source.readable)
                continue
            for piece in arrived:
                source.take(source.process, piece)
        return found

    def _hear(self, process: WorkerProcess, message: Report | Failure) -> None:
        self.supervision.heard(process.number, message)


def run_workers(jobs: Sequence[Job], *, until_caught_up: bool, verbose: bool) -> int:
    """Run one worker for each job until a signal, the end of the input or a failure; gives the exit code."""
    clock = SystemClock()
    supervision = Supervision(len(jobs), clock, until_caught_up=until_caught_up)
    meter = Meter(clock)
    log_to_stderr(verbose)
    stop = threading.Event()
    with (
        stop_on_signals(stop),
        workers_display_for_terminal(meter, clock) as display,
        Supervisor(supervision, {job.number: job for job in jobs}) as supervisor,
    ):
        supervisor.run(stop, lambda: display.update(supervision, supervisor.pids()))
    meter.update(supervision.summary().records)
    return _tell_the_end(supervision, meter)


def _tell_the_end(supervision: Supervision, meter: Meter) -> int:
    failure = supervision.failure
    if failure is not None:
        show_parts(
            failure.what,
            where=failure.where,
            line=failure.line,
            why=failure.why,
            log=failure.log,
            next=failure.hint,
        )
        if not supervision.has_run:
            return failure.exit_code
    numbers = f"{_counted(meter.processed, 'record')} in {meter.elapsed_s():.1f} s"
    workers = _counted(len(supervision.workers), "worker")
    restarts = _counted(supervision.summary().restarts, "restart")
    ending = "Stopped, and all is committed" if failure is None else "Stopped by a failure"
    note(f"{ending}: {numbers}, {workers}, {restarts}.")
    return 0 if failure is None else failure.exit_code


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _relay_output(_process: WorkerProcess, line: str) -> None:
    _print(line, sys.stdout)


def _relay_log(process: WorkerProcess, line: str) -> None:
    process.last_lines.append(line)
    _print(f"worker {process.number} | {line}", sys.stderr)


def _print(line: str, stream: TextIO) -> None:
    """Whoever read our output may be gone: the workers go on."""
    try:
        print(line, file=stream, flush=True)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
