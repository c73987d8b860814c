r"""Worker processes of one application under supervision: a pure machine, events in, instructions out.

    STARTING ──> RUNNING ──> BACKING_OFF ──> STARTING
         \          \──> STOPPING ──> ENDED

A worker that dies is started again after a back-off that doubles with each failure in a row. Some failures end the
run instead, since another start would only repeat them: what the worker knows to be the user's to mend, whatever goes
wrong before the application has run at all, and what has happened a few times in the same way.
"""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import msgspec

from pystreams.clock import Clock
from pystreams.runtime.transitions import check_transition


class WorkerState(Enum):
    """STARTING: the process was started and has told nothing. RUNNING: it works. BACKING_OFF: it died, and waits to be
    started again. STOPPING: it was told to stop. ENDED: it will not be started again."""

    STARTING = "starting"
    RUNNING = "running"
    BACKING_OFF = "backing off"
    STOPPING = "stopping"
    ENDED = "ended"


_S = WorkerState

WORKER_SUCCESSORS: Mapping[WorkerState, frozenset[WorkerState]] = {
    _S.STARTING: frozenset({_S.RUNNING, _S.BACKING_OFF, _S.STOPPING, _S.ENDED}),
    _S.RUNNING: frozenset({_S.BACKING_OFF, _S.STOPPING, _S.ENDED}),
    _S.BACKING_OFF: frozenset({_S.STARTING, _S.ENDED}),
    _S.STOPPING: frozenset({_S.ENDED}),
    _S.ENDED: frozenset(),
}

_ALIVE = frozenset({_S.STARTING, _S.RUNNING, _S.STOPPING})


class Report(msgspec.Struct, frozen=True, tag=True):
    """What a worker tells a few times a second. ``state`` is its client's; ``records`` counts what its process has
    processed; ``lag`` is None while it is not known. ``caught_up`` speaks of the whole application. The group takes a
    worker that is silent for ``patience_ms`` for dead (None: it does not)."""

    state: str
    records: int = 0
    lag: int | None = None
    tasks: int = 0
    caught_up: bool = False
    patience_ms: int | None = None


_NOTHING_TOLD = Report("starting")


class Failure(msgspec.Struct, frozen=True, tag=True):
    """Why a worker ends, told by itself: the parts of a ``StreamsError``.

    ``line`` shows the user's code, ``log`` the end of the worker's log where it did not say why; ``exit_code`` is what
    the process ends with; ``hopeless`` if another start can only end the same way.
    """

    what: str
    where: str = ""
    line: str = ""
    why: str = ""
    log: str = ""
    hint: str = ""
    exit_code: int = 1
    action: str = "fail"
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """Start the process of a worker."""

    number: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Tell a worker to commit, to leave the group and to end."""

    number: int


@dataclass(frozen=True, slots=True)
class Kill:
    """End the process of a worker at once."""

    number: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Let people know."""

    text: str


