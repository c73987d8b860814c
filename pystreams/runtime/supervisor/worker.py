r"""One worker process of an application, from the supervisor's view.

    STARTING ──> RUNNING ──> BACKING_OFF ──> STARTING
         \          \──> STOPPING ──> ENDED

Every start is a new process, whose counts begin at 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import msgspec

from pystreams.engine.failures.lateness import LateRecords, add_up
from pystreams.engine.failures.unmatched import Unmatched, add_up_unmatched
from pystreams.metrics import Sample
from pystreams.runtime.health import Health
from pystreams.transitions import check_transition


class WorkerState(Enum):
    """STARTING: the process was started and has not reported yet. RUNNING: it works. BACKING_OFF: it died, and waits to
    be started again. STOPPING: it was asked to stop. ENDED: it will not be started again."""

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

#: The time that a stopping worker has to end after its last report.
GOODBYE_MS: Final = 30_000.0

_ALIVE = frozenset({_S.STARTING, _S.RUNNING, _S.STOPPING})


class Report(msgspec.Struct, frozen=True, tag=True):
    """The report that a worker sends a few times a second. ``state`` is the state of its client. ``records`` counts the
    records that its process has processed, without the ``internal_records``, which came from internal topics. ``lag``
    is None while it is not known. ``tasks`` are its own tasks, ``all_tasks`` those of the application, ``standby_lag``
    is the lag of all its ``standbys`` (None: not known), and ``caught_up`` is about the whole application. If a worker
    is silent for ``patience_ms`` (None: for any time), the group considers it dead. ``is_awaited``: if it dies, the
    group waits for its next process. ``left_out`` counts the records
    that its process has left out, by their fate, ``late`` those of them that were too late; if the process was killed,
    they include uncommitted ones. ``joins`` are its joins with their matches. ``health`` is the health of its client
    without a limit of the lag."""

    state: str
    records: int = 0
    internal_records: int = 0
    lag: int | None = None
    tasks: int = 0
    all_tasks: int = 0
    standbys: int = 0
    standby_lag: int | None = 0
    caught_up: bool = False
    patience_ms: int | None = None
    is_awaited: bool = False
    left_out: dict[str, int] = {}
    late: list[LateRecords] = []
    joins: list[Unmatched] = []
    health: Health = Health(live=True, ready=False)


class Measured(msgspec.Struct, frozen=True, tag=True):
    """The metrics of a worker's client, which it sends every few seconds if they are requested."""

    application_id: str
    client_id: str
    samples: list[Sample]


_NO_REPORT = Report("starting")


