"""The tasks of one thread: takes them on, restores, runs, commits and gives them up. Decides nothing about when."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pystreams.broker.port import Consumer, Member, Producer
from pystreams.engine.commit import commit
from pystreams.errors import (
    BrokerUnavailableError,
    OffsetOutOfRangeError,
    StateCorruptedError,
    StateError,
    StateLockedError,
    StreamsError,
    TaskMigratedError,
)
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import names
from pystreams.record import RecordBatch
from pystreams.runtime.catching_up.order_plan import order_plan
from pystreams.runtime.restoring.restorer import Restorer
from pystreams.runtime.restoring.task_restores import STANDBY_PAUSE_MS
from pystreams.runtime.tasks.abstract_task import AbstractTask
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.assignment_plan import (
    AbortAll,
    Claim,
    CloseStandby,
    CloseTask,
    CommitAll,
    Instruction,
    OpenStandby,
    OpenTask,
    Promote,
    plan_assignment,
    plan_loss,
)
from pystreams.runtime.tasks.changelog_guard import guard_of
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.committer import Committer, Committing
from pystreams.runtime.tasks.last_commits import LastCommits
from pystreams.runtime.tasks.overflow_reading import find_overflow
from pystreams.runtime.tasks.pausing import Pausing
from pystreams.runtime.tasks.purge import purges_of
from pystreams.runtime.tasks.standby_task import StandbyTask
from pystreams.runtime.tasks.start_positions import start_positions
from pystreams.runtime.tasks.stopwatch import Stopwatch
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.task_opening import TaskOpener
from pystreams.runtime.tasks.task_set import TaskSet
from pystreams.runtime.tasks.time_bounds import TimeBounds
from pystreams.runtime.tasks.time_order import TimeOrder
from pystreams.state.cache.thread_cache import ThreadCache

log = logging.getLogger(__name__)

#: A warning is logged for a task that has waited this long for its directory.
LOCK_WARNING_MS = 5_000.0

#: How often to note that the stores of running tasks are complete.
COMPLETE_INTERVAL_MS = 60_000.0

#: Tasks in these states may have written something since the last commit.
_STARTED = TaskStatus.STARTING, TaskStatus.RUNNING


@dataclass(frozen=True, slots=True)
class ThreadClients:
    """The clients of the broker that a thread owns."""

    member: Member
    consumer: Consumer
    producer: Producer


class TaskManager:
    """The tasks that are assigned to a thread. A task is opened later if its directory is locked by another owner."""

    def __init__(
        self,
        context: ClientContext,
        clients: ThreadClients,
        opener: TaskOpener,
        restorer: Restorer,
        stopwatch: Stopwatch,
        cache: ThreadCache,
        committing: Committing,
        thread: str,
    ) -> None:
        self._context = context
        self._stopwatch = stopwatch
        self._member = clients.member
        self._consumer = clients.consumer
        self._producer = clients.producer
        self._opener = opener
        self._restorer = restorer
        self._cache = cache
        self._last_commits = LastCommits(
            clients.member, context.newest_offsets, context.admin.partition_counts
        )
        self._guard = guard_of(context, clients.member, clients.producer, self._last_commits, thread)
        self._committer = Committer(
            clients.producer, clients.member, self._last_commits, self._set_working, committing, self._guard
        )
        self._purges = purges_of(context)
        self._bounds = TimeBounds(context.watch, clients.consumer)
        self._pausing = Pausing(context.watch, clients.consumer, context.clock, context.metrics, thread)
        self._created = context.metrics.counter(names.TASKS_CREATED, thread_id=thread)
        self._closed = context.metrics.counter(names.TASKS_CLOSED, thread_id=thread)
        plan = None if context.config.stream_time == "java" else order_plan(context.built)
        self._order = plan and TimeOrder(plan, clients.consumer, context.clock)
        self._tasks: TaskSet[ActiveTask] = TaskSet()
        self._standbys: TaskSet[StandbyTask] = TaskSet()
        self._next_complete_ms = context.clock.monotonic_ms() + COMPLETE_INTERVAL_MS
        #: The task whose code or state is being used now, to blame for what is raised.
        self.working: ActiveTask | None = None
        #: How many of the records that ``process`` has processed last came from internal topics.
        self.internal_processed = 0

    # The tasks

    @property
    def running(self) -> Sequence[ActiveTask]:
        """The tasks that process records. Any thread may ask."""
        return self._tasks.running

    @property
    def settled(self) -> bool:
        """True if every task that was assigned is running."""
        return len(self.running) == len(self._tasks)

    @property
    def paused(self) -> set[TopicPartition]:
        """Partitions that are not read for now, because enough of them is waiting."""
        return {partition for task in self.running for partition in task.stream.paused}

    def reads(self) -> list[TopicPartition]:
        """Partitions that are read now."""
        return [p for task in self.running for p in task.inputs if p not in task.stream.paused]

    @property
    def commit_needed(self) -> bool:
        if self._pausing.unreported or (self._guard is not None and self._guard.commit_needed):
            return True
        return any(task.needs_commit for task in self.running)

    @property
    def commit_requested(self) -> bool:
        """True if a processor asked for a commit."""
        return any(task.stream.commit_requested for task in self.running)

    @property
    def uncommitted_bytes(self) -> int:
        # Asked in every round: the stores of tasks without work are not looked at.
        return sum(task.state.uncommitted_bytes for task in self.running if task.stream.commit_needed)

    @property
    def commit_often(self) -> bool:
        """True while stream time somewhere in the group waits for what tasks commit."""
        return self._bounds.commit_often

    def caught_up(self) -> bool:
        """True if all that was last seen in the inputs has been processed and committed."""
        return not self.commit_needed and all(self.lag(task) == 0 for task in self.running)

    def lag(self, task: ActiveTask) -> int | None:
        """Offsets between what a task has processed and the end of its inputs as last seen; None: not known."""
        lags = self.lags(task)
        return None if lags is None else sum(lags.values())

    def lags(self, task: ActiveTask) -> dict[TopicPartition, int] | None:
        """The same for each input; None: one of them is not known."""
        if task.status is not TaskStatus.RUNNING:
            return None
        lags: dict[TopicPartition, int] = {}
        for partition, position in task.stream.positions().items():
            end_offset = self._consumer.known_end_offset(partition)
            if end_offset is None:
                return None
            at = position.offset if task.stream.buffered(partition) else self._consumer.position(partition)
            lags[partition] = max(0, end_offset - at)
        return lags

    def buffered(self, task: ActiveTask) -> int:
        """Records of a task that were read and wait."""
        if task.status is not TaskStatus.RUNNING:
            return 0
        return sum(task.stream.buffered(partition) for partition in task.inputs)

    def tasks(self) -> list[ActiveTask]:
        """The tasks whose stores are open."""
        return [task for task in self._tasks if task.status is not TaskStatus.CREATED]

    def task_ids(self) -> list[TaskId]:
        return self._tasks.ids()

    def restoring_ids(self) -> list[TaskId]:
        """The tasks that do not run yet."""
        return sorted(task.task_id for task in self._tasks if task.status is not TaskStatus.RUNNING)

    def standby_ids(self) -> list[TaskId]:
        """The standbys, also those whose stores are not open yet."""
        return self._standbys.ids()

    def reached(self) -> dict[TaskId, int]:
        """How far the stores of standbys, and of tasks that do not run yet, have come: the sums of their changelog
        offsets."""
        tasks: list[AbstractTask] = [*self._standbys, *self._tasks]
        return {
            task.task_id: task.reached()
            for task in tasks
            if task.is_open and task.status is not TaskStatus.RUNNING
        }

    def standby_lags(self) -> dict[TaskId, int | None]:
        """How many offsets standbys are behind what can be read of their changelogs; None: not known yet."""
        known = self._restorer.lags()
        return {task.task_id: known.get(task.task_id) for task in self._standbys}

    def followed(self) -> list[StandbyTask]:
        """The standbys whose stores are open. Any thread may ask."""
        return [task for task in self._standbys if task.status is TaskStatus.STANDBY]

    # Rebalances

    def begin_generation(self, generation: int) -> None:
        """The group has a new assignment: work may have changed hands."""
        self._bounds.begin_generation(generation, self.running)

    def assign(self, partitions: Iterable[TopicPartition], standbys: Collection[TaskId] = ()) -> None:
        """Go over to a new assignment. ``standbys`` are the tasks whose stores are kept filled here; a task whose
        inputs are all assigned is none of them."""
        current = {task.task_id: (task.status, task.inputs) for task in self._tasks}
        inputs = self._context.inputs
        self._execute(plan_assignment(current, frozenset(partitions), inputs, self._standbys.ids(), standbys))

    def lose_all(self) -> None:
        """Give all tasks up without a commit: others own them already. Standbys only read, and stay."""
        self._execute(plan_loss(self.task_ids()))

    def _execute(self, plan: Sequence[Instruction]) -> None:
        for instruction in plan:
            match instruction:
                case CommitAll():
                    self.commit()
                    self._committer.leave_in_order(self.running)
                case CloseTask(task_id, becomes_standby):
                    task = self._tasks[task_id]
                    if becomes_standby:
                        self._opener.leave(task)
                    self._restorer.know_nothing_of(task.changelogs.values())
                    self._close(task)
                case OpenTask(task_id):
                    self._tasks.add(self._opener.make(task_id))
                case Promote(task_id):
                    self._promote(self._standbys[task_id])
                case OpenStandby(task_id):
                    self._standbys.add(self._opener.make_standby(task_id))
                case CloseStandby(task_id):
                    self._close_standby(self._standbys[task_id])
                case AbortAll():
                    self._producer.abort()
                case Claim(partitions):
                    # Open first: a claim may start a join, and the committed offsets are read while none is under way.
                    self.open_created()
                    self._member.claim(partitions)

    # Opening, restoring, closing

    def open_created(self) -> None:
        """Open the tasks that are not open yet and submit them to the restorer. A task whose directory is still locked
        stays as it is."""
        opened: list[TaskId] = []
        try:
            for task in self._tasks.having(TaskStatus.CREATED):
                if self._open(task.task_id):
                    opened.append(task.task_id)  # noqa: PERF401 - it is looked at if the next one raises
            if opened:
                self._find_commits([self._tasks[task_id] for task_id in opened])
        except BaseException:
            for task_id in opened:
                self._begin_anew(self._tasks[task_id])
            raise
        for task_id in opened:
            self._restorer.submit(self._tasks[task_id])
        # Last, so that trouble with them holds up no other task.
        self._open_standbys()

    def _open(self, task_id: TaskId) -> bool:
        """Open a task; False if its directory is locked, or a snapshot of it is on its way. If its state cannot be
        read, delete it and open the task with empty stores, or with a snapshot."""
        task = self._tasks[task_id]
        try:
            if not task.is_open:
                if not self._opener.state_is_here(task_id):
                    return False
                self._opener.open(task)
                self._created.add()
        except StateLockedError as error:
            self._waits_for_lock(task, error)
            return False
        except StateCorruptedError as error:
            self._delete_unreadable(task, error)
            return self._open(task_id)
        self._tasks.become(task, TaskStatus.RESTORING)
        return True

    def _delete_unreadable(self, task: AbstractTask, error: StateCorruptedError) -> None:
        """Raises the error if deleting the state does not help: it was deleted just before, and is not a snapshot."""
        if task.wiped and not self._opener.comes_from_snapshot(task.task_id):
            raise error
        self.wipe({task.task_id: error})

    def _promote(self, standby: StandbyTask) -> None:
        """Put an active task into a standby's place, with its open stores."""
        self._restorer.withdraw(standby.task_id)
        self._standbys.become(standby, TaskStatus.CLOSED)
        task = self._opener.make(standby.task_id)
        task.take_over(standby)
        self._tasks.add(task)

    def _open_standbys(self) -> None:
        """Open the standbys that are not open yet, and have them kept filled. One that cannot be opened stays as it is,
        because tasks and other standbys can do without it."""
        now_ms = self._context.clock.monotonic_ms()
        for task in self._standbys.having(TaskStatus.CREATED):
            if now_ms < task.open_at_ms:
                continue
            try:
                self._open_standby(task)
            except StateLockedError as error:
                self._waits_for_lock(task, error)
            except StateError as error:
                self._standbys[task.task_id].open_at_ms = now_ms + STANDBY_PAUSE_MS
                pause_s = STANDBY_PAUSE_MS / 1000
                log.warning("a standby of task %s is tried again in %.0f s: %s", task.task_id, pause_s, error)

    def _open_standby(self, task: StandbyTask) -> None:
        if not self._opener.state_is_here(task.task_id):
            return
        try:
            self._opener.open(task)
        except StateCorruptedError as error:
            self._delete_unreadable(task, error)
            return
        self._created.add()
        self._standbys.become(task, TaskStatus.STANDBY)
        task.state.committed_stores.open()
        self._restorer.follow(task)

    def _close_standby(self, task: StandbyTask) -> None:
        was = task.status
        self._standbys.become(task, TaskStatus.CLOSED)
        if was is TaskStatus.CREATED:
            self._opener.give_up(task.task_id)
            return
        self._closed.add()
        self._restorer.withdraw(task.task_id)
        self._close_stores(task)

    def _find_commits(self, tasks: Sequence[ActiveTask]) -> None:
        """Read the last commits of tasks. Their directories are locked by now, so their former owners on this machine
        have made their last commits."""
        context = self._context
        self._producer.settle()
        context.broker.fence(context.transaction_content, [task.task_id for task in tasks])
        self._last_commits.find(tasks)
        find_overflow(tasks, context)
        for task in tasks:
            task.keep_time(task.committed, ahead=context.changelogs_ahead)

    def take_restored(self) -> None:
        """Let the tasks run whose stores are complete by now, and begin anew with those whose state is corrupt. Raises
        what else went wrong while stores were restored."""
        outcome = self._restorer.drain()
        for task_id in outcome.finished:
            self._tasks.become(self._tasks[task_id], TaskStatus.RESTORED)
        self.wipe(outcome.corrupted)
        if outcome.failure is not None:
            raise outcome.failure
        restored = self._tasks.having(TaskStatus.RESTORED)
        for task in self._last_commits.changed(restored):
            log.warning(
                "task %s: the group has other offsets than before it was restored: it begins anew",
                task.task_id,
            )
            self._begin_anew(task)
        self._start(self._tasks.having(TaskStatus.RESTORED))

    def wipe(self, corrupt: Mapping[TaskId, StreamsError]) -> None:
        """Delete the corrupt state of tasks and restore it from their changelogs; other tasks only go back to their
        last commit. Every corruption is handled here, wherever it is found."""
        standbys = set(self._standbys.ids())
        for task_id, error in corrupt.items():
            log.warning("task %s: %s", task_id, error)
            if task_id in standbys:
                self._close_standby(self._standbys[task_id])
                self._standbys.add(self._opener.make_standby(task_id))
                continue
            task = self._tasks[task_id]
            if task.status in _STARTED:
                self.revive(spoilt=task)
            else:
                self._begin_anew(task)
        for task_id in corrupt:
            self._opener.wipe(task_id)
            (self._standbys if task_id in standbys else self._tasks)[task_id].wiped = True

    def revive(self, *, spoilt: ActiveTask | None = None) -> None:
        """Forget everything since the last commit: tasks that have started are made anew and go on from there. The task
        ``spoilt`` does not go back to its last commit, because its state is corrupt and will be deleted."""
        started = self._tasks.having(*_STARTED)
        self._take_back([task for task in started if task is not spoilt])
        for task in started:
            self._begin_anew(task)
        # This is last, so that records are discarded that processors write while they are closed.
        self._producer.abort()

    def _take_back(self, tasks: Sequence[ActiveTask]) -> None:
        """Have the changelogs end with what was committed, if they hold more."""
        if self._guard is None or not tasks:
            return
        self._producer.abort()
        try:
            # Whether the last commit has arrived or not: these have their state as of what the group has.
            changed = self._last_commits.changed(tasks)
            undone = self._guard.take_back([task for task in tasks if task not in changed])
            commit(list[ActiveTask](), self._producer)
            for one in undone:
                self._restorer.leave_out(one.partition, one.start_offset, one.end_offset)
        except StreamsError as error:
            log.warning(
                "changelogs could not be corrected, so repeated records may count twice in the stores: %s",
                error,
            )

    def close(self, *, commit: bool) -> None:
        """Close all tasks. ``commit``: commit their work first; otherwise the next start repeats it. Raises what the
        commit raises, after all tasks were closed."""
        try:
            if not commit:
                self._take_back(self.running)
            elif self.running:
                if self.commit_needed:
                    self._commit_last()
                self._leave_in_order()
        finally:
            for task in self._tasks:
                self._close(task)
            self._pausing.close()
            for standby in self._standbys:
                self._close_standby(standby)
            self._producer.abort()

    def _commit_last(self) -> None:
        """If this commit fails, no other one follows: what it has logged is taken back at once."""
        try:
            self.commit()
        except TaskMigratedError:
            # The changelogs are written by others now.
            raise
        except BaseException as error:
            spoilt = self.working if isinstance(error, StateCorruptedError) else None
            self._take_back([task for task in self.running if task is not spoilt])
            raise

    def _leave_in_order(self) -> None:
        try:
            self._committer.leave_in_order(self.running)
        except BrokerUnavailableError as error:
            log.warning("changelogs could not be checked before the tasks were given up: %s", error)

    def _waits_for_lock(self, task: AbstractTask, error: StateLockedError) -> None:
        """A task is handed over within moments: warn when that takes longer, after 5 s, 10 s, 20 s, ..."""
        now_ms = self._context.clock.monotonic_ms()
        since_ms, warn_at_ms = task.locked_ms = task.locked_ms or (now_ms, now_ms + LOCK_WARNING_MS)
        if now_ms >= warn_at_ms:
            waited_ms = now_ms - since_ms
            task.locked_ms = since_ms, now_ms + waited_ms
            log.warning("task %s has been waiting for %.0f s: %s", task.task_id, waited_ms / 1000, error)

    def _start(self, tasks: Sequence[ActiveTask]) -> None:
        if not tasks:
            return
        admin, inputs = self._context.admin, [partition for task in tasks for partition in task.inputs]
        beginnings, ends = admin.beginning_offsets(inputs), admin.end_offsets(inputs)
        latest = self._latest([p for task in tasks for p in task.inputs if p not in task.committed], ends)
        for task in tasks:
            try:
                positions = start_positions(
                    task.task_id,
                    {partition: task.committed.get(partition) for partition in task.inputs},
                    beginnings,
                    ends,
                    latest,
                    partial(self._context.offset_reset, task.task_id),
                    self._context.offset_ago,
                    stateful=task.task_id in self._context.feeding_state,
                )
            except OffsetOutOfRangeError:
                self._last_commits.require([task])
                raise
            self.working = task
            self._tasks.become(task, TaskStatus.STARTING)
            self._bounds.starts(task)
            task.start(self._cache, positions, beginnings)
            self._consumer.assign(positions)
            self.working = None
            self._tasks.become(task, TaskStatus.RUNNING)

    def _latest(
        self, partitions: Sequence[TopicPartition], ends: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        """Where ``latest`` is in the partitions without committed offsets."""
        context = self._context
        reads_committed = bool(partitions) and context.broker.reads_committed
        return context.admin.stable_end_offsets(partitions) if reads_committed else ends

    def _begin_anew(self, task: ActiveTask) -> None:
        """Close a task and create another one with the same id."""
        self._close(task)
        self._tasks.add(self._opener.make(task.task_id))

    def _close(self, task: ActiveTask) -> None:
        was = task.status
        self._tasks.become(task, TaskStatus.CLOSED)
        if not task.is_open:
            self._opener.give_up(task.task_id)
            return
        self._closed.add()
        self._last_commits.saw(task)
        self._bounds.ends(task.task_id)
        self._restorer.withdraw(task.task_id)
        if was is TaskStatus.RUNNING:
            self._consumer.unassign(task.inputs)
        self._close_stores(task)

    def _close_stores(self, task: AbstractTask) -> None:
        try:
            task.close()
        except StreamsError as error:
            log.warning("task %s is closed, but not cleanly: %s", task.task_id, error)
        except Exception:
            log.exception("task %s: a failure while closing; the task is closed all the same", task.task_id)

    # Work

    def add_batches(self, batches: Sequence[RecordBatch]) -> None:
        """Hand over what was polled; partitions that are full enough are paused."""
        owners = {partition: task for task in self.running for partition in task.inputs}
        for batch in batches:
            owner = owners.get(TopicPartition(batch.topic, batch.partition))
            if owner is not None:
                owner.stream.add_batch(batch)
        if self._order is not None:
            self._order.backlog.arrived(batches, self._tasks)
        self._adjust_flow()

    def process(self, max_records: int, now_ms: int) -> int:
        """Let each task process up to ``max_records``, or what it can in a tenth of a second; the number processed."""
        if any(map(self.buffered, self.running)):
            # A thread that was frozen for a session processes nothing that its successor has: evictions and stores
            # without a cache write to changelogs at once.
            self._member.confirm()
            if not self._context.in_use.kept:
                self._context.in_use.processing()
        self.internal_processed = 0
        self._bounds.apply(self.running, self._set_working)
        self._pausing.look(self.running)
        if self._order is not None and self._order.backlog.lags:
            processed = self._process_in_order(self._order, max_records, now_ms)
        else:
            processed = self._process_in_turn(self.running, max_records, now_ms)
        self._stopwatch.rest()
        self.working = None
        if processed:
            self._adjust_flow()
        return processed

    def _process_in_turn(
        self, tasks: Iterable[ActiveTask], max_records: int, now_ms: int, until_ms: int | None = None
    ) -> int:
        processed = 0
        for task in tasks:
            if not self._member.can_commit():
                # A function has hung for so long that others have the tasks by now.
                break
            self.working = task
            self._stopwatch.watch(task.stream)
            buffered = task.internal_buffered
            processed += task.stream.process(max_records, now_ms, self._pausing.until(task, until_ms))
            self.internal_processed += buffered - task.internal_buffered
        return processed

    def _process_in_order(self, order: TimeOrder, max_records: int, now_ms: int) -> int:
        """Let the tasks that no other one reads from process in turn, and the others in the order of time."""

        def go(task: ActiveTask, until_ms: int) -> int:
            return self._process_in_turn([task], max_records, now_ms, until_ms)

        order.backlog.look(self._tasks)
        last = [task for task in self.running if not order.has(task)]
        processed = self._process_in_turn(last, max_records, now_ms)
        return processed + order.process(self._tasks, max_records, go)

    def interrupt(self) -> None:
        """Have ``process`` return after the record at work. May be called from another thread."""
        for task in self._tasks:
            task.interrupt()

    def punctuate(self, now_ms: int) -> int:
        """Run the wall-clock punctuators that are due. Returns the number of calls."""
        punctuated = 0
        for task in self.running:
            self.working = task
            punctuated += task.stream.punctuate_wall_clock(now_ms)
        self.working = None
        if punctuated:
            self._context.in_use.processing()
        return punctuated

    def next_punctuation_ms(self) -> int | None:
        """When the next wall-clock punctuator is due."""
        times = (task.stream.next_wall_clock_punctuation_ms() for task in self.running)
        return min((time for time in times if time is not None), default=None)

    def commit(self) -> None:
        """Commit all running tasks."""
        self._pausing.report(self.running)
        self._committer.commit(self.running)
        self._pausing.reported()

    def upkeep(self) -> None:
        """Periodic work after a commit: check whether another process has written to changelogs, also to those without
        new records, delete from internal topics what is not needed any more, and note when the stores were complete."""
        if self._guard is not None:
            self._guard.now_and_then(self.running)
        for purge in self._purges:
            purge.now_and_then(self.running)
        self._note_complete()

    def take_snapshots(self) -> None:
        """Take snapshots of stores as of their last commit, if that is due. Called often, between commits."""
        if self._context.snapshots is not None:
            self._context.snapshots.taker.look(self.running)

    def _note_complete(self) -> None:
        """The stores of running tasks hold all that their changelogs hold: note the time in those that commit nothing,
        too. First the group confirms that the tasks are this member's: it may have been frozen for days."""
        now_ms = self._context.clock.monotonic_ms()
        if now_ms < self._next_complete_ms:
            return
        self._next_complete_ms = now_ms + COMPLETE_INTERVAL_MS
        try:
            self._member.confirm()
        except BrokerUnavailableError:
            return
        for task in self.running:
            task.state.complete()

    def check_positions(self, error: OffsetOutOfRangeError) -> None:
        """The consumer fell out of a partition, because records were deleted before they were read: an error for a task
        with state; one without goes on at the nearest end."""
        found = False
        for task in self.running:
            inputs = list(task.inputs)
            beginnings = self._context.admin.beginning_offsets(inputs)
            ends = self._context.admin.end_offsets(inputs)
            positions = {p: self._consumer.position(p) for p in inputs}
            lost = {p: at for p, at in positions.items() if not beginnings[p] <= at <= ends[p]}
            if lost and task.task_id in self._context.feeding_state:
                self._last_commits.require([task])
                error.extend(
                    where=f"task {task.task_id}", hint="a longer retention.ms of the topic prevents this"
                )
                raise error
            if lost:
                log.warning("task %s: %s", task.task_id, error)
                self._consumer.seek({p: min(max(at, beginnings[p]), ends[p]) for p, at in lost.items()})
                found = True
        if not found:
            raise error

    def _adjust_flow(self) -> None:
        for task in self.running:
            pause, resume = task.stream.flow_changes()
            if pause:
                self._consumer.pause(pause)
            if resume:
                self._consumer.resume(resume)

    def _set_working(self, task: ActiveTask | None) -> None:
        self.working = task
