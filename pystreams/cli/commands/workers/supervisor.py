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
from pystreams.cli.commands.workers.living import A, LivingWorker, Request
from pystreams.cli.commands.workers.process import WorkerProcess
from pystreams.cli.commands.workers.silent import SilentWorker
from pystreams.cli.commands.workers.spare import Spare
from pystreams.cli.garbage import leave_out_what_stays
from pystreams.cli.stacks import on_stacks_request
from pystreams.cli.terminal.console import EnduringStream
from pystreams.cli.terminal.exits import Exit
from pystreams.cli.terminal.journal import parted
from pystreams.cli.terminal.last_line import LastCounts, log_last_line
from pystreams.cli.terminal.logs import LogOptions, command_log, json_of_worker
from pystreams.cli.terminal.show_error import on_the_same_log, show_parts
from pystreams.cli.watching import WatchOptions, shown
from pystreams.clock import Clock, SystemClock
from pystreams.meter import Meter
from pystreams.metrics import Sample, names
from pystreams.plural import counted
from pystreams.runtime.health import Health
from pystreams.runtime.signals import stop_on_signals
from pystreams.runtime.supervisor.supervision import Instruction, Kill, Note, Start, Stop, Supervision
from pystreams.runtime.supervisor.worker import Failure, Measured, Report
from pystreams.serving.address import Endpoint
from pystreams.serving.lag import WAIT_S, Lag
from pystreams.serving.live.look import ClientLook, Described, Look, WorkerLook
from pystreams.serving.stores.asking import Answerer, Together
from pystreams.serving.threads import ClientThreads

_WAIT_S: Final = 0.1

#: A question to the workers waits at most this long for their answers.
_LOOK_S: Final = 1.0

#: The live page shows the last look at a worker for this time. Then the worker does not answer.
_SHOWN_MS: Final = 5_000
_SILENT: Final = "does not answer"

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

    worker: LivingWorker
    readable: _Readable
    take: Callable[[LivingWorker, Any], None]