Instruction: TypeAlias = Start | Stop | Kill | Tell


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When a worker is started again, and when no longer.

    The n-th failure in a row waits ``backoff_ms * 2**(n-1)``, at most ``backoff_ms_max``, and up to ``jitter`` of that
    longer, so that workers which died together do not come back together. Who has worked for ``ran_well_ms`` begins
    from the start again.
    """

    backoff_ms: float = 1_000
    backoff_ms_max: float = 60_000
    jitter: float = 0.25
    ran_well_ms: float = 60_000
    #: The run ends when the same failure has happened so often, or a worker has died so often in a row without a word.
    same_failure_max: int = 3
    stillborn_max: int = 5
    #: Somebody who tells nothing for so long is worth a note, and so is who has had nothing to do.
    silence_ms: float = 30_000
    idle_ms: float = 3_000

    def delay_ms(self, failures: int, choose: random.Random) -> float:
        """How long to wait after so many failures in a row, never less than the back-off."""
        # The exponent is bounded, too: a float overflows after a thousand failures.
        backoff = min(self.backoff_ms_max, self.backoff_ms * 2.0 ** min(failures - 1, 32))
        return backoff * (1 + self.jitter * choose.random())


@dataclass(slots=True)
class Worker:
    """One of the workers, over all processes that it has had. ``since_ms`` is the time of its last change of state."""

    number: int
    state: WorkerState = WorkerState.STARTING
    since_ms: float = 0.0
    report: Report = _NOTHING_TOLD
    restarts: int = 0
    retry_at_ms: float = 0.0
    failure: Failure | None = None
    _records_before: int = 0
    _failures: int = 0
    _stillborn: int = 0
    _heard_ms: float = 0.0
    _silence_told: bool = False

    @property
    def alive(self) -> bool:
        """True if it has a process."""
        return self.state in _ALIVE

    @property
    def records(self) -> int:
        """What all its processes have processed."""
        return self._records_before + self.report.records

    @property
    def shown_state(self) -> str:
        """For people: the client's state while it works."""
        return self.report.state if self.state is WorkerState.RUNNING else self.state.value

    def enter(self, state: WorkerState, now_ms: float) -> None:
        self.state = check_transition(f"worker {self.number}", WORKER_SUCCESSORS, self.state, state)
        self.since_ms = self._heard_ms = now_ms
        self._silence_told = False

    def start(self, now_ms: float) -> None:
        """A new process begins to count from 0."""
        if self.state is not WorkerState.STARTING:
            self.enter(WorkerState.STARTING, now_ms)
            self.restarts += 1
        self.since_ms = self._heard_ms = now_ms
        self.failure = None

    def hear(self, report: Report, now_ms: float) -> None:
        self.report = report
        self._heard_ms, self._silence_told = now_ms, False
        if self.state is WorkerState.STARTING:
            self.enter(WorkerState.RUNNING, now_ms)

    def bury(self, ran_well: bool) -> None:
        """Its process has died."""
        self._records_before += self.report.records
        self.report = _NOTHING_TOLD
        wordless = self.state is WorkerState.STARTING and self.failure is None
        self._stillborn = self._stillborn + 1 if wordless else 0
        self._failures = 1 if ran_well else self._failures + 1

    @property
    def failures(self) -> int:
        """In a row."""
        return self._failures

    @property
    def stillborn(self) -> int:
        """Processes in a row that died without a word."""
        return self._stillborn

    def given_up_by_group(self, now_ms: float) -> bool:
        """It works, but has been silent for so long that others own its tasks."""
        patience_ms = self.report.patience_ms
        working = self.state is WorkerState.RUNNING
        return working and patience_ms is not None and now_ms - self._heard_ms > patience_ms

    def silence(self, now_ms: float, silence_ms: float) -> str | None:
        """What to tell about a worker that has not been heard of for long; told once."""
        if not self.alive or self._silence_told or now_ms - self._heard_ms < silence_ms:
            return None
        self._silence_told = True
        return {
            WorkerState.STARTING: "has not begun to work: is the program's module slow to import?",
            WorkerState.RUNNING: "tells nothing: it is stopped (SIGSTOP), or something holds the interpreter",
            WorkerState.STOPPING: "has not ended; a second Ctrl-C kills it",
        }[self.state]


@dataclass(frozen=True, slots=True)
class Summary:
    """All workers together. ``lag`` is None while it is not known."""

    state: str
    records: int
    lag: int | None
    tasks: int
    restarts: int


