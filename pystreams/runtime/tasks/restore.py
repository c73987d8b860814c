"""Fills the stores of new tasks from their changelogs, a slice at a time, beside the tasks that already run.

The restorer has a mailbox: its owner submits and withdraws tasks, and drains those that are finished or corrupt. The
owner also decides which thread calls ``step``. One request asks for the offsets of all tasks that were submitted since
the last step.

A store is restored from where its own commit left off to the end its changelog has when the restore begins, and is
done when the *position* has reached that end: records there may have been compacted away. A store that lies outside of
its changelog is corrupt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from pystreams.broker.port import Admin, Consumer
from pystreams.clock import Clock, Deadline
from pystreams.errors import OffsetOutOfRangeError, StateCorruptedError
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.tasks.restorable import Restorable, ToRestore

log = logging.getLogger(__name__)

_PROGRESS_LOG_INTERVAL_MS = 10_000
#: After so long without records the ends of changelogs are asked for anew: they may lie lower.
_STALLED_MS = 5_000


class RestoreListener(Protocol):
    """Called from the stream thread with the progress of each store's restore. Offsets: ``end_offset`` is exclusive.

    Source: org.apache.kafka.streams.processor.StateRestoreListener.
    """

    def on_restore_start(
        self, partition: TopicPartition, store: str, start_offset: int, end_offset: int
    ) -> None: ...

    def on_batch_restored(
        self, partition: TopicPartition, store: str, next_offset: int, records: int
    ) -> None: ...

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None: ...


@dataclass(slots=True)
class StoreRestore:
    """The progress of one store's restore."""

    task_id: TaskId
    store: str
    partition: TopicPartition
    start_offset: int
    end_offset: int
    position: int
    records: int = 0


@dataclass(slots=True)
class RestoreOutcome:
    """The tasks whose stores are complete, and those whose stores disagree with their changelogs. The restorer no
    longer uses either."""

    finished: list[TaskId] = field(default_factory=list)
    corrupted: dict[TaskId, StateCorruptedError] = field(default_factory=dict)