class Failure(msgspec.Struct, frozen=True, tag=True):
    """The reason why a worker ends, as the worker reports it: the parts of a ``StreamsError``.

    ``line`` is the line of the user's code, ``log`` the end of the worker's log if it did not report a reason;
    ``exit_code`` is that of the process; ``hopeless``: another start would end in the same way.
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


@dataclass(slots=True)
class Worker:
    """One of the workers, with all its processes so far. Times are the supervisor's monotonic clock.

    ``since_ms`` is the time of its last change of state, ``retry_at_ms`` that of its next start while it backs off.
    ``failures`` counts its deaths in a row, ``stillborn`` the deaths before the first report. ``killed_after_ms`` is
    the silence after which the supervisor has killed its process.
    """

    number: int
    state: WorkerState = WorkerState.STARTING
    since_ms: float = 0.0
    report: Report = _NO_REPORT
    failure: Failure | None = None
    restarts: int = 0
    failures: int = 0
    stillborn: int = 0
    retry_at_ms: float = 0.0
    killed_after_ms: float | None = None
    _records_before: int = 0
    _internal_records_before: int = 0
    _left_out_before: Counter[str] = field(default_factory=Counter)
    _late_before: list[LateRecords] = field(default_factory=list)
    _joins_before: list[Unmatched] = field(default_factory=list)
    _heard_ms: float = 0.0
    _silence_noted: bool = False

    @property
    def alive(self) -> bool:
        """True if it has a process."""
        return self.state in _ALIVE

    @property
    def has_worked(self) -> bool:
        """True if its process has sent a report."""
        return self.report is not _NO_REPORT

    @property
    def records(self) -> int:
        """The number of records that all its processes have processed, without those from internal topics."""
        return self._records_before + self.report.records

    @property
    def internal_records(self) -> int:
        """The number of records from internal topics that all its processes have processed."""
        return self._internal_records_before + self.report.internal_records

    @property
    def left_out(self) -> Counter[str]:
        """The numbers of records that all its processes have left out."""
        return self._left_out_before + Counter(self.report.left_out)

    @property
    def late(self) -> list[LateRecords]:
        """The records that all its processes have found too late, by step."""
        return add_up((*self._late_before, *self.report.late))

    @property
    def joins(self) -> list[Unmatched]:
        """The joins of all its processes, with the records without a match."""
        return add_up_unmatched((*self._joins_before, *self.report.joins))

    @property
    def between_assignments(self) -> bool:
        """Whether its former tasks may be unassigned now, because it died or waits for the end of a rebalance."""
        if self.state is WorkerState.RUNNING:
            return self.report.state == "rebalancing"
        return self.state in (WorkerState.STARTING, WorkerState.BACKING_OFF)

    @property
    def ready(self) -> bool:
        """Whether its client is ready, without a limit of the lag."""
        return self.state is WorkerState.RUNNING and self.report.health.ready

    @property
    def shown_state(self) -> str:
        """The state as displays show it: the client's state while it works."""
        return self.report.state if self.state is WorkerState.RUNNING else self.state.value

    def enter(self, state: WorkerState, now_ms: float) -> None:
        self.state = check_transition(f"worker {self.number}", WORKER_SUCCESSORS, self.state, state)
        self.since_ms = now_ms
        self._listen(now_ms)

    def start(self, now_ms: float) -> None:
        """A new process has started, whose counts begin at 0."""
        if self.state is not WorkerState.STARTING:
            self.enter(WorkerState.STARTING, now_ms)
            self.restarts += 1
        self.since_ms = now_ms
        self._listen(now_ms)
        self.failure = None
        self.killed_after_ms = None

    def hear(self, report: Report, now_ms: float) -> None:
        self.report = report
        if self.state is WorkerState.STARTING:
            self.enter(WorkerState.RUNNING, now_ms)
        self._listen(now_ms)

    def bury(self, *, ran_well: bool) -> None:
        """The worker's process has died."""
        wordless = self.state is WorkerState.STARTING and self.failure is None
        self.stillborn = self.stillborn + 1 if wordless else 0
        self.failures = 1 if ran_well else self.failures + 1
        self._records_before += self.report.records
        self._internal_records_before += self.report.internal_records
        self._left_out_before.update(self.report.left_out)
        self._late_before = self.late
        self._joins_before = self.joins
        self.report = _NO_REPORT

    # Silence

    def _listen(self, now_ms: float) -> None:
        self._heard_ms, self._silence_noted = now_ms, False

    def excuse(self, duration_ms: float, now_ms: float) -> None:
        """Ignore the worker's silence during a time in which the supervisor did not listen."""
        self._heard_ms = min(now_ms, self._heard_ms + duration_ms)

    def silent_ms(self, now_ms: float) -> float:
        """The time since its last report."""
        return now_ms - self._heard_ms

    @property
    def patience_ms(self) -> float | None:
        """The time of silence after which the group has given its tasks to other members; None: that never happens, or
        the worker has not begun to work. A stopping worker gets more time, because it does not report while its
        interpreter shuts down."""
        reported_ms = self.report.patience_ms
        return (
            reported_ms if reported_ms is None or self.state is _S.RUNNING else max(reported_ms, GOODBYE_MS)
        )

    def given_up(self, now_ms: float) -> bool:
        """True if it has been silent for too long."""
        patience_ms = self.patience_ms
        return self.alive and patience_ms is not None and self.silent_ms(now_ms) > patience_ms

    def falls_silent(self, now_ms: float, silence_ms: float) -> bool:
        """True once, when it has not reported for ``silence_ms``."""
        if not self.alive or self._silence_noted or self.silent_ms(now_ms) < silence_ms:
            return False
        self._silence_noted = True
        return True
