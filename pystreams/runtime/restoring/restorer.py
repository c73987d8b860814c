"""Fills the stores of new tasks from their changelogs, while other tasks run.

Two threads use a restorer. For the owner of the tasks it is a mailbox: the owner submits and withdraws tasks, and
drains those that are finished or corrupt. The restoring thread calls ``step`` again and again. A mutex guards the
shared state. It is held while a task is used, but never during a call of the broker: so a broker that does not answer
delays only the restore, and the owner waits for one batch at most. Only the restoring thread uses the consumer.

A store is restored from the offset of its own last commit to the end offset that its changelog has when the restore
begins. It is done when the *position* has reached that end, because the last records may have been compacted away. A
store whose offset lies outside of its changelog is corrupt. The tasks with the fewest remaining offsets are read first,
so that most tasks run early.

Standbys are followed: their changelogs are read continuously, while no other task waits for its stores.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pystreams.broker.port import ANSWER_TIMEOUT_MS, Admin, Consumer
from pystreams.clock import Clock, Deadline
from pystreams.errors import OffsetOutOfRangeError, StateCorruptedError, StreamsError
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.recovery.hang_watch import WatchedRounds
from pystreams.runtime.recovery.stall_watch import StallWatch
from pystreams.runtime.restoring.group_commits import (
    COMMITS_INTERVAL_MS,
    STANDBY_ANSWER_TIMEOUT_MS,
    GroupCommits,
)
from pystreams.runtime.restoring.progress_log import ProgressLog
from pystreams.runtime.restoring.restorable import Followable, Restorable
from pystreams.runtime.restoring.restore_listener import RestoreListener
from pystreams.runtime.restoring.store_restore import StoreRestore, cut_short, outside, planned
from pystreams.runtime.restoring.task_restores import STANDBY_PAUSE_MS, TaskRestore, TaskRestores
from pystreams.runtime.restoring.undone import UndoneStretches

log = logging.getLogger(__name__)

#: A store with at least this many remaining offsets is filled in a way that costs less per record, but takes time to
#: begin and to end.
FILL_OFFSETS_MIN: Final = 500_000
#: How often followed tasks checkpoint.
CHECKPOINT_INTERVAL_MS: Final = 10_000
#: After this time without records, the restorer requests the end offsets of the changelogs again, because they may be
#: lower now.
_STALLED_MS: Final = 5_000


@dataclass(slots=True)
class RestoreOutcome:
    """The tasks whose stores are complete, and the tasks whose stores disagree with their changelogs: the restorer uses
    none of them any more. ``failure`` is an error that the restorer cannot handle."""

    finished: list[TaskId] = field(default_factory=list)
    corrupted: dict[TaskId, StateCorruptedError] = field(default_factory=dict)
    failure: BaseException | None = None


class Restorer:
    """The restores of one stream thread, which read with their own consumer."""

    def __init__(
        self,
        consumer: Consumer,
        admin: Admin,
        clock: Clock,
        listener: RestoreListener | None,
        commits: GroupCommits,
        stalls: StallWatch,
        rounds: WatchedRounds,
    ) -> None:
        """``rounds`` watches for hangs. One round is a part of a step that waits for at most one answer of the
        broker."""
        self._consumer = consumer
        self._admin = admin
        self._commits = commits
        self._stalls = stalls
        self._rounds = rounds
        self._clock = clock
        self._listener = listener
        #: Guards the fields up to the blank line; notified when there is something to do.
        self._mutex = threading.Condition()
        self._tasks = TaskRestores(clock)
        self._outcome = RestoreOutcome()
        self._undone = UndoneStretches()
        self._closed = False

        #: The partitions that the consumer reads.
        self._read: dict[TopicPartition, StoreRestore] = {}
        #: Calls of the listener, which is called without the mutex.
        self._calls_due: deque[Callable[[], None]] = deque()
        self._moved_ms = clock.monotonic_ms()
        self._progress = ProgressLog(clock)
        #: When followed tasks get the group's commits next, and when they checkpoint next.
        self._next_commits_ms = self._next_checkpoint_ms = 0.0
        #: Why followed tasks do not get the group's commits at the moment; None: they do.
        self.commits_failure: StreamsError | None = None

    # For the owner of the tasks

    def progress(self) -> list[StoreRestore]:
        """Copies of the restores under way, without those of followed tasks."""
        return self._tasks.progress()

    def lags(self) -> dict[TaskId, int]:
        """For each followed task that has begun, the number of offsets that its stores are behind."""
        return self._tasks.lags()

    def submit(self, task: Restorable) -> None:
        """Fill a task's stores. Only the restoring thread uses them until the task is drained or withdrawn. A task
        without stores is complete at once."""
        with self._mutex:
            if not self._tasks.waiting:
                self._progress.begin()
                self._moved_ms = self._clock.monotonic_ms()
            if not task.to_restore():
                task.restored({})
                self._outcome.finished.append(task.task_id)
                return
            self._tasks.submitted[task.task_id] = task
            self._mutex.notify_all()

    def follow(self, task: Followable) -> None:
        """Keep a task's stores up to date until it is withdrawn, or drained because it is corrupt."""
        with self._mutex:
            self._tasks.submitted[task.task_id] = self._tasks.followed[task.task_id] = task
            self._next_commits_ms = 0.0
            self._mutex.notify_all()

    def withdraw(self, task_id: TaskId) -> None:
        """Stop restoring or following a task, if the restorer does. Afterwards the restorer does not use the task's
        stores any more, and ``drain`` does not return the task. Waits for one batch at most."""
        with self._mutex:
            self._tasks.withdraw(task_id)
            if task_id in self._outcome.finished:
                self._outcome.finished.remove(task_id)
            self._outcome.corrupted.pop(task_id, None)

    def drain(self) -> RestoreOutcome:
        """The tasks that were finished, or found corrupt, since the last call."""
        # Checked without the mutex, which may be held while a batch is written: the next call finds later results.
        if self._outcome == RestoreOutcome():
            return RestoreOutcome()
        with self._mutex:
            outcome, self._outcome = self._outcome, RestoreOutcome()
            return outcome

    def leave_out(self, partition: TopicPartition, start_offset: int, end_offset: int) -> None:
        """Leave out a stretch of a changelog from now on, because its records were undone."""
        with self._mutex:
            self._undone.add(partition, start_offset, end_offset)

    def know_nothing_of(self, partitions: Iterable[TopicPartition]) -> None:
        """Leave out no stretch of these changelogs any more, because other members may write to them from now on."""
        with self._mutex:
            self._undone.forget(partitions)

    def close(self) -> None:
        """Let ``wait_for_work`` return at once."""
        with self._mutex:
            self._closed = True
            self._mutex.notify_all()

    # For the restoring thread

    def wait_for_work(self, timeout_s: float) -> bool:
        """Wait until there is something to restore; returns whether there is."""
        with self._mutex:
            self._mutex.wait_for(lambda: self._closed or self._has_work, timeout_s)
            return self._has_work

    @property
    def _has_work(self) -> bool:
        return bool(self._tasks.task_ids or self._tasks.changed)

    def task_ids(self) -> list[TaskId]:
        """The tasks that are being restored or followed."""
        with self._mutex:
            return self._tasks.task_ids

    def fail(self, error: BaseException) -> None:
        """Hand an error to the owner of the tasks."""
        with self._mutex:
            self._outcome.failure = error

    def step(self, budget_ms: float, wait_ms: float) -> None:
        """Restore for about ``budget_ms``; wait up to ``wait_ms`` if no records have arrived."""
        try:
            self._begin_round()
            if not self.restores:
                self._learn_commits()
            self._begin()
            # Now, because some tasks need no records, and must not wait for those of others.
            self._finish()
            try:
                self._read_on(budget_ms, wait_ms)
            except BaseException:
                self._read_again()
                raise
            self._checkpoint()
            self._log_progress()
        finally:
            self._rounds.rest()

    def _begin_round(self) -> None:
        self._rounds.begin(self._clock.monotonic_ms())

    def _read_on(self, budget_ms: float, wait_ms: float) -> None:
        deadline = Deadline(self._clock, budget_ms)
        while True:
            self._begin_round()
            self.adjust_reading()
            if not self._read:
                self._wait_for_change(wait_ms)
                break
            try:
                batches = self._consumer.poll(wait_ms)
            except OffsetOutOfRangeError as error:
                self._corrupt(self._out_of_range(error))
                break
            for batch in batches:
                self._begin_round()
                self._apply(batch)
            self._advance()
            self._call_listener()
            self._stalls.polled(lambda: list(self._read))
            if not batches:
                self._corrupt(self._cut_short())
                break
            if deadline.expired():
                break
        self._finish()
        self.adjust_reading()

    def _read_again(self) -> None:
        """Read every partition again from the offset up to which it was applied, because the consumer may be further.
        Records that are applied twice have the same effect as once."""
        with self._mutex:
            partitions = list(self._read)
            self._read.clear()
            self._tasks.changed = True
            self._consumer.unassign(partitions)

    def _wait_for_change(self, wait_ms: float) -> None:
        """Wait while there is nothing to read: followed tasks have read their inputs up to the group's commits, or
        restored tasks are not settled yet."""
        with self._mutex:
            if self._tasks.task_ids and not self._tasks.due() and not self._closed:
                self._mutex.wait(wait_ms / 1000)

    @property
    def restores(self) -> bool:
        """Whether a task waits for its stores."""
        with self._mutex:
            return self._tasks.waiting

    def _learn_commits(self) -> None:
        """Give followed tasks the group's committed offsets. If they cannot be read now, the tasks are followed as far
        as the group was before, and the others as usual."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            if not any(task.needs_commits for task in self._tasks.followed.values()):
                self.commits_failure = None
                return
            if now_ms < self._next_commits_ms:
                return
        try:
            committed = self._commits.read()
        except StreamsError as error:
            self.commits_failure = error
            with self._mutex:
                self._next_commits_ms = self._clock.monotonic_ms() + STANDBY_PAUSE_MS
            return
        if committed is None:
            return
        self.commits_failure = None
        with self._mutex:
            self._next_commits_ms = now_ms + COMMITS_INTERVAL_MS
            self._tasks.group_committed(committed)

    def _checkpoint(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if not self._tasks.followed or now_ms < self._next_checkpoint_ms:
            return
        self._next_checkpoint_ms = now_ms + CHECKPOINT_INTERVAL_MS
        with self._mutex:
            for task_id, task in list(self._tasks.followed.items()):
                begun = self._tasks.begun.get(task_id)
                if begun is None:
                    continue
                try:
                    task.checkpoint(complete=self._is_complete(begun))
                except StateCorruptedError as error:
                    self._corrupt({task_id: error})
                except StreamsError as error:
                    self._tasks.put_aside(task_id, error)

    def _is_complete(self, followed: TaskRestore) -> bool:
        """Whether a followed task has read everything. End offsets that may be outdated do not count: those of
        changelogs that are not being read, and the group's commits while other tasks are restored, or while they cannot
        be read."""
        if self._tasks.waiting or self.commits_failure is not None:
            return False
        return all(
            not each.left and (not each.open_ended or each.partition in self._read)
            for each in followed.stores
        )

    def adjust_reading(self) -> None:
        """Have the consumer read exactly the partitions that are to be read now."""
        with self._mutex:
            if not self._tasks.changed and all(restore.goes_on for restore in self._read.values()):
                return
            wanted = self._tasks.to_read()
            gone = [p for p, restore in self._read.items() if wanted.get(p) is not restore]
            new = {p: restore for p, restore in wanted.items() if self._read.get(p) is not restore}
            if gone:
                self._consumer.unassign(gone)
                for partition in gone:
                    del self._read[partition]
            if new:
                self._consumer.assign({p: restore.position for p, restore in new.items()})
                self._read |= new
            self._tasks.changed = False

    def _begin(self) -> None:
        """Begin to restore the submitted tasks, with one request for the offsets of all of them. Then begin with
        standbys one by one, because none of them may delay others for long."""
        with self._mutex:
            due = self._tasks.due()
            standbys = {task_id: task for task_id, task in due.items() if task_id in self._tasks.followed}
        tasks = {task_id: task for task_id, task in due.items() if task_id not in standbys}
        self._begin_with(tasks, ANSWER_TIMEOUT_MS)
        for task_id, task in standbys.items():
            try:
                self._begin_with({task_id: task}, STANDBY_ANSWER_TIMEOUT_MS)
            except StreamsError as error:
                with self._mutex:
                    # The standby may have been withdrawn meanwhile, and an active task with its id submitted.
                    if self._tasks.submitted.get(task_id) is task:
                        self._tasks.put_aside(task_id, error)
                # The next standbys have to wait for the next step, so that reading continues in between.
                break
        self._call_listener()

    def _begin_with(self, submitted: Mapping[TaskId, Restorable | Followable], timeout_ms: float) -> None:
        with self._mutex:
            wanted = {
                task_id: task.to_restore()
                for task_id, task in submitted.items()
                if self._tasks.submitted.get(task_id) is task
            }
        if not wanted:
            return
        partitions = [one.partition for of_task in wanted.values() for one in of_task]
        self._begin_round()
        beginnings = self._admin.beginning_offsets(partitions, timeout_ms)
        self._begin_round()
        ends = self._admin.end_offsets(partitions, timeout_ms)
        self._begin_round()
        with self._mutex:
            for task_id, of_task in wanted.items():
                if self._tasks.submitted.get(task_id) is not submitted[task_id]:
                    # The task was withdrawn meanwhile.
                    continue
                follows = task_id in self._tasks.followed
                try:
                    restores = [
                        planned(task_id, one, beginnings[one.partition], ends[one.partition], follows=follows)
                        for one in of_task
                    ]
                    if not follows:
                        self._prepare(submitted[task_id], restores)
                except StateCorruptedError as error:
                    self._tasks.withdraw(task_id)
                    self._outcome.corrupted[task_id] = error
                    continue
                self._tasks.begin(task_id, restores)
                if self._listener is not None and not follows:
                    started = self._listener.on_restore_start
                    self._calls_due.extend(
                        partial(started, each.partition, each.store, each.start_offset, each.end_offset)
                        for each in restores
                    )

    @staticmethod
    def _prepare(task: Any, restores: Iterable[StoreRestore]) -> None:
        if large := [each.store for each in restores if each.left >= FILL_OFFSETS_MIN]:
            task.fill(large)

    def _call_listener(self) -> None:
        while self._calls_due:
            self._calls_due.popleft()()

    def _corrupt(self, corrupted: Mapping[TaskId, StateCorruptedError]) -> None:
        with self._mutex:
            for task_id, error in corrupted.items():
                if task_id in self._tasks.begun:
                    self._tasks.withdraw(task_id)
                    self._outcome.corrupted[task_id] = error

    def _apply(self, batch: RecordBatch) -> None:
        with self._mutex:
            restore = self._tasks.stores.get(TopicPartition(batch.topic, batch.partition))
            if restore is None or self._read.get(restore.partition) is not restore:
                return
            if not restore.open_ended:
                # An input may have records behind the committed offset.
                batch = batch.before(restore.end_offset)
            batch = self._undone.without(restore.partition, batch)
            task = self._tasks.begun[restore.task_id].task
            try:
                task.restore(restore.store, batch)
            except StateCorruptedError as error:
                self._corrupt({restore.task_id: error})
                return
            except StreamsError as error:
                if not restore.follows:
                    raise
                self._tasks.put_aside(restore.task_id, error)
                return
            restore.records += len(batch)
            if restore.follows:
                return
            self._progress.add(len(batch))
            if self._listener is not None:
                restored = self._listener.on_batch_restored
                self._calls_due.append(
                    partial(restored, restore.partition, restore.store, batch.next_offset, len(batch))
                )

    def _advance(self) -> None:
        with self._mutex:
            for partition, restore in self._read.items():
                position = self._consumer.position(partition)
                if restore.open_ended:
                    end = self._consumer.known_end_offset(partition)
                    restore.end_offset = max(position, restore.end_offset if end is None else end)
                elif restore.follows:
                    # Records behind the end were read, but not applied.
                    position = min(position, restore.end_offset)
                if position != restore.position:
                    restore.position, self._moved_ms = position, self._clock.monotonic_ms()

    def _finish(self) -> None:
        """Hand over the tasks whose stores are complete."""
        with self._mutex:
            done: dict[TaskId, TaskRestore] = {}
            for task_id, of_task in list(self._tasks.begun.items()):
                if of_task.follows or of_task.left:
                    continue
                restored: Any = of_task.task
                try:
                    if not restored.settled():
                        continue
                    restored.restored({each.store: each.position for each in of_task.stores})
                except StateCorruptedError as error:
                    self._corrupt({task_id: error})
                    continue
                done[task_id] = of_task
                if self._listener is not None:
                    ended = self._listener.on_restore_end
                    self._calls_due.extend(
                        partial(ended, each.partition, each.store, each.records) for each in of_task.stores
                    )
        self._call_listener()
        with self._mutex:
            for task_id, of_task in done.items():
                # The task may have been withdrawn, and even submitted again, while the listener was called.
                if self._tasks.begun.get(task_id) is of_task:
                    self._tasks.forget(task_id)
                    self._outcome.finished.append(task_id)

    def _out_of_range(self, error: OffsetOutOfRangeError) -> dict[TaskId, StateCorruptedError]:
        """The tasks whose positions are out of range, because records were deleted meanwhile. If there are none any
        more, everything is read anew."""
        beginnings = self._admin.beginning_offsets(list(self._read))
        self._begin_round()
        ends = self._admin.end_offsets(list(self._read))
        corrupted = {
            r.task_id: outside(r.task_id, r.store, p, r.position, beginnings[p], ends[p])
            for p, r in self._read.items()
            if not beginnings[p] <= r.position <= ends[p]
        }
        if not corrupted:
            log.warning("a changelog is read again: %s", error)
            self._read_again()
        return corrupted

    def _cut_short(self) -> dict[TaskId, StateCorruptedError]:
        """The tasks whose changelogs end now before the end offsets that they had, if no records have come for some
        time. To wait for these records would be to wait for ever."""
        now = self._clock.monotonic_ms()
        if now - self._moved_ms < _STALLED_MS:
            return {}
        self._moved_ms = now
        # Not for followed changelogs: the consumer itself notices a position behind their end.
        ends = self._admin.end_offsets([p for p, r in self._read.items() if r.left and not r.follows])
        return {
            self._read[p].task_id: cut_short(self._read[p], end)
            for p, end in ends.items()
            if end < self._read[p].end_offset
        }

    def _log_progress(self) -> None:
        tasks = len(self._tasks.begun) - len(self._tasks.followed)
        if tasks != 0 and self._progress.due:
            self._progress.write(self.progress(), tasks)