class Restorer:
    """The restores of one thread, over a consumer of its own."""

    def __init__(
        self, consumer: Consumer, admin: Admin, clock: Clock, listener: RestoreListener | None
    ) -> None:
        self._consumer = consumer
        self._admin = admin
        self._clock = clock
        self._listener = listener
        #: Tasks that were submitted, whose offsets are not known yet.
        self._submitted: dict[TaskId, Restorable] = {}
        self._tasks: dict[TaskId, Restorable] = {}
        self._outcome = RestoreOutcome()
        self._stores: dict[TopicPartition, StoreRestore] = {}
        self._since_ms = self._logged_ms = self._moved_ms = clock.monotonic_ms()
        self._restored = 0
        #: Offsets whose records are passed over, by partition: each from a start to an end (exclusive).
        self._left_out: dict[TopicPartition, list[tuple[int, int]]] = {}
        #: The last step was given records: more of them may be there already.
        self.busy = False

    def progress(self) -> list[StoreRestore]:
        """The restores under way."""
        return list(self._stores.values())

    def submit(self, task: Restorable) -> None:
        """Begin to fill a task's stores with the next ``step``."""
        if not self._tasks and not self._submitted:
            self._since_ms = self._logged_ms = self._moved_ms = self._clock.monotonic_ms()
            self._restored = 0
        self._submitted[task.task_id] = task

    def withdraw(self, task_id: TaskId) -> Future[None]:
        """Stop restoring a task; nothing happens if it is not being restored. When the future is done, the restorer no
        longer uses the task's stores, and ``drain`` does not return the task."""
        self._submitted.pop(task_id, None)
        self._forget(task_id)
        if task_id in self._outcome.finished:
            self._outcome.finished.remove(task_id)
        self._outcome.corrupted.pop(task_id, None)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def drain(self) -> RestoreOutcome:
        """The tasks that finished or turned out to be corrupt since the last call."""
        outcome, self._outcome = self._outcome, RestoreOutcome()
        return outcome

    def leave_out(self, partition: TopicPartition, start_offset: int, end_offset: int) -> None:
        """Pass over a stretch of a changelog from now on: it holds what was undone."""
        stretches = self._left_out.setdefault(partition, [])
        if stretches and stretches[-1][1] == start_offset:
            start_offset = stretches.pop()[0]
        stretches.append((start_offset, end_offset))

    def know_nothing_of(self, partitions: Iterable[TopicPartition]) -> None:
        """Pass over no stretch of these changelogs any more: others may write to them from now on."""
        for partition in partitions:
            self._left_out.pop(partition, None)

    def step(self, budget_ms: float, wait_ms: float) -> None:
        """Restore for about ``budget_ms``, waiting up to ``wait_ms`` if nothing has arrived."""
        self.busy = False
        self._begin()
        deadline = Deadline(self._clock, budget_ms)
        while any(r.position < r.end_offset for r in self._stores.values()):
            try:
                batches = self._consumer.poll(wait_ms)
            except OffsetOutOfRangeError as error:
                self._corrupt(self._out_of_range(error))
                break
            self.busy = bool(batches)
            corrupted: dict[TaskId, StateCorruptedError] = {}
            for batch in batches:
                self._apply(batch, corrupted)
            self._advance()
            if not batches:
                corrupted = self._cut_short()
            self._corrupt(corrupted)
            if not batches or corrupted or deadline.expired():
                break
        self._finish()
        self._log_progress()

    def _begin(self) -> None:
        """Begin to restore the tasks that were submitted."""
        if not self._submitted:
            return
        wanted = {task_id: task.to_restore() for task_id, task in self._submitted.items()}
        partitions = [one.partition for of_task in wanted.values() for one in of_task]
        beginnings, ends = self._admin.beginning_offsets(partitions), self._admin.end_offsets(partitions)
        for task_id, of_task in wanted.items():
            try:
                restores = [
                    _planned(task_id, one, beginnings[one.partition], ends[one.partition]) for one in of_task
                ]
            except StateCorruptedError as error:
                del self._submitted[task_id]
                self._outcome.corrupted[task_id] = error
                continue
            # First, because it may fail: the task is still submitted then, and the next step begins with it.
            self._consumer.assign(
                {r.partition: r.start_offset for r in restores if r.position < r.end_offset}
            )
            self._tasks[task_id] = self._submitted.pop(task_id)
            for restore in restores:
                self._stores[restore.partition] = restore
                if self._listener is not None:
                    self._listener.on_restore_start(
                        restore.partition, restore.store, restore.start_offset, restore.end_offset
                    )

    def _forget(self, task_id: TaskId) -> None:
        if self._tasks.pop(task_id, None) is None:
            return
        gone = [r.partition for r in self._stores.values() if r.task_id == task_id]
        self._consumer.unassign([p for p in gone if self._stores[p].position < self._stores[p].end_offset])
        for partition in gone:
            del self._stores[partition]

    def _corrupt(self, corrupted: Mapping[TaskId, StateCorruptedError]) -> None:
        for task_id in corrupted:
            self._forget(task_id)
        self._outcome.corrupted.update(corrupted)

    def _apply(self, batch: RecordBatch, corrupted: dict[TaskId, StateCorruptedError]) -> None:
        restore = self._stores.get(TopicPartition(batch.topic, batch.partition))
        if restore is None:
            return
        # An input goes on behind what was committed.
        batch = batch.before(restore.end_offset)
        for start_offset, end_offset in self._left_out.get(restore.partition, ()):
            batch = batch.without(start_offset, end_offset)
        try:
            self._tasks[restore.task_id].restore(restore.store, batch)
        except StateCorruptedError as error:
            corrupted[restore.task_id] = error
            return
        restore.records += len(batch)
        self._restored += len(batch)
        if self._listener is not None:
            self._listener.on_batch_restored(restore.partition, restore.store, batch.next_offset, len(batch))

    def _advance(self) -> None:
        for restore in self._stores.values():
            if restore.position < restore.end_offset:
                position = self._consumer.position(restore.partition)
                if position != restore.position:
                    restore.position, self._moved_ms = position, self._clock.monotonic_ms()
                if restore.position >= restore.end_offset:
                    self._consumer.unassign([restore.partition])

    def _finish(self) -> None:
        waiting = {r.task_id for r in self._stores.values() if r.position < r.end_offset}
        for task_id in [t for t in self._tasks if t not in waiting]:
            task = self._tasks.pop(task_id)
            restored = [r for r in self._stores.values() if r.task_id == task_id]
            task.restored({restore.store: restore.position for restore in restored})
            for restore in restored:
                del self._stores[restore.partition]
                if self._listener is not None:
                    self._listener.on_restore_end(restore.partition, restore.store, restore.records)
            self._outcome.finished.append(task_id)

    def _out_of_range(self, error: OffsetOutOfRangeError) -> dict[TaskId, StateCorruptedError]:
        """The tasks whose restore fell out of their changelogs, because records were deleted meanwhile."""
        reading = {p: r for p, r in self._stores.items() if r.position < r.end_offset}
        beginnings = self._admin.beginning_offsets(list(reading))
        ends = self._admin.end_offsets(list(reading))
        corrupted = {
            r.task_id: _outside(r.task_id, r.store, p, r.position, beginnings[p], ends[p])
            for p, r in reading.items()
            if not beginnings[p] <= r.position <= ends[p]
        }
        if not corrupted:
            raise error
        return corrupted

    def _cut_short(self) -> dict[TaskId, StateCorruptedError]:
        """The tasks whose changelogs end before the ends that they had, where nothing has come for some time: to wait
        for those would be to wait for ever."""
        now = self._clock.monotonic_ms()
        if now - self._moved_ms < _STALLED_MS:
            return {}
        self._moved_ms = now
        reading = {p: r for p, r in self._stores.items() if r.position < r.end_offset}
        ends = self._admin.end_offsets(list(reading))
        return {
            r.task_id: StateCorruptedError(
                f"the changelog of store {r.store} has lost its last records while it was restored",
                where=f"task {r.task_id}, {p}",
                why=f"it ended at offset {r.end_offset} (exclusive), and ends at {ends[p]} now: an unclean leader "
                "election, or the topic was made anew",
                hint="the task's local state is deleted and restored from what is left; whether that will do is for "
                "you to judge, else reset the application",
            )
            for p, r in reading.items()
            if ends[p] < r.end_offset
        }

    def _log_progress(self) -> None:
        now = self._clock.monotonic_ms()
        if not self._stores or now - self._logged_ms < _PROGRESS_LOG_INTERVAL_MS:
            return
        self._logged_ms = now
        left = sum(max(0, r.end_offset - r.position) for r in self._stores.values())
        rate = self._restored / max(1e-3, (now - self._since_ms) / 1000)
        log.info(
            "restoring %d stores of %d tasks: %d records restored, %d offsets to go, %d records/s, ETA %s",
            len(self._stores),
            len(self._tasks),
            self._restored,
            left,
            rate,
            f"{left / rate:.0f} s" if rate else "unknown",
        )


