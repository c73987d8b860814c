"""``pystreams run --workers N``: starts the workers, keeps them alive, shows their progress, stops them together."""

from __future__ import annotations

import logging
import selectors
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self, TextIO

import msgspec

from pystreams.cli.commands.workers.channel import Job, LagRequest, LookRequest, ThreadsRequest
from pystreams.cli.commands.workers.display import workers_display_for
from pystreams.cli.commands.workers.process import WorkerProcess
from pystreams.cli.garbage import leave_out_what_stays
from pystreams.cli.stacks import on_stacks_request
from pystreams.cli.terminal.console import EnduringStream
from pystreams.cli.terminal.exits import Exit
from pystreams.cli.terminal.journal import parted
from pystreams.cli.terminal.last_line import LastCounts, counted, log_last_line
from pystreams.cli.terminal.logs import LogOptions, command_log, json_of_worker
from pystreams.cli.terminal.show_error import on_the_same_log, show_parts
from pystreams.cli.watching import WatchOptions, shown
from pystreams.clock import Clock, SystemClock
from pystreams.meter import Meter
from pystreams.metrics import Sample, names
from pystreams.runtime.health import Health
from pystreams.runtime.signals import stop_on_signals
from pystreams.runtime.supervisor.supervision import Instruction, Kill, Note, Start, Stop, Supervision
from pystreams.runtime.supervisor.worker import Failure, Measured, Report
from pystreams.serving.lag import WAIT_S, Lag
from pystreams.serving.live.look import ClientLook, Described, Look, WorkerLook
from pystreams.serving.stores.asking import Together
from pystreams.serving.stores.lines import Line
from pystreams.serving.threads import ClientThreads

_WAIT_S: Final = 0.1

#: A look at the workers waits at most this long for their answers. It then shows the previous answer of any worker that
#: has not answered.
_LOOK_S: Final = 1.0

#: A number of reads that empties any pipe or socket.
_LAST_READS_MAX: Final = 8


class _Readable(Protocol):
    """A pipe or channel to which a worker writes."""

    def fileno(self) -> int: ...

    def read(self) -> Sequence[Any] | None:
        """The items that have arrived; None at the end."""
        ...


@dataclass(frozen=True, slots=True)
class _Source:
    """A pipe or channel of a worker, and the function that gets each item from it."""

    process: WorkerProcess
    readable: _Readable
    take: Callable[[WorkerProcess, Any], None]


