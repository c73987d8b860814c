"""Supervises the worker processes of one application: a pure state machine from events to instructions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pystreams.clock import Clock
from pystreams.engine.failures.lateness import LateRecords, add_up
from pystreams.engine.failures.unmatched import Unmatched, add_up_unmatched
from pystreams.runtime.health import Health, too_much_lag
from pystreams.runtime.supervisor.restarts import Causes, RestartPolicy
from pystreams.runtime.supervisor.worker import Failure, Report, Worker, WorkerState
from pystreams.runtime.supervisor.worker_notes import (
    idle_note,
    kill_note,
    restart_note,
    silence_note,
    unexplained,
)

#: After this time a note is shown about a worker that does not report, or that has no task.
SILENCE_MS: Final = 30_000.0
IDLE_MS: Final = 3_000.0
#: A worker reports five times a second. One that has not reported for this time answers no queries, either.
UNREADY_MS: Final = 5_000.0

#: A supervisor that was inactive for longer than this was itself stopped (Ctrl-Z, a blocked terminal).
AWAY_MS: Final = 500.0


@dataclass(frozen=True, slots=True)
class Start:
    """Start the process of a worker."""

    number: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask a worker to commit, to leave the group and to end."""

    number: int


@dataclass(frozen=True, slots=True)
class Kill:
    """End the process of a worker at once."""

    number: int


@dataclass(frozen=True, slots=True)
class Note:
    """Show a message to the user. ``serious``: it is a warning."""

    text: str
    serious: bool = True


Instruction: TypeAlias = Start | Stop | Kill | Note


@dataclass(frozen=True, slots=True)
class WorkersSummary:
    """All workers together. Lags are None while they are not known. ``records`` does not count those from internal
    topics."""

    state: str
    records: int
    internal_records: int
    lag: int | None
    tasks: int
    standbys: int
    standby_lag: int | None
    restarts: int
    left_out: Mapping[str, int]
    late: Sequence[LateRecords]
    joins: Sequence[Unmatched]