class Supervision:
    """Decides about the workers of one run; the caller carries out what each method returns."""

    def __init__(
        self,
        workers: int,
        clock: Clock,
        *,
        until_caught_up: bool = False,
        policy: RestartPolicy | None = None,
        choose: random.Random | None = None,
    ) -> None:
        self.workers = {number: Worker(number) for number in range(1, workers + 1)}
        #: What ended the run, if anything did.
        self.failure: Failure | None = None
        self.stopping = False
        #: Some worker has told how it goes: the application can be run.
        self.has_run = False
        self._clock = clock
        self._until_caught_up = until_caught_up
        self._policy = policy or RestartPolicy()
        self._choose = choose or random.Random()  # noqa: S311 - spreads restarts, guards nothing
        self._causes: Counter[tuple[str, str]] = Counter()
        self._idle_since_ms: float | None = None
        self._idle_told = False

    @property
    def over(self) -> bool:
        """True once every worker has ended for good."""
        return all(worker.state is WorkerState.ENDED for worker in self.workers.values())

    def begin(self) -> list[Instruction]:
        """Start them all."""
        return [self._start(worker) for worker in self.workers.values()]

    def heard(self, number: int, message: Report | Failure) -> None:
        """A worker has told something."""
        worker = self.workers[number]
        if isinstance(message, Failure):
            worker.failure = message
        else:
            self.has_run = True
            worker.hear(message, self._clock.monotonic_ms())

    def ended(self, number: int, exit_code: int, last_lines: Sequence[str] = ()) -> list[Instruction]:
        """A worker's process has ended; a negative ``exit_code`` is the signal's that killed it, ``last_lines`` the end
        of its log."""
        now_ms = self._clock.monotonic_ms()
        worker = self.workers[number]
        ran_ms = now_ms - worker.since_ms
        ran_well = worker.state is WorkerState.RUNNING and ran_ms >= self._policy.ran_well_ms
        failure = worker.failure or _unexplained(number, exit_code, last_lines)
        began = worker.report.state != _NOTHING_TOLD.state
        worker.bury(ran_well)
        if self.stopping:
            worker.enter(WorkerState.ENDED, now_ms)
            # Whoever was stopped before it began has nothing to lose, however it ended.
            if exit_code != 0 and (began or worker.failure is not None):
                self.failure = self.failure or failure
            return []
        final = self._final(worker, failure, exit_code, ran_well)
        if final is not None:
            worker.enter(WorkerState.ENDED, now_ms)
            self.failure = final
            return self.stop()
        delay_ms = self._policy.delay_ms(worker.failures, self._choose)
        worker.enter(WorkerState.BACKING_OFF, now_ms)
        worker.retry_at_ms = now_ms + delay_ms
        return [Tell(_restart_text(failure, number, ran_ms, delay_ms, told=worker.failure is not None))]

    def stop(self) -> list[Instruction]:
        """Have all workers commit and end; none is started any more."""
        now_ms = self._clock.monotonic_ms()
        self.stopping = True
        instructions: list[Instruction] = []
        for worker in self.workers.values():
            if worker.state is WorkerState.BACKING_OFF:
                worker.enter(WorkerState.ENDED, now_ms)
            elif worker.state in (WorkerState.STARTING, WorkerState.RUNNING):
                worker.enter(WorkerState.STOPPING, now_ms)
                instructions.append(Stop(worker.number))
        return instructions

    def tick(self) -> list[Instruction]:
        """What time brings: restarts that are due, the end that has been reached, notes about who is silent or idle."""
        now_ms = self._clock.monotonic_ms()
        if self._until_caught_up and not self.stopping and self._caught_up():
            return self.stop()
        instructions: list[Instruction] = []
        for worker in self.workers.values():
            if worker.state is WorkerState.BACKING_OFF and now_ms >= worker.retry_at_ms:
                instructions.append(self._start(worker))
            if worker.given_up_by_group(now_ms):
                instructions += self._kill(worker, now_ms)
            silence = worker.silence(now_ms, self._policy.silence_ms)
            if silence is not None:
                instructions.append(
                    Tell(f"worker {worker.number}: for {self._policy.silence_ms / 1000:g} s it {silence}")
                )
        idle = self._idle(now_ms)
        return instructions if idle is None else [*instructions, Tell(idle)]

    def summary(self) -> Summary:
        """The workers' figures added up."""
        lags = [w.report.lag for w in self.workers.values() if w.report.tasks]
        return Summary(
            state=self._state(),
            records=sum(worker.records for worker in self.workers.values()),
            lag=None if None in lags or not lags else sum(lag for lag in lags if lag is not None),
            tasks=sum(worker.report.tasks for worker in self.workers.values()),
            restarts=sum(worker.restarts for worker in self.workers.values()),
        )

    def _state(self) -> str:
        """One word where all are in the same state, else how many run."""
        states = {worker.shown_state for worker in self.workers.values()}
        if len(states) == 1:
            return states.pop()
        running = sum(worker.shown_state == "running" for worker in self.workers.values())
        return "stopping" if self.stopping else f"{running}/{len(self.workers)} running"

    def _kill(self, worker: Worker, now_ms: float) -> list[Instruction]:
        """Its tasks are others' now, but as long as it lives it holds their state: nobody can go on with them."""
        worker.hear(worker.report, now_ms)  # once is enough
        silence_s = (worker.report.patience_ms or 0) / 1000
        text = (
            f"worker {worker.number} has told nothing for {silence_s:g} s: it is stopped (SIGSTOP), or something holds"
            " the interpreter; it is killed, so that others get the state of its tasks"
        )
        return [Kill(worker.number), Tell(text)]

    def _start(self, worker: Worker) -> Start:
        worker.start(self._clock.monotonic_ms())
        return Start(worker.number)

    def _caught_up(self) -> bool:
        running = [w for w in self.workers.values() if w.state is WorkerState.RUNNING]
        return bool(running) and all(worker.report.caught_up for worker in running)

    def _final(self, worker: Worker, failure: Failure, exit_code: int, ran_well: bool) -> Failure | None:
        """The failure, if the run ends because of it."""
        told = worker.failure is not None
        if told and (failure.hopeless or not self.has_run):
            return failure
        if worker.stillborn >= self._policy.stillborn_max:
            return _extended(
                failure, f"this was the {_nth(worker.stillborn)} start in a row that told nothing"
            )
        if ran_well:
            self._causes.clear()
        if exit_code > 0 and failure.action != "retry":
            cause = (failure.what, failure.where) if told else (f"exit code {exit_code}", failure.log)
            self._causes[cause] += 1
            if self._causes[cause] >= self._policy.same_failure_max:
                return _extended(failure, f"it happened {self._causes[cause]} times: no worker gets past it")
        return None

    def _idle(self, now_ms: float) -> str | None:
        """Once, when all workers run and some have had no task for a while: more workers than tasks."""
        workers = list(self.workers.values())
        idle = [worker.number for worker in workers if not worker.report.tasks]
        settled = all(w.state is WorkerState.RUNNING and w.report.state == "running" for w in workers)
        if self._idle_told or not settled or not idle or len(idle) == len(workers):
            self._idle_since_ms = None
            return None
        if self._idle_since_ms is None:
            self._idle_since_ms = now_ms
        if now_ms - self._idle_since_ms < self._policy.idle_ms:
            return None
        self._idle_told = True
        tasks = self.summary().tasks
        who = f"worker {idle[0]} is" if len(idle) == 1 else f"workers {', '.join(map(str, idle))} are"
        return (
            f"{who} idle: the application has {tasks} task{'' if tasks == 1 else 's'}, one for each input partition,"
            f" and a task runs in one worker only"
        )


