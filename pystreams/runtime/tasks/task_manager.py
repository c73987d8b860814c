"""The tasks of one thread: takes them on, restores, runs, commits and gives them up. The rounds decide when."""

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
    StateLockedError,
    StreamsError,
    TaskMigratedError,
)
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import names
from pystreams.record import RecordBatch
from pystreams.runtime.catching_up.order_plan import order_plan
from pystreams.runtime.restoring.restorer import Restorer
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
from pystreams.runtime.tasks.standbys import Standbys
from pystreams.runtime.tasks.start_positions import start_positions
from pystreams.runtime.tasks.stopwatch import Stopwatch
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.task_opening import TaskOpener, level_of_wiping
from pystreams.runtime.tasks.task_set import TaskSet
from pystreams.runtime.tasks.time_bounds import TimeBounds
from pystreams.runtime.tasks.time_order import TimeOrder
from pystreams.state.cache.thread_cache import ThreadCache

log = logging.getLogger(__name__)

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
        self._standbys = Standbys(opener, restorer, context.clock, self._created, self._closed)
        self._next_complete_ms = context.clock.monotonic_ms() + COMPLETE_INTERVAL_MS
        #: The task whose code or state is being used now: an error that is raised meanwhile belongs to it.
        self.working: ActiveTask | None = None
        #: The number of records from internal topics that the last call of ``process`` has processed.
        self.internal_processed = 0

    # The tasks

    @property
    def running(self) -> Sequence[ActiveTask]:
        """The tasks that process records. Any thread may call this."""
        return self._tasks.running

    @property
    def settled(self) -> bool:
        """True if every task that was assigned is running."""
        return len(self.running) == len(self._tasks)

    @property
    def paused(self) -> set[TopicPartition]:
        """Partitions that are not read for now, because enough of their records are buffered."""
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
        # Called in every round, so only the stores of tasks with uncommitted work are counted.
        return sum(task.state.uncommitted_bytes for task in self.running if task.stream.commit_needed)

    @property
    def commit_often(self) -> bool:
        """True while stream time somewhere in the group waits for commits of tasks."""
        return self._bounds.commit_often

    def caught_up(self) -> bool:
        """True if the inputs have been processed and committed up to their ends as last seen."""
        return not self.commit_needed and all(self.lag(task) == 0 for task in self.running)

    def lag(self, task: ActiveTask) -> int | None:
        """The number of offsets between a task's processed records and the end of its inputs as last seen; None: it is
        not known."""
        lags = self.lags(task)
        return None if lags is None else sum(lags.values())

    def lags(self, task: ActiveTask) -> dict[TopicPartition, int] | None:
        """The lag of each input; None: that of one of them is not known."""
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
        """The number of a task's records that were read and are not processed yet."""
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
        return self._standbys.ids()

    def reached(self) -> dict[TaskId, int]:
        """The progress of the stores of standbys, and of tasks that do not run yet: the sum of the changelog offsets of
        each task."""
        tasks: list[AbstractTask] = [*self._standbys, *self._tasks]
        return {
            task.task_id: task.reached()
            for task in tasks
            if task.open_state is not None and task.status is not TaskStatus.RUNNING
        }

    def standby_lags(self) -> dict[TaskId, int | None]:
        """For each standby the number of offsets that it has still to read of its changelogs; None: not known yet."""
        known = self._restorer.lags()
        return {task.task_id: known.get(task.task_id) for task in self._standbys}

    def followed(self) -> list[StandbyTask]:
        """The standbys whose stores are open. Any thread may call this."""
        return [task for task in self._standbys if task.status is TaskStatus.STANDBY]

    # Rebalances

    def begin_generation(self, generation: int) -> None:
        """The group has a new assignment: tasks may have other owners now."""
        self._bounds.begin_generation(generation, self.running)

    def assign(self, partitions: Iterable[TopicPartition], standbys: Collection[TaskId] = ()) -> None:
        """Change to a new assignment. ``standbys`` are the tasks whose stores are kept up to date here; they do not
        include tasks whose inputs are all assigned."""
        current = {task.task_id: (task.status, task.inputs) for task in self._tasks}
        inputs = self._context.inputs
        self._execute(plan_assignment(current, frozenset(partitions), inputs, self._standbys.ids(), standbys))

    def lose_all(self) -> None:
        """Give up all tasks without a commit, because others own them already. Standbys only read, so they stay."""
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
                    self._promote(task_id)
                case OpenStandby(task_id):
                    self._standbys.add(task_id)
                case CloseStandby(task_id):
                    self._standbys.close(task_id)
                case AbortAll():
                    self._producer.abort()
                case Claim(partitions):
                    # Before the claim, which may start a join: committed offsets must be read while there is no join.
                    self.open_created()
                    self._member.claim(partitions)

    # Opening, restoring, closing

    def open_created(self) -> None:
        """Open the tasks that are not open yet, and submit them to the restorer. A task whose directory is still locked
        stays as it is. If their last commits cannot be read now, the tasks stay open for the next call."""
        for task in self._tasks.having(TaskStatus.CREATED):
            self._open(task.task_id)
        opened = self._tasks.having(TaskStatus.OPENED)
        if opened:
            self._find_commits(opened)
        for task in opened:
            self._tasks.become(task, TaskStatus.RESTORING)
            self._restorer.submit(task)
        self._standbys.open_created()

    def _open(self, task_id: TaskId) -> None:
        """Open a task, unless its directory is locked, or a snapshot of it is being fetched. If its state cannot be
        read, delete it and open the task with empty stores, or with a snapshot."""
        task = self._tasks[task_id]
        if not self._opener.state_is_here(task_id):
            return
        try:
            self._opener.open(task)
        except StateLockedError as error:
            task.waits_for_lock(self._context.clock.monotonic_ms(), error)
        except StateCorruptedError as error:
            self._opener.check_wiping_helps(task, error)
            self.wipe({task_id: error})
            self._open(task_id)
        else:
            self._created.add()
            self._tasks.become(task, TaskStatus.OPENED)
            self._member.keep_alive()

    def _promote(self, task_id: TaskId) -> None:
        """Replace a standby by an active task, which takes over its stores if they are open."""
        standby = self._standbys.give(task_id)
        task = self._opener.make(task_id)
        self._tasks.add(task)
        if standby is not None:
            task.take_over(standby)
            self._tasks.become(task, TaskStatus.OPENED)

    def _find_commits(self, tasks: Sequence[ActiveTask]) -> None:
        """Read the last commits of tasks. Their directories are locked by now, so their former owners on this machine
        have made their last commits."""
        context = self._context
        self._producer.settle()
        context.broker.fence(context.transaction_content, [task.task_id for task in tasks])
        self._last_commits.find(tasks)
        find_overflow(tasks, context)
        for task in tasks:
            task.keep_time(task.last_commit, ahead=context.changelogs_ahead)

    def take_restored(self) -> None:
        """Start the tasks whose stores are complete by now, and restore those whose state is corrupt from the
        beginning. Raises other errors of restoring."""
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
        """Delete the corrupt state of tasks and restore it from their changelogs. If a corrupt task has been running,
        the other running tasks go back to their last commit. Every corruption is handled here, wherever it is found."""
        of_tasks = {task_id: error for task_id, error in corrupt.items() if task_id not in self._standbys}
        for task_id, error in of_tasks.items():
            log.log(level_of_wiping(error), "task %s: %s", task_id, error)
            task = self._tasks[task_id]
            if task.status in _STARTED:
                self.revive(spoilt=task)
            else:
                self._begin_anew(task)
        for task_id in of_tasks:
            self._opener.wipe(task_id)
            self._tasks[task_id].wiped = True
        for task_id in corrupt.keys() - of_tasks.keys():
            self._standbys.wipe(task_id, corrupt[task_id])

    def revive(self, *, spoilt: ActiveTask | None = None) -> None:
        """Discard all work since the last commit: tasks that have started are made anew and continue from there. The
        changes of the task ``spoilt`` are not taken back, because its state is corrupt and will be deleted."""
        started = self._tasks.having(*_STARTED)
        self._take_back([task for task in started if task is not spoilt])
        for task in started:
            self._begin_anew(task)
        # Last, to discard also the records that processors write while they are closed.
        self._producer.abort()

    def _take_back(self, tasks: Sequence[ActiveTask]) -> None:
        """Undo the uncommitted changes of tasks in their stores and changelogs."""
        if self._guard is None or not tasks:
            return
        self._producer.abort()
        try:
            # A failed commit may have reached the group nevertheless. Then the changelogs of these tasks are right.
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
        """Close all tasks. ``commit``: commit their work first; otherwise the next start repeats it. Raises an error of
        the commit after all tasks were closed."""
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
            for standby in self._standbys.ids():
                self._standbys.close(standby)
            self._producer.abort()

    def _commit_last(self) -> None:
        """Make the last commit. If it fails, no other one follows, so its changes are taken back at once."""
        try:
            self.commit()
        except TaskMigratedError:
            # Other members write to the changelogs now.
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

    def _start(self, tasks: Sequence[ActiveTask]) -> None:
        if not tasks:
            return
        admin, inputs = self._context.admin, [partition for task in tasks for partition in task.inputs]
        beginnings, ends = admin.beginning_offsets(inputs), admin.end_offsets(inputs)
        latest = self._latest([p for task in tasks for p in task.inputs if p not in task.last_commit], ends)
        for task in tasks:
            try:
                positions = start_positions(
                    task.task_id,
                    {partition: task.last_commit.get(partition) for partition in task.inputs},
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
        """The offsets of ``latest`` in the partitions without committed offsets."""
        context = self._context
        reads_committed = bool(partitions) and context.broker.reads_committed
        return context.admin.stable_end_offsets(partitions) if reads_committed else ends

    def _begin_anew(self, task: ActiveTask) -> None:
        """Close a task and create another one with the same id."""
        self._close(task)
        self._tasks.add(self._opener.make(task.task_id))

    def _close(self, task: ActiveTask) -> None:
        was = task.status
        if was is TaskStatus.RUNNING:
            # Closing its processors may take long, and others may have the task by then. Let nobody read it any more.
            task.state.committed_stores.close()
        self._tasks.become(task, TaskStatus.CLOSED)
        if was is TaskStatus.CREATED:
            self._opener.give_up(task.task_id)
            return
        self._closed.add()
        self._last_commits.saw(task)
        self._bounds.ends(task.task_id)
        self._restorer.withdraw(task.task_id)
        if was is TaskStatus.RUNNING:
            self._consumer.unassign(task.inputs)
        task.close_anyway()
        # To close hundreds of tasks may take longer than ``max_poll_interval_ms``. A retry that opens or closes no task
        # does not count as work: otherwise the group would wait for ever for a member that makes no progress.
        self._member.keep_alive()

    # Work

    def add_batches(self, batches: Sequence[RecordBatch]) -> None:
        """Give the tasks the polled batches; partitions with enough buffered records are paused."""
        owners = {partition: task for task in self.running for partition in task.inputs}
        for batch in batches:
            owner = owners.get(TopicPartition(batch.topic, batch.partition))
            if owner is not None:
                owner.stream.add_batch(batch)
        if self._order is not None:
            self._order.backlog.arrived(batches, self._tasks)
        self._adjust_flow()

    def process(self, max_records: int, now_ms: int) -> int:
        """Let each task process up to ``max_records``, for a tenth of a second at most. Returns the number of processed
        records."""
        if any(map(self.buffered, self.running)):
            # A thread that was frozen for longer than its session must process nothing, because its tasks have a
            # successor by now: cache evictions and stores without a cache write to changelogs before a commit.
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
                # A function has hung for so long that other members have the tasks by now.
                break
            self.working = task
            self._stopwatch.watch(task.stream)
            buffered = task.internal_buffered
            processed += task.stream.process(max_records, now_ms, self._pausing.until(task, until_ms))
            self.internal_processed += buffered - task.internal_buffered
        return processed

    def _process_in_order(self, order: TimeOrder, max_records: int, now_ms: int) -> int:
        """Let the tasks process in the order of time, and those that are not part of the order in turn."""

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
        """Periodic work after a commit: check all changelogs for records of other processes, delete records of internal
        topics that are not needed any more, and note the time at which the stores were complete."""
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
        """Note the time in the stores of all running tasks, including tasks that commit nothing: they are as complete
        as their changelogs. First the group confirms that the tasks are this member's, because it may have been frozen
        for days."""
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
        """The consumer's position is out of range, because records were deleted before they were read. This is an error
        for a task with state; a task without state continues at the nearest end of the log."""
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
