"""The tasks of one thread: takes them on, restores, runs, commits and gives them up. Decides nothing about when."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pystreams.broker.port import Consumer, Member, Producer
from pystreams.engine.offset_metadata import merge_committed
from pystreams.engine.task_lifecycle import TaskStatus
from pystreams.errors import (
    BrokerUnavailableError,
    OffsetOutOfRangeError,
    StateCorruptedError,
    StateLockedError,
    StreamsError,
)
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import names
from pystreams.record import RecordBatch
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.assignment_plan import (
    AbortAll,
    Claim,
    CloseTask,
    CommitAll,
    Inputs,
    Instruction,
    OpenTask,
    plan_assignment,
    plan_loss,
)
from pystreams.runtime.tasks.changelog_guard import ChangelogGuard
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.commit import Committer
from pystreams.runtime.tasks.repartition_purge import Purge
from pystreams.runtime.tasks.restore import Restorer
from pystreams.runtime.tasks.start_positions import start_positions
from pystreams.runtime.tasks.stopwatch import Stopwatch
from pystreams.runtime.tasks.task_opening import TaskOpener

log = logging.getLogger(__name__)

#: A task that has waited so long for its directory is worth a warning.
LOCK_WARNING_MS = 5_000.0


@dataclass(frozen=True, slots=True)
class ThreadClients:
    """What a thread owns towards the broker."""

    member: Member
    consumer: Consumer
    producer: Producer


class TaskManager:
    """The tasks at hand. Tasks whose directory is locked by somebody else wait to be opened."""

    def __init__(
        self,
        context: ClientContext,
        clients: ThreadClients,
        opener: TaskOpener,
        restorer: Restorer,
        stopwatch: Stopwatch,
        thread: str,
    ) -> None:
        self._context = context
        self._stopwatch = stopwatch
        self._member = clients.member
        self._consumer = clients.consumer
        self._producer = clients.producer
        self._opener = opener
        self._restorer = restorer
        self._guard = _guard_of(context, clients, thread)
        self._committer = Committer(
            clients.producer, clients.member, clients.consumer, self._set_working, self._guard
        )
        self._purge = Purge(
            context.admin,
            context.built.internal_topics,
            context.config.repartition_purge_interval_ms,
            context.clock,
        )
        self._created = context.metrics.counter(names.TASKS_CREATED, thread_id=thread)
        self._closed = context.metrics.counter(names.TASKS_CLOSED, thread_id=thread)
        self._tasks: dict[TaskId, ActiveTask] = {}
        self._waiting: dict[TaskId, Inputs] = {}
        #: Tasks whose stores are complete, to be started.
        self._restored: deque[TaskId] = deque()
        self._running: list[ActiveTask] = []
        #: Of tasks whose directory is locked: since when, and when to tell it next (ms).
        self._locked: dict[TaskId, tuple[float, float]] = {}
        #: The task whose code or state is being used now, to blame for what is raised.
        self.working: ActiveTask | None = None
        #: Partitions that are not read for now, because enough of them is waiting.
        self.paused: set[TopicPartition] = set()

    # What there is

    @property
    def running(self) -> Sequence[ActiveTask]:
        return self._running

    @property
    def settled(self) -> bool:
        """True if every task that was assigned is running."""
        return len(self._running) == len(self._tasks) and not self._waiting

    @property
    def commit_needed(self) -> bool:
        if self._guard is not None and self._guard.commit_needed:
            return True
        return any(task.needs_commit(self._consumer.position) for task in self._running)

    @property
    def commit_requested(self) -> bool:
        """True if a processor asked for a commit."""
        return any(task.stream.commit_requested for task in self._running)

    @property
    def uncommitted_bytes(self) -> int:
        return sum(task.state.uncommitted_bytes for task in self._running)

    def caught_up(self) -> bool:
        """True if all that was last seen in the inputs has been processed and committed."""
        return not self.commit_needed and all(self.lag(task) == 0 for task in self._running)

    def lag(self, task: ActiveTask) -> int | None:
        """Offsets between what a task has processed and the end of its inputs as last seen; None: not known."""
        if task not in self._running:
            return None
        total = 0
        for partition, position in task.stream.positions().items():
            end_offset = self._consumer.known_end_offset(partition)
            if end_offset is None:
                return None
            at = position.offset if task.stream.buffered(partition) else self._consumer.position(partition)
            total += max(0, end_offset - at)
        return total

    def buffered(self, task: ActiveTask) -> int:
        """Records of a task that were read and wait."""
        if task not in self._running:
            return 0
        return sum(task.stream.buffered(partition) for partition in task.inputs)

    def tasks(self) -> list[ActiveTask]:
        return list(self._tasks.values())

    def task_ids(self) -> list[TaskId]:
        return sorted([*self._tasks, *self._waiting])

    # Rebalances

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Go over to a new assignment."""
        current = {task_id: (task.status, task.inputs) for task_id, task in self._tasks.items()}
        current |= {task_id: (TaskStatus.CREATED, inputs) for task_id, inputs in self._waiting.items()}
        self._execute(plan_assignment(current, frozenset(partitions), self._context.inputs))

    def lose_all(self) -> None:
        """Give all tasks up without a commit: others own them already."""
        self._execute(plan_loss(self.task_ids()))

    def _execute(self, plan: Sequence[Instruction]) -> None:
        for instruction in plan:
            match instruction:
                case CommitAll():
                    self._committer.commit(self._running)
                    self._committer.leave_in_order(self._running)
                case CloseTask(task_id):
                    self._waiting.pop(task_id, None)
                    self._locked.pop(task_id, None)
                    if task_id in self._tasks:
                        self._restorer.know_nothing_of(self._tasks[task_id].changelogs.values())
                    self._close(task_id)
                case OpenTask(task_id, inputs):
                    self._waiting[task_id] = inputs
                    self._try_open(task_id)
                case AbortAll():
                    self._producer.abort()
                case Claim(partitions):
                    self._member.claim(partitions)

    # Opening, restoring, closing

    def open_waiting(self) -> None:
        """Try once more to open tasks whose directories were locked."""
        for task_id in list(self._waiting):
            self._try_open(task_id)

    def restore(self, budget_ms: float, wait_ms: float) -> None:
        """Restore for about ``budget_ms``; tasks that are complete start to run."""
        if self._restorer.active:
            outcome = self._restorer.step(budget_ms, wait_ms)
            self._restored += outcome.finished
            for task_id, error in outcome.corrupted.items():
                self.wipe(task_id, error)
        while self._restored:
            self._start(self._tasks[self._restored[0]])
            self._restored.popleft()

    def wipe(self, task_id: TaskId, error: StreamsError) -> None:
        """Delete a task's state and restore it from its changelogs; other tasks only go back to their last commit."""
        log.warning("task %s: %s", task_id, error)
        inputs = self._tasks[task_id].inputs
        if self._tasks[task_id].status is TaskStatus.RUNNING:
            self.revive(spoilt=task_id)
        else:
            self._close(task_id)
        self._waiting[task_id] = inputs
        self._context.directory.wipe(task_id)

    def revive(self, *, spoilt: TaskId | None = None) -> None:
        """Forget everything since the last commit: tasks that have started are made anew and go on from there. The
        state of one that is ``spoilt`` is good for nothing."""
        started = [task for task in self._tasks.values() if task.status is not TaskStatus.RESTORING]
        self._take_back([task for task in started if task.task_id != spoilt])
        for task in started:
            self._waiting[task.task_id] = task.inputs
            self._close(task.task_id)
        # Last: what a processor writes while it is closed is forgotten, too.
        self._producer.abort()

    def _take_back(self, tasks: Sequence[ActiveTask]) -> None:
        """Have the changelogs end with what was committed, if they hold more."""
        if self._guard is None:
            return
        self._producer.abort()
        try:
            # Whether the last commit has arrived or not: these have their state as of what the group has.
            undone = self._guard.take_back([task for task in tasks if self._has_last_commit(task)])
            self._producer.commit({}, None)
            for one in undone:
                self._restorer.leave_out(one.partition, one.start_offset, one.end_offset)
        except StreamsError as error:
            log.warning("what is done once more may be counted twice in the stores: %s", error)

    def _has_last_commit(self, task: ActiveTask) -> bool:
        committed = self._member.committed(task.inputs)
        return task.committed == {p: at for p, at in committed.items() if at is not None}

    def close(self, *, commit: bool) -> None:
        """Give up everything, after a commit of what is not committed yet, or without: the next start does it again."""
        try:
            if not commit:
                self._take_back(self._running)
            elif self._running:
                if self.commit_needed:
                    self._committer.commit(self._running)
                self._leave_in_order()
        finally:
            self._waiting.clear()
            for task_id in list(self._tasks):
                self._close(task_id)
            self._producer.abort()

    def _leave_in_order(self) -> None:
        try:
            self._committer.leave_in_order(self._running)
        except BrokerUnavailableError as error:
            log.warning("changelogs are left as they are: %s", error)

    def _try_open(self, task_id: TaskId) -> None:
        try:
            task = self._opener.open(task_id)
        except StateLockedError as error:
            self._waits_for_lock(task_id, error)
            return
        self._locked.pop(task_id, None)
        self._tasks[task_id] = task
        self._created.add()
        inputs = self._waiting[task_id]
        try:
            # Now, with the directory locked: whoever had the task before has made its last commit.
            committed = self._member.committed(inputs)
            task.committed = {partition: at for partition, at in committed.items() if at is not None}
            metadata = merge_committed(task.committed)
            task.state.hold(metadata.foreign)
            if not self._context.broker.transactional or self._context.hand_over.attempt:
                # The changelogs may hold later windows: of what was not committed, or of before a hand-over that set
                # the application back.
                task.state.limit_time(metadata.stream_time)
            self._restorer.add(task)
            del self._waiting[task_id]
        except StateCorruptedError as error:
            self._close(task_id)
            log.warning("task %s: %s", task_id, error)
            self._context.directory.wipe(task_id)
            self._try_open(task_id)
        except BaseException:
            self._close(task_id)
            raise

    def _waits_for_lock(self, task_id: TaskId, error: StateLockedError) -> None:
        """A task is handed over within moments: tell when it takes longer, after 5 s, 10 s, 20 s, ..."""
        now_ms = self._context.clock.monotonic_ms()
        since_ms, told_at_ms = self._locked.setdefault(task_id, (now_ms, now_ms + LOCK_WARNING_MS))
        if now_ms >= told_at_ms:
            waited_ms = now_ms - since_ms
            self._locked[task_id] = since_ms, now_ms + waited_ms
            log.warning("task %s has been waiting for %.0f s: %s", task_id, waited_ms / 1000, error)

    def _start(self, task: ActiveTask) -> None:
        admin, inputs = self._context.admin, list(task.inputs)
        beginnings = admin.beginning_offsets(inputs)
        positions = start_positions(
            task.task_id,
            {partition: task.committed.get(partition) for partition in inputs},
            beginnings,
            admin.end_offsets(inputs),
            lambda topic: self._context.offset_reset(task.task_id, topic),
            self._context.offset_ago,
            stateful=task.task_id in self._context.feeding_state,
        )
        self.working = task
        task.start(positions, beginnings)
        self._consumer.assign(positions)
        self.working = None
        self._running.append(task)
        self._running.sort(key=lambda running: running.task_id)

    def _close(self, task_id: TaskId) -> None:
        task = self._tasks.pop(task_id, None)
        if task is None:
            return
        self._closed.add()
        self._restorer.remove(task_id)
        if task_id in self._restored:
            self._restored.remove(task_id)
        if task in self._running:
            self._running.remove(task)
            self._consumer.unassign(task.inputs)
            self.paused -= task.inputs
        try:
            task.close()
        except StreamsError as error:
            log.warning("task %s is closed, but not cleanly: %s", task_id, error)
        except Exception:
            log.exception("task %s: a failure while closing; the task is closed all the same", task_id)

    # Work

    def add_batches(self, batches: Sequence[RecordBatch]) -> None:
        """Hand over what was polled; partitions that are full enough are paused."""
        owners = {partition: task for task in self._running for partition in task.inputs}
        for batch in batches:
            owner = owners.get(TopicPartition(batch.topic, batch.partition))
            if owner is not None:
                owner.stream.add_batch(batch)
        self._adjust_flow()

    def process(self, max_records: int, now_ms: int) -> int:
        """Let each task process up to ``max_records``, or what it can in a tenth of a second; the number processed."""
        processed = 0
        if not self._context.in_use.kept and any(map(self.buffered, self._running)):
            self._context.in_use.processing()
        for task in self._running:
            if not self._member.can_commit():
                # A function has hung for so long that others have the tasks by now.
                break
            self.working = task
            self._stopwatch.watch(task.stream)
            processed += task.stream.process(max_records, now_ms)
        self._stopwatch.rest()
        self.working = None
        if processed:
            self._adjust_flow()
        return processed

    def interrupt(self) -> None:
        """Have ``process`` return after the record at work. May be called from another thread."""
        for task in self.tasks():
            task.stream.interrupt()

    def punctuate(self, now_ms: int) -> bool:
        """Run the wall-clock punctuators that are due."""
        punctuated = False
        for task in self._running:
            self.working = task
            punctuated |= task.stream.punctuate_wall_clock(now_ms)
        self.working = None
        if punctuated:
            self._context.in_use.processing()
        return punctuated

    def next_punctuation_ms(self) -> int | None:
        """When the next wall-clock punctuator is due."""
        times = (task.stream.next_wall_clock_punctuation_ms() for task in self._running)
        return min((time for time in times if time is not None), default=None)

    def commit(self) -> None:
        """Commit all running tasks."""
        self._committer.commit(self._running)

    def upkeep(self) -> None:
        """What is to be done now and then, after a commit: see whether somebody else has written to changelogs, also to
        those that lie still, and delete what internal topics need not keep."""
        if self._guard is not None:
            self._guard.now_and_then(self._running)
        self._purge.now_and_then(self._running)

    def check_positions(self, error: OffsetOutOfRangeError) -> None:
        """The consumer fell out of a partition, because records were deleted before they were read: an error for a task
        with state; one without goes on at the nearest end."""
        found = False
        for task in self._running:
            inputs = list(task.inputs)
            beginnings = self._context.admin.beginning_offsets(inputs)
            ends = self._context.admin.end_offsets(inputs)
            positions = {p: self._consumer.position(p) for p in inputs}
            lost = {p: at for p, at in positions.items() if not beginnings[p] <= at <= ends[p]}
            if lost and task.task_id in self._context.feeding_state:
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
        for task in self._running:
            pause, resume = task.stream.flow_changes()
            if pause:
                self._consumer.pause(pause)
                self.paused.update(pause)
            if resume:
                self._consumer.resume(resume)
                self.paused.difference_update(resume)

    def _set_working(self, task: ActiveTask | None) -> None:
        self.working = task


def _guard_of(context: ClientContext, clients: ThreadClients, thread: str) -> ChangelogGuard | None:
    broker = context.broker
    if broker.transactional:
        return None
    return ChangelogGuard(
        lambda: broker.consumer(f"{thread}-guard", "restore"),
        context.admin,
        lambda task: clients.producer.commit(task.committed, clients.member),
        context.clock,
    )