class Supervision:
    """Decides about the workers of one run. The caller carries out the instructions that each method returns, and calls
    ``tick`` several times a second."""

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
        #: The failure that ended the run, if there was one.
        self.failure: Failure | None = None
        self.stopping = False
        #: Whether any worker has reported, so that the application is known to run.
        self.has_run = False
        self._clock = clock
        self._until_caught_up = until_caught_up
        self._policy = policy or RestartPolicy()
        self._choose = choose or random.Random()  # noqa: S311 - spreads restarts, guards nothing
        self._causes = Causes(self._policy)
        self._ticked_ms = clock.monotonic_ms()
        self._idle_since_ms: float | None = None
        self._idle_noted = False

    @property
    def over(self) -> bool:
        """True once every worker has ended for good."""
        return all(worker.state is WorkerState.ENDED for worker in self.workers.values())

    def begin(self) -> list[Instruction]:
        """Start all workers."""
        return [self._start(worker) for worker in self.workers.values()]

    def heard(self, number: int, message: Report | Failure) -> None:
        """A worker has sent a report or a failure."""
        worker = self.workers[number]
        if isinstance(message, Failure):
            worker.failure = message
        else:
            self.has_run = True
            worker.hear(message, self._clock.monotonic_ms())

    def ended(self, number: int, exit_code: int, last_lines: Sequence[str] = ()) -> list[Instruction]:
        """A worker's process has ended; a negative ``exit_code`` is the signal that killed it, ``last_lines`` the end
        of its log."""
        now_ms = self._clock.monotonic_ms()
        worker = self.workers[number]
        ran_ms = now_ms - worker.since_ms
        ran_well = worker.state is WorkerState.RUNNING and ran_ms >= self._policy.ran_well_ms
        failure = worker.failure or unexplained(worker, exit_code, last_lines)
        had_worked = worker.has_worked
        worker.bury(ran_well=ran_well)
        if self.stopping:
            worker.enter(WorkerState.ENDED, now_ms)
            # The end of a worker that was stopped before it began is no failure, because it has no work to lose.
            if exit_code != 0 and (had_worked or worker.failure is not None):
                self.failure = self.failure or failure
            return []
        final = self._causes.final(worker, failure, exit_code, ran_well=ran_well, has_run=self.has_run)
        if final is not None:
            worker.enter(WorkerState.ENDED, now_ms)
            self.failure = final
            return self.stop()
        delay_ms = self._policy.delay_ms(worker.failures, self._choose)
        worker.enter(WorkerState.BACKING_OFF, now_ms)
        worker.retry_at_ms = now_ms + delay_ms
        return [Note(restart_note(failure, number, ran_ms, delay_ms, reported=worker.failure is not None))]

    def stop(self) -> list[Instruction]:
        """Ask all workers to commit and end; no worker is started any more."""
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
        """The instructions that are due: restarts, the end of the run, notes about silent and idle workers."""
        now_ms = self._clock.monotonic_ms()
        away_ms, self._ticked_ms = now_ms - self._ticked_ms - AWAY_MS, now_ms
        if self._until_caught_up and not self.stopping and self._caught_up():
            return self.stop()
        instructions: list[Instruction] = []
        for worker in self.workers.values():
            if away_ms > 0:
                worker.excuse(away_ms, now_ms)
            if worker.state is WorkerState.BACKING_OFF and now_ms >= worker.retry_at_ms:
                instructions.append(self._start(worker))
            if worker.given_up(now_ms):
                # A living process locks the state of its tasks, so that no other worker can open it. The worker counts
                # as heard from now, so that there is only one kill.
                worker.killed_after_ms = worker.patience_ms
                worker.hear(worker.report, now_ms)
                instructions += [Kill(worker.number), Note(kill_note(worker))]
            elif worker.falls_silent(now_ms, SILENCE_MS):
                instructions.append(Note(silence_note(worker, SILENCE_MS)))
        return [*instructions, *self._idle(now_ms)]

    def summary(self) -> WorkersSummary:
        """The workers' figures added up."""
        tasks = sum(worker.report.tasks for worker in self.workers.values())
        return WorkersSummary(
            state=self._state(),
            records=sum(worker.records for worker in self.workers.values()),
            internal_records=sum(worker.internal_records for worker in self.workers.values()),
            lag=self._lag() if tasks else None,
            tasks=tasks,
            standbys=sum(worker.report.standbys for worker in self.workers.values()),
            standby_lag=_sum_known([worker.report.standby_lag for worker in self.workers.values()]),
            restarts=sum(worker.restarts for worker in self.workers.values()),
            left_out=sum((worker.left_out for worker in self.workers.values()), Counter()),
            late=add_up(late for worker in self.workers.values() for late in worker.late),
            joins=add_up_unmatched(join for worker in self.workers.values() for join in worker.joins),
        )

    def health(self, lag_max: int | None) -> Health:
        """The health of all workers together; ``lag_max`` limits the lag of all inputs together (None: no limit). May
        be called from another thread."""
        workers = list(self.workers.values())
        reasons = [
            f"worker {worker.number}: {reason}" for worker in workers for reason in self._reasons(worker)
        ]
        if not reasons and lag_max is not None:
            reasons += too_much_lag(self._lag(), lag_max)
        live = all(worker.report.health.live for worker in workers)
        return Health(live, not reasons, tuple(reasons), stopping=self.stopping)

    def _reasons(self, worker: Worker) -> Sequence[str]:
        """Why a worker is not ready."""
        silent_ms = self.silent_ms(worker.number)
        if silent_ms is not None:
            return [f"it has not reported for {silent_ms / 1000:.0f} s"]
        if worker.report.health.reasons:
            return worker.report.health.reasons
        return [] if worker.ready else [worker.shown_state]

    def silent_ms(self, number: int) -> float | None:
        """For how long a running worker has been silent; None: not long enough to mention. From any thread."""
        worker = self.workers[number]
        # Time in which the supervisor itself did not listen does not count.
        silent_ms = worker.silent_ms(min(self._clock.monotonic_ms(), self._ticked_ms + AWAY_MS))
        return silent_ms if worker.state is WorkerState.RUNNING and silent_ms >= UNREADY_MS else None

    def _lag(self) -> int | None:
        """The lag of all tasks, 0 if there are none; None: it is not known."""
        lags = [worker.report.lag for worker in self.workers.values() if worker.report.tasks]
        unknown = any(worker.between_assignments for worker in self.workers.values())
        return None if unknown else _sum_known(lags)

    def _state(self) -> str:
        """The state, if all workers are in the same one; otherwise how many run."""
        states = {worker.shown_state for worker in self.workers.values()}
        if len(states) == 1:
            return states.pop()
        running = sum(worker.shown_state == "running" for worker in self.workers.values())
        return "stopping" if self.stopping else f"{running}/{len(self.workers)} running"

    def _start(self, worker: Worker) -> Start:
        worker.start(self._clock.monotonic_ms())
        return Start(worker.number)

    def _caught_up(self) -> bool:
        running = [w for w in self.workers.values() if w.state is WorkerState.RUNNING]
        return bool(running) and all(worker.report.caught_up for worker in running)

    def _idle(self, now_ms: float) -> list[Instruction]:
        """A note about workers without a task, only once: when all workers run, all tasks are assigned, and there have
        been more workers than tasks for a while. As long as one worker has several tasks, others may still get some of
        them: if a broker assigns the tasks, it takes seconds until a worker has to give up tasks."""
        workers = list(self.workers.values())
        idle = [worker.number for worker in workers if not worker.report.tasks]
        tasks = sum(worker.report.tasks for worker in workers)
        settled = all(
            w.state is WorkerState.RUNNING and w.report.state == "running" and w.report.all_tasks == tasks
            for w in workers
        )
        too_many = tasks and len(idle) == len(workers) - tasks
        if self._idle_noted or not settled or not idle or not too_many:
            self._idle_since_ms = None
            return []
        if self._idle_since_ms is None:
            self._idle_since_ms = now_ms
        if now_ms - self._idle_since_ms < IDLE_MS:
            return []
        self._idle_noted = True
        return [Note(idle_note(idle, tasks), serious=False)]


def _sum_known(numbers: Sequence[int | None]) -> int | None:
    """The sum; None if a number is not known."""
    return None if None in numbers else sum(number for number in numbers if number is not None)
