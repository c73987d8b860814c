"""Runs the tasks of a backfill in worker processes of this machine, without Spark: the files that ``InlineExecutor``
writes, by several processes at a time.

loky runs the processes: its workers do not import the main program again, and it notices when one of them dies.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

from loky import BrokenProcessPool, cpu_count, get_reusable_executor

from pystreams.backfill.application import Application, PickledApplication, application_here
from pystreams.backfill.compute.executor import PartitionFunction, Report, SliceJob
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.compute.shares import By, Cut, NotCutError, Share, cut_by, shares_of
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.locations import shown
from pystreams.backfill.sources.frames.arrow_topic import TableEncoding
from pystreams.backfill.sources.frames.sorted_runs import Run
from pystreams.backfill.staging.port import Selection, Staged
from pystreams.backfill.workers.errors import WorkerError, error_in, sending_errors
from pystreams.backfill.workers.progress import Reporter, listening
from pystreams.backfill.workers.shipping import shipped
from pystreams.errors import StateError

log = logging.getLogger(__name__)

P = TypeVar("P")
R = TypeVar("R")

#: How often a task is begun if its processes die; as on Spark.
ATTEMPTS_MAX: Final = 4

#: Workers that have nothing to do end after this time. Between two slices, and before a hand-over, they stay.
_IDLE_S: Final = 10

#: A worker checks at this interval whether its driver lives.
_LOOK_S: Final = 1.0

_HERE: Final = "127.0.0.1"

#: Workers write their log to standard error, which is the driver's.
_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@dataclass(slots=True)
class ProcessExecutor(InlineExecutor):
    """Implements ``executor.Executor``. ``processes`` is how many work at a time (None: one for each core that this
    process may use).

    It stages the same files as ``InlineExecutor``: each of them resumes and continues what the other one has computed.
    A task whose process dies is begun again, up to ``ATTEMPTS_MAX`` times.
    """

    processes: int | None = None
    #: Workers are started anew for each backfill: they keep the modules that they have imported, and these may change.
    _backfill: str = field(default_factory=lambda: uuid4().hex, init=False, repr=False)

    def application(self, program: object, settings: Mapping[str, Any]) -> Application:
        self._backfill = uuid4().hex
        here = application_here(program, settings)
        if isinstance(program, str):
            return here
        return PickledApplication(shipped(program), dict(settings))

    def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
        cuts = self._cuts(job)
        # Those that take longest come first.
        tasks = sorted(range(job.work.slice.tasks), key=lambda task: task not in cuts)
        parts = [part for task in tasks for part in _parts(task, cuts.get(task))]
        if self._count(len(parts)) == 1:
            return super(ProcessExecutor, self).compute(job, report)
        with self._computing(job) as given, listening(_HERE, _HERE, report) as reporter:
            call = _TaskCall(given, self.batch_rows, reporter)
            done = self._for_each(call, parts, job.title)
            found = {part.task: one for part, one in zip(parts, done, strict=True) if part.share is None}
            refused = {part.task: one.why for part, one in zip(parts, done, strict=True) if one.why}
            for task, why in refused.items():
                log.info("%s: task %d is computed by one process: %s", job.title, task, why)
            rest = [_Part(task, joins=None if task in refused else cut) for task, cut in cuts.items()]
            found.update(zip(cuts, self._for_each(call, rest, job.title), strict=True))
        return [TaskOutcome.from_json(found[task].outcome) for task in range(job.work.slice.tasks)]

    def _cuts(self, job: SliceJob) -> dict[int, Cut]:
        """The tasks to compute in shares."""
        if job.carried is not None:
            return {}
        work = job.work
        shares = shares_of(work.slice, work.ranges, self.processes or cpu_count())
        by = cut_by(work.application.load(), work.slice, work.folded, work.combined) if shares else None
        if by is None:
            return {}
        for task, count in shares.items():
            log.info("%s: task %d has most records, and is computed in %d shares", job.title, task, count)
        return {task: Cut(count, by) for task, count in shares.items()}

    def for_each_partition(
        self, staging: Staged, selection: Selection, function: PartitionFunction
    ) -> list[bytes]:
        if self._count(selection.partitions) == 1:
            return super(ProcessExecutor, self).for_each_partition(staging, selection, function)
        call = _PartitionCall(staging, selection, function)
        return self._for_each(call, range(selection.partitions), selection.topic)

    def _encoded(self, encoding: TableEncoding, topic: str) -> Sequence[Sequence[Run]]:
        if self._count(len(encoding.pieces)) == 1:
            return super(ProcessExecutor, self)._encoded(encoding, topic)
        return self._for_each(_EncodingCall(encoding), range(len(encoding.pieces)), topic)

    def _count(self, tasks: int) -> int:
        return min(self.processes or cpu_count(), tasks)

    def _for_each(self, call: Callable[[P], R], parts: Collection[P], what: str) -> list[R]:
        """Call a function for each part, each in some process, and again where a process died. The results in the order
        of the parts; ``what`` the work is for people."""
        found: dict[P, R] = {}
        died: BrokenProcessPool | None = None
        for _ in range(ATTEMPTS_MAX):
            missing = [part for part in parts if part not in found]
            died = self._attempt(call, missing, found) if missing else None
            if died is None:
                return [found[part] for part in parts]
            log.warning("a worker process of the backfill died; its task is begun again")
        raise StateError(
            f"worker processes died {ATTEMPTS_MAX} times",
            where=what,
            why=shown(str(died).strip()),
            hint="if the machine has too little memory for so many tasks at a time, use fewer processes "
            "(ProcessExecutor(processes=1), on the command line --master 'processes[1]') or smaller caches "
            "(statestore_cache_max_bytes)",
        )

    def _attempt(
        self,
        call: Callable[[P], R],
        missing: Collection[P],
        found: dict[P, R],
    ) -> BrokenProcessPool | None:
        """Fills ``found``; gives the error if a process died. Raises the error of a call."""
        pool = get_reusable_executor(
            max_workers=self._count(len(missing)),
            timeout=_IDLE_S,
            initializer=_begin_worker,
            # Workers with other arguments are not used again.
            initargs=(os.getpid(), logging.getLogger().level, str(Path.cwd()), self._backfill),
        )
        try:
            waiting: dict[Future[R], P] = {pool.submit(call, part): part for part in missing}
            died: BrokenProcessPool | None = None
            while waiting:
                for future in wait(waiting, return_when=FIRST_EXCEPTION).done:
                    part = waiting.pop(future)
                    try:
                        found[part] = future.result()
                    except BrokenProcessPool as error:
                        died = error
        except BaseException as error:
            # The results of the other workers are not needed any more.
            pool.shutdown(kill_workers=True)
            sent = error_in(str(error)) if isinstance(error, WorkerError) else None
            if sent is not None:
                raise sent from sent.__cause__
            raise
        return died


class _Part(NamedTuple):
    """A task of a slice, or one share of it; or the joining of the shares into which it was cut."""

    task: int
    share: Share | None = None
    joins: Cut | None = None


def _parts(task: int, cut: Cut | None) -> list[_Part]:
    if cut is None:
        return [_Part(task)]
    return [_Part(task, Share(number, cut)) for number in range(cut.shares)]


class _Done(NamedTuple):
    """The outcome of a part as JSON; or why its task cannot be computed in shares."""

    outcome: bytes
    why: str = ""


@dataclass(frozen=True, slots=True)
class _TaskCall:
    """Computes and stages one part of a slice."""

    job: SliceJob
    batch_rows: int
    reporter: Reporter

    def __call__(self, part: _Part) -> _Done:
        reports = self.reporter.of(part.task)

        def report(_task: int, records: int, finished: bool) -> None:
            if part.share is None:
                reports.processed(records)
            elif part.share.number == 0:
                # Cut by key, all shares read the same records; cut by record, each reads about as many.
                reports.processed(records * (part.share.cut.shares if part.share.cut.by is By.RECORD else 1))
            if finished:
                reports.finished()

        inline = InlineExecutor(batch_rows=self.batch_rows)
        with sending_errors():
            try:
                if part.joins is not None:
                    outcome = inline.join_shares(self.job, part.task, part.joins)
                else:
                    outcome = inline.compute_task(self.job, part.task, report, part.share)
            except NotCutError as error:
                return _Done(b"", str(error))
        return _Done(outcome.to_json())


@dataclass(frozen=True, slots=True)
class _EncodingCall:
    """Encodes one piece of a table."""

    encoding: TableEncoding

    def __call__(self, number: int) -> list[Run]:
        with sending_errors():
            return self.encoding(number)


@dataclass(frozen=True, slots=True)
class _PartitionCall:
    """Calls a function with the rows of one partition."""

    staging: Staged
    selection: Selection
    function: PartitionFunction

    def __call__(self, partition: int) -> bytes:
        with sending_errors():
            return self.function(partition, self.staging.rows(self.selection, partition))


def _begin_worker(driver_pid: int, log_level: int, _folder: str, _backfill: str) -> None:
    logging.basicConfig(level=log_level, format=_LOG_FORMAT)
    # Ctrl-C is for the driver, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(driver_pid,), name="pystreams-driver", daemon=True).start()


def _end_with(driver_pid: int) -> None:
    """End this process when the driver has died, even in the middle of a task: a later driver computes it again, in
    another folder."""
    while os.getppid() == driver_pid:
        time.sleep(_LOOK_S)
    os._exit(1)