class Supervisor:
    """Carries out the decisions of a ``Supervision`` with real processes. All of them have ended when the ``with``
    block ends."""

    def __init__(self, supervision: Supervision, jobs: Mapping[int, Job]) -> None:
        self.supervision = supervision
        #: The last metrics of each worker that has a process.
        self.measured: dict[int, Measured] = {}
        #: Where to ask each worker that has a process about its stores.
        self.lines: dict[int, Line] = {}
        #: Where other instances can ask for the workers' stores.
        self.endpoint: str | None = None
        #: The last look at each worker that has a process, and what the workers have in common.
        self.looks: dict[int, ClientLook] = {}
        self.described: Described | None = None
        #: The activities of the threads of each worker, as of the last question.
        self.threads: dict[int, ClientThreads] = {}
        self._looked = threading.Condition()
        #: The last lag that each worker has reported, and the workers that were asked and have not answered.
        self._lags: dict[int, Lag] = {}
        self._silent: set[int] = set()
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
        """Run until all workers have ended; set ``stop`` to stop them."""
        self._carry_out(self.supervision.begin())
        while not self.supervision.over:
            if stop.is_set() and not self.supervision.stopping:
                command_log.info("Stopping: the workers commit and leave; a second Ctrl-C kills them.")
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
        """The processes that are alive, by worker number."""
        return {number: process.pid for number, process in self._processes.items()}

    def ask_for_stacks(self) -> None:
        """Have all workers log where their threads are."""
        for process in list(self._processes.values()):
            process.ask_for_stacks()

    def ask_for_looks(self, *, with_group: bool) -> None:
        """Ask all workers what they look like now, from any thread, and wait a moment for their answers.
        ``with_group``: one of them also has the log asked."""
        asked = self._at_work()
        first = min(asked, default=0)
        self._ask(asked, lambda number: LookRequest(with_group=with_group and number == first), self.looks)

    def ask_for_threads(self) -> None:
        """The same for what their threads are at."""
        self._ask(self._at_work(), lambda _: ThreadsRequest(), self.threads)

    def _at_work(self) -> dict[int, WorkerProcess]:
        """The workers that answer, by their numbers."""
        workers = self.supervision.workers
        return {n: one for n, one in list(self._processes.items()) if workers[n].has_worked}

    def _ask(
        self,
        asked: Mapping[int, WorkerProcess],
        request: Callable[[int], LookRequest | ThreadsRequest],
        answers: Mapping[int, object],
    ) -> None:
        before = dict(answers)
        for number, process in asked.items():
            process.channel.send(request(number))
        with self._looked:
            self._looked.wait_for(
                lambda: all(answers.get(number) is not before.get(number) for number in asked), _LOOK_S
            )

    def ask_for_lag(self) -> Lag:
        """How far the application is behind, from any thread: one worker is asked, another one after it was silent."""
        asked = self._at_work()
        if not asked:
            return Lag(None, why="no worker runs yet")
        with self._looked:
            if self._silent.issuperset(asked):
                self._silent.clear()
            number = min(asked.keys() - self._silent)
            before = self._lags.get(number)
            asked[number].channel.send(LagRequest())
            if self._looked.wait_for(lambda: self._lags.get(number) is not before, WAIT_S):
                return self._lags.get(number) or Lag(None, why=f"worker {number} has ended")
            self._silent.add(number)
        return Lag(None, why=f"worker {number} has not answered in {WAIT_S:.0f} s")

    def _carry_out(self, instructions: Sequence[Instruction]) -> None:
        unstarted: dict[int, Failure] = {}
        for instruction in instructions:
            match instruction:
                case Start(number):
                    try:
                        self._start(number)
                    except OSError as error:
                        unstarted[number] = _no_room(error, len(self._processes))
                case Stop(number):
                    # A process that could not be started does not have to be stopped.
                    if number in self._processes:
                        self._processes[number].stop()
                case Kill(number):
                    self._processes[number].kill()
                case Note(text, serious):
                    command_log.log(logging.WARNING if serious else logging.INFO, text)
        for number, failure in unstarted.items():
            self.supervision.heard(number, failure)
            self._carry_out(self.supervision.ended(number, Exit.FAILED))

    def _start(self, number: int) -> None:
        job = msgspec.structs.replace(self._jobs[number], endpoint=self.endpoint)
        process = WorkerProcess(job)
        self._processes[number] = process
        self.lines[number] = Line(process.questions)
        for source in (
            _Source(process, process.channel, self._hear),
            _Source(process, process.output, _relay_output),
            _Source(process, process.log, _relay_log),
        ):
            self._selector.register(source.readable, selectors.EVENT_READ, source)

    def _bury(self, process: WorkerProcess) -> None:
        """Read the last output of a process that has ended, and forget it. Its children may keep its pipes open and go
        on writing, so this does not wait for the end of the pipes."""
        for _ in range(_LAST_READS_MAX):
            if not self._read_what_is_there(0, process):
                break
        for source in self._sources(process):
            self._selector.unregister(source.readable)
        del self._processes[process.number]
        self.measured.pop(process.number, None)
        self.lines.pop(process.number).hang_up()
        self.looks.pop(process.number, None)
        self.threads.pop(process.number, None)
        with self._looked:
            self._lags.pop(process.number, None)
            self._silent.discard(process.number)
            self._looked.notify_all()
        process.close()

    def _sources(self, process: WorkerProcess) -> list[_Source]:
        return [key.data for key in self._selector.get_map().values() if key.data.process is process]

    def _read_what_is_there(self, wait_s: float, only: WorkerProcess | None = None) -> bool:
        """Read the pipes and channels of one worker or of all; True if there was anything to read."""
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

    def _hear(
        self,
        process: WorkerProcess,
        message: Report | Measured | Described | ClientLook | ClientThreads | Lag | Failure,
    ) -> None:
        match message:
            case Measured():
                self.measured[process.number] = message
            case Described():
                self.described = message
            case ClientLook():
                with self._looked:
                    self.looks[process.number] = message
                    self._looked.notify_all()
            case ClientThreads():
                with self._looked:
                    self.threads[process.number] = message
                    self._looked.notify_all()
            case Lag():
                with self._looked:
                    self._lags[process.number] = message
                    self._looked.notify_all()
            case _:
                self.supervision.heard(process.number, message)