def describe_exit(exit_code: int) -> str:
    """``ended with exit code 3``, ``was killed by SIGKILL (...)``."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    reason = {
        "SIGKILL": " (kill -9, or the system had no memory left)",
        "SIGSEGV": " (a library crashed)",
        "SIGABRT": " (a library gave up)",
    }
    return f"was killed by {name}{reason.get(name, '')}"


def _unexplained(number: int, exit_code: int, last_lines: Sequence[str]) -> Failure:
    return Failure(
        f"worker {number} {describe_exit(exit_code)}",
        log="\n".join(last_lines),
        hint="its log says more: --verbose",
        exit_code=exit_code if exit_code > 0 else 1,
    )


def _extended(failure: Failure, why: str) -> Failure:
    return msgspec.structs.replace(failure, why=f"{failure.why}; {why}" if failure.why else why)


def _restart_text(failure: Failure, number: int, ran_ms: float, delay_ms: float, *, told: bool) -> str:
    what = f"worker {number} failed: {failure.what}" if told else failure.what
    lines = [f"{what}, after {ran_ms / 1000:.1f} s; it starts again in {delay_ms / 1000:.1f} s"]
    if told:
        lines += [
            f"  {label}: {part}" for label, part in (("where", failure.where), ("why", failure.why)) if part
        ]
    elif failure.log:
        lines += ["  the end of its log:", *(f"    {line}" for line in failure.log.splitlines())]
    return "\n".join(lines)


def _nth(number: int) -> str:
    return {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}.get(number, f"{number}th")