class Supervisor:
    """Carries out the decisions of a ``Supervision`` with real processes. All of them have ended when the ``with``
    block ends."""

    def __init__(self, supervision: Supervision, jobs: Mapping[int, Job], clock: Clock) -> None:
        self.supervision = supervision
        #: Where other instances can ask for the workers' stores.
        self.endpoint: Endpoint | None = None
        #: What the workers have in common.
        self.described: Described | None = None
        self._jobs = jobs
        self._clock = clock
        #: The workers that have a process, by number.
        self._living: dict[int, LivingWorker] = {}
        #: Exists once a worker is one for whose next process the group would wait.
        self._spare: Spare | None = None
        #: Guards the answers: held when one arrives, and by threads that wait for them.
        self._heard = threading.Condition()
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_spare()
        for worker in self._living.values():
            worker.process.kill()
        for worker in list(self._living.values()):
            self._bury(worker)
        self._selector.close()

    def run(self, stop: threading.Event, on_progress: Callable[[], None]) -> None:
        """Run until all workers have ended; set ``stop`` to stop them."""
        self._carry_out(self.supervision.begin())
        while not self.supervision.over:
            if stop.is_set() and not self.supervision.stopping:
                command_log.info("Stopping: the workers commit and leave; a second Ctrl-C kills them.")
                self._carry_out(self.supervision.stop())
            self._read_what_is_there(_WAIT_S)
            for worker in list(self._living.values()):
                process = worker.process
                code = process.exit_code()
                if code is not None:
                    self._bury(worker)
                    self._carry_out(self.supervision.ended(process.number, code, list(process.last_lines)))
                else:
                    process.tick()
            self._carry_out(self.supervision.tick())
            self._tick_spare()
            if not self.supervision.over:
                on_progress()

    def pids(self) -> dict[int, int]:
        """The processes that are alive, by worker number."""
        return {number: worker.process.pid for number, worker in list(self._living.items())}

    def answerers(self) -> dict[int, Answerer]:
        """Whom to ask about the stores of each worker that has a process. From any thread."""
        found: dict[int, Answerer] = {}
        for number, living in list(self._living.items()):
            silent_ms = self.supervision.silent_ms(number)
            found[number] = living.line if silent_ms is None else SilentWorker(number, silent_ms)
        return found

    def measured(self) -> list[Measured]:
        """The last metrics of each worker that has a process."""
        return [one.measured for one in list(self._living.values()) if one.measured is not None]

    def ask_for_stacks(self) -> None:
        """Have all workers log where their threads are."""
        for worker in list(self._living.values()):
            worker.process.ask_for_stacks()

    def looks(self, *, with_group: bool) -> dict[int, ClientLook | None]:
        """The last look at each worker that answers questions, by number, after all were asked and had a moment to
        answer; None: there was none yet. From any thread. ``with_group``: one of those that are not silent also has the
        log asked."""
        asked = self._at_work()
        with self._heard:
            first = min(
                (number for number, worker in asked.items() if not worker.owes(ClientLook)), default=None
            )
        self._ask(
            ClientLook, asked, lambda number: LookRequest(with_group=with_group and number == first), _LOOK_S
        )
        with self._heard:
            return {n: worker.last(ClientLook) for n, worker in asked.items() if not worker.has_ended}

    def threads(self) -> dict[int, ClientThreads]:
        """The activities of each worker's threads, by number, without the workers that do not answer within a moment.
        From any thread."""
        return self._ask(ClientThreads, self._at_work(), lambda _: ThreadsRequest(), _LOOK_S)

    def lag(self) -> Lag:
        """How far the application is behind, from any thread: one worker is asked, another one after it was silent."""
        asked = self._at_work()
        if not asked:
            return Lag(None, why="no worker runs yet")
        with self._heard:
            if all(worker.is_silent_about_lag for worker in asked.values()):
                for worker in asked.values():
                    worker.is_silent_about_lag = False
            number = min(number for number, worker in asked.items() if not worker.is_silent_about_lag)
        worker = asked[number]
        found = self._ask(Lag, {number: worker}, lambda _: LagRequest(), WAIT_S)
        if number in found:
            return found[number]
        if worker.has_ended:
            return Lag(None, why=f"worker {number} has ended")
        with self._heard:
            worker.is_silent_about_lag = True
        return Lag(None, why=f"worker {number} has not answered in {WAIT_S:.0f} s")

    def _at_work(self) -> dict[int, LivingWorker]:
        """The workers that answer questions, by number."""
        workers = self.supervision.workers
        return {n: one for n, one in list(self._living.items()) if workers[n].has_worked}

    def _ask(
        self,
        kind: type[A],
        asked: Mapping[int, LivingWorker],
        request: Callable[[int], Request],
        wait_s: float,
    ) -> dict[int, A]:
        """The answers of these workers that come in ``wait_s``. Those who ask for the same at the same time share an
        answer."""
        before: dict[int, A | None]

        def new() -> dict[int, A]:
            last = {number: worker.last(kind) for number, worker in asked.items()}
            return {n: one for n, one in last.items() if one is not None and one is not before[n]}

        def is_all() -> bool:
            found = new()
            return all(number in found or worker.has_ended for number, worker in asked.items())

        with self._heard:
            before = {number: worker.last(kind) for number, worker in asked.items()}
            for number, worker in asked.items():
                worker.ask(kind, request(number), self._clock.monotonic_ms())
            self._heard.wait_for(is_all, wait_s)
            return new()

    def _carry_out(self, instructions: Sequence[Instruction]) -> None:
        unstarted: dict[int, Failure] = {}
        for instruction in instructions:
            match instruction:
                case Start(number):
                    try:
                        self._start(number)
                    except OSError as error:
                        unstarted[number] = _no_room(error, len(self._living))
                case Stop(number):
                    # A process that could not be started does not have to be stopped.
                    if number in self._living:
                        self._living[number].process.stop()
                case Kill(number):
                    self._living[number].process.kill()
                case Note(text, serious):
                    command_log.log(logging.WARNING if serious else logging.INFO, text)
        for number, failure in unstarted.items():
            self.supervision.heard(number, failure)
            self._carry_out(self.supervision.ended(number, Exit.FAILED))

    def _start(self, number: int) -> None:
        job = msgspec.structs.replace(self._jobs[number], endpoint=self.endpoint)
        process = self._spare.take() if self._spare is not None else None
        if process is None:
            process = WorkerProcess(job.application, number)
        process.begin(job)
        self._living[number] = worker = LivingWorker(process)
        for source in (
            _Source(worker, process.channel, self._hear),
            _Source(worker, process.output, _relay_output),
            _Source(worker, process.log, _relay_log),
        ):
            self._selector.register(source.readable, selectors.EVENT_READ, source)

    def _tick_spare(self) -> None:
        if self.supervision.stopping:
            self._end_spare()
        elif self._spare is not None:
            self._spare.tick()
        elif any(worker.report.is_awaited for worker in self.supervision.workers.values()):
            self._spare = Spare(next(iter(self._jobs.values())).application, self._clock)

    def _end_spare(self) -> None:
        if self._spare is not None:
            self._spare.close()
            self._spare = None

    def _bury(self, worker: LivingWorker) -> None:
        """Read the last output of a process that has ended, and forget it. Its children may keep its pipes open and go
        on writing, so this does not wait for the end of the pipes."""
        for _ in range(_LAST_READS_MAX):
            if not self._read_what_is_there(0, worker):
                break
        for source in self._sources(worker):
            self._selector.unregister(source.readable)
        del self._living[worker.process.number]
        worker.line.hang_up()
        with self._heard:
            worker.has_ended = True
            self._heard.notify_all()
        worker.process.close()

    def _sources(self, worker: LivingWorker) -> list[_Source]:
        return [key.data for key in self._selector.get_map().values() if key.data.worker is worker]

    def _read_what_is_there(self, wait_s: float, only: LivingWorker | None = None) -> bool:
        """Read the pipes and channels of one worker or of all; returns whether there was any data."""
        found = False
        for key, _ in self._selector.select(wait_s):
            source: _Source = key.data
            if only is not None and source.worker is not only:
                continue
            found = True
            arrived = source.readable.read()
            if arrived is None:
                self._selector.unregister(source.readable)
                continue
            for piece in arrived:
                source.take(source.worker, piece)
        return found

    def _hear(
        self,
        worker: LivingWorker,
        message: Report | Measured | Described | ClientLook | ClientThreads | Lag | Failure,
    ) -> None:
        match message:
            case Measured():
                worker.measured = message
            case Described():
                self.described = message
            case ClientLook() | ClientThreads() | Lag():
                with self._heard:
                    worker.heard(message)
                    self._heard.notify_all()
            case _:
                self.supervision.heard(worker.process.number, message)