class WatchedWorkers:
    """All workers together. Implements ``serving.watched.Watched``."""

    def __init__(self, supervisor: Supervisor, ready_lag: int | None, clock: Clock) -> None:
        self._supervisor = supervisor
        self._ready_lag = ready_lag
        self._clock = clock

    def health(self) -> Health:
        return self._supervisor.supervision.health(self._ready_lag)

    def samples(self) -> Mapping[str, Sequence[Sample]]:
        own = [
            Sample(names.WORKER_RESTARTS, (("worker", str(worker.number)),), worker.restarts, counts=True)
            for worker in list(self._supervisor.supervision.workers.values())
        ]
        return {"": own, **{one.client_id: one.samples for one in list(self._supervisor.measured.values())}}

    def lag(self) -> Lag:
        return self._supervisor.ask_for_lag()

    def threads(self) -> Sequence[ClientThreads]:
        self._supervisor.ask_for_threads()
        return [client for _, client in sorted(self._supervisor.threads.items())]

    def described(self) -> Described | None:
        if self._supervisor.described is None:
            self._supervisor.ask_for_looks(with_group=False)
        return self._supervisor.described

    def look(self, *, with_group: bool) -> Look:
        supervisor = self._supervisor
        supervisor.ask_for_looks(with_group=with_group)
        clients = [client for _, client in sorted(supervisor.looks.items())]
        pids = supervisor.pids()
        groups = [client.group for client in clients if client.group is not None]
        return Look(
            self._clock.now_ms(),
            self.health(),
            [msgspec.structs.replace(client, group=None) for client in clients],
            [
                WorkerLook(worker.number, worker.shown_state, worker.restarts, pids.get(worker.number))
                for worker in list(supervisor.supervision.workers.values())
            ],
            max(groups, key=lambda group: group.at_ms, default=None),
        )


def run_workers(jobs: Sequence[Job], *, until_caught_up: bool, logs: LogOptions, watch: WatchOptions) -> int:
    """Run one worker for each job until a signal, the end of the input or a failure; returns the exit code. Raises
    ``ConfigError`` if the HTTP server cannot start."""
    clock = SystemClock()
    supervision = Supervision(len(jobs), clock, until_caught_up=until_caught_up)
    meter = Meter(clock)
    stop = threading.Event()
    with (
        stop_on_signals(stop),
        workers_display_for(logs, meter, clock) as display,
        Supervisor(supervision, {job.number: job for job in jobs}) as supervisor,
        on_stacks_request(supervisor.ask_for_stacks),
        shown(
            WatchedWorkers(supervisor, watch.ready_lag, clock), lambda: Together(supervisor.lines.copy), watch
        ) as endpoint,
    ):
        supervisor.endpoint = endpoint
        leave_out_what_stays()
        supervisor.run(stop, lambda: display.update(supervision, supervisor.pids()))
    meter.update(supervision.summary().records)
    return _report_end(supervision, meter, jobs[0].log_options)


def _report_end(supervision: Supervision, meter: Meter, log_options: Sequence[str]) -> int:
    failure = supervision.failure
    if failure is not None:
        show_parts(
            failure.what,
            where=failure.where,
            line=failure.line,
            why=failure.why,
            log=failure.log,
            next=on_the_same_log(failure.hint, log_options),
        )
        if not supervision.has_run:
            return failure.exit_code
    summary = supervision.summary()
    workers = f"{counted(len(supervision.workers), 'worker')}, {counted(summary.restarts, 'restart')}"
    left_out = LastCounts(summary.internal_records, summary.left_out, summary.late, summary.joins)
    log_last_line(meter, left_out, failed=failure is not None, workers=workers)
    return 0 if failure is None else failure.exit_code


def _no_room(error: OSError, started: int) -> Failure:
    return Failure(
        "a worker cannot be started",
        why=f"{error}; {started} are running",
        hint="start fewer workers, or raise the limits of open files and processes (ulimit -n, ulimit -u)",
        action="retry",
    )


def _relay_output(_process: WorkerProcess, line: str) -> None:
    _print(line, sys.stdout)


def _relay_log(process: WorkerProcess, line: str) -> None:
    # The journal looks for a priority before everything else.
    priority, text = parted(line) if process.logs.journal else ("", line)
    process.last_lines.append(text)
    shown = (
        json_of_worker(text, process.number) if process.logs.as_json else f"worker {process.number} | {text}"
    )
    _print(priority + shown, sys.stderr)


def _print(line: str, stream: TextIO) -> None:
    enduring = EnduringStream(stream)
    enduring.write(f"{line}\n")
    enduring.flush()