def _planned(task_id: TaskId, wanted: ToRestore, beginning: int, end: int) -> StoreRestore:
    """The restore of a store from a partition that holds offsets ``beginning`` to ``end`` (exclusive). Raises
    ``StateCorruptedError`` if the store lies outside of it."""
    store, partition, start, limit, tells_gaps = wanted
    if limit is not None:
        # An input is read as far as the log has its records. If some are missing, the task refuses to start.
        end = min(max(beginning, limit), end)
    if start is not None and not beginning <= start <= end:
        raise _outside(task_id, store, partition, start, beginning, end)
    if start is None and beginning == end > 0 and tells_gaps:
        log.warning(
            "task %s: store %s starts empty: changelog %s had %d records, and retention has deleted all of "
            "them. If windows are still open for records to come, they lack what was in them; a longer "
            "retention.ms of the changelog (window_changelog_retention_ms for new ones) prevents this",
            task_id,
            store,
            partition,
            end,
        )
    position = beginning if start is None else start
    return StoreRestore(task_id, store, partition, position, end, position)


def _outside(
    task_id: TaskId, store: str, partition: TopicPartition, offset: int, beginning: int, end: int
) -> StateCorruptedError:
    return StateCorruptedError(
        f"the local state of store {store} lies outside of its changelog",
        where=f"task {task_id}, {partition}, offset {offset}",
        why=f"the changelog holds offsets {beginning} to {end} (exclusive)",
        hint="the task's local state is deleted and restored from the changelog",
    )