class WatchedWorkers:
    """All workers together. Implements ``serving.watched.Watched``."""

    def __init__(self, supervisor: Supervisor, ready_lag: int | None, clock: Clock) -> None:
        self._supervisor = supervisor
        self._ready_lag = ready_lag
        self._clock = clock

    def application_id(self) -> str | None:
        return next((one.application_id for one in self._supervisor.measured()), None)

    def health(self) -> Health:
        return self._supervisor.supervision.health(self._ready_lag)

    def samples(self) -> Mapping[str, Sequence[Sample]]:
        own = [
            Sample(names.WORKER_RESTARTS, (("worker", str(worker.number)),), worker.restarts, counts=True)
            for worker in list(self._supervisor.supervision.workers.values())
        ]
        clients = {one.client_id: one.samples for one in self._supervisor.measured()}
        # A client has no id before its start.
        return {**clients, "": [*own, *clients.get("", ())]}

    def lag(self) -> Lag:
        return self._supervisor.lag()

    def threads(self) -> Sequence[ClientThreads]:
        return [client for _, client in sorted(self._supervisor.threads().items())]

    def described(self) -> Described | None:
        if self._supervisor.described is None:
            self._supervisor.looks(with_group=False)
        return self._supervisor.described

    def look(self, *, with_group: bool) -> Look:
        supervisor = self._supervisor
        looks = supervisor.looks(with_group=with_group)
        now_ms = self._clock.now_ms()
        shown = {
            number: client
            for number, client in sorted(looks.items())
            if client is not None and now_ms - client.at_ms < _SHOWN_MS
        }
        silent = looks.keys() - shown.keys()
        pids = supervisor.pids()
        groups = [client.group for client in shown.values() if client.group is not None]
        return Look(
            now_ms,
            self.health(),
            [msgspec.structs.replace(client, group=None) for client in shown.values()],
            [
                WorkerLook(
                    worker.number,
                    _SILENT if worker.number in silent else worker.shown_state,
                    worker.restarts,
                    pids.get(worker.number),
                )
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
        Supervisor(supervision, {job.number: job for job in jobs}, clock) as supervisor,
        on_stacks_request(supervisor.ask_for_stacks),
        shown(
            WatchedWorkers(supervisor, watch.ready_lag, clock), lambda: Together(supervisor.answerers), watch
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


def _relay_output(_worker: LivingWorker, line: str) -> None:
    _print(line, sys.stdout)


def _relay_log(worker: LivingWorker, line: str) -> None:
    process = worker.process
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
