"""A thread that restores from a log in memory, and tasks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pystreams.broker.port import CommittedOffset
from pystreams.clock import Clock, SystemClock
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.recovery.hang_watch import WatchedRounds
from pystreams.runtime.recovery.stall_watch import StallWatch
from pystreams.runtime.restoring.group_commits import GroupCommits
from pystreams.runtime.restoring.load import Load
from pystreams.runtime.restoring.restorable import ToRestore
from pystreams.runtime.restoring.restore_thread import RestoreThread
from pystreams.runtime.restoring.restorer import RestoreOutcome, Restorer
from tests.live.support import eventually
from tests.unit.runtime.tasks.log_kit import MemoryConsumer, MemoryLog


class Task:
    """Keeps what it is given to restore; a store of it is named like its partition's topic."""

    def __init__(self, number: int, *partitions: TopicPartition) -> None:
        self.task_id = TaskId(0, number)
        self.partitions = partitions
        self.offsets: dict[str, int] = {}
        self.keys: list[bytes | None] = []
        self.ends: Mapping[str, int] | None = None
        #: The stores to which much was to be restored.
        self.filled: set[str] = set()
        self.is_settled = True
        #: Called before a batch is applied.
        self.before: Callable[[], object] = lambda: None

    def to_restore(self) -> Sequence[ToRestore]:
        return [ToRestore(p.topic, p, self.offsets.get(p.topic), None, False) for p in self.partitions]

    def restore(self, store: str, batch: RecordBatch) -> None:
        self.before()
        self.keys.extend(batch.keys)
        self.offsets[store] = batch.next_offset

    def fill(self, stores: Collection[str]) -> None:
        self.filled = set(stores)

    def settled(self) -> bool:
        return self.is_settled

    def restored(self, ends: Mapping[str, int]) -> None:
        self.ends = ends


class Standby(Task):
    """Follows inputs as far as the group has committed them."""

    needs_commits = True

    def __init__(self, number: int, *partitions: TopicPartition) -> None:
        super().__init__(number, *partitions)
        self.limits: Mapping[str, int] = {}
        #: Called at a checkpoint.
        self.checkpointed: Callable[[], None] = lambda: None
        #: What the checkpoints were told.
        self.complete: list[bool] = []

    def to_restore(self) -> Sequence[ToRestore]:
        return [one._replace(limit=self.limits.get(one.store, 0)) for one in super().to_restore()]

    def checkpoint(self, *, complete: bool) -> None:
        self.complete.append(complete)
        self.checkpointed()

    def group_committed(self, committed: Mapping[TopicPartition, CommittedOffset]) -> Mapping[str, int]:
        self.limits = {p.topic: committed[p].offset for p in self.partitions}
        return self.limits


class Windowed(Standby):
    """Reads its changelogs to the end; the group's commits only say what has expired."""

    def to_restore(self) -> Sequence[ToRestore]:
        return Task.to_restore(self)

    def group_committed(self, committed: Mapping[TopicPartition, CommittedOffset]) -> Mapping[str, int]:
        return {}


class World:
    """A thread that restores from a log in memory."""

    def __init__(self, patience_ms: float = 60_000, listener: Any = None, clock: Clock | None = None) -> None:
        self.log = MemoryLog(transactional=True)
        self.consumer = MemoryConsumer(self.log, "restore")
        self.ended = threading.Event()
        log: Any = self.log
        consumer: Any = self.consumer
        clock = clock or SystemClock()
        self.restorer = Restorer(
            consumer,
            log,
            clock,
            listener,
            GroupCommits(log, "group", clock),
            StallWatch(consumer, log, clock, 0, "restore"),
            WatchedRounds("restore", 0),
        )
        self.thread = RestoreThread("restore", self.restorer, Load(), clock, patience_ms, self.ended.set)
        self.outcome = RestoreOutcome()
        self._started = False

    def start(self) -> None:
        self._started = True
        self.thread.start()

    def close(self) -> None:
        if self._started:
            self.thread.close()

    def changelog(self, number: int, records: int) -> TopicPartition:
        partition = TopicPartition(f"changelog-{number}", 0)
        self.log.partitions[partition] += [(b"%d" % n, b"v", n) for n in range(records)]
        return partition

    def drained(self, come: Callable[[RestoreOutcome], Any]) -> RestoreOutcome:
        """What has come of the tasks, as soon as it is what is waited for."""

        def has_come() -> Any:
            new = self.restorer.drain()
            self.outcome.finished += new.finished
            self.outcome.corrupted |= new.corrupted
            self.outcome.failure = self.outcome.failure or new.failure
            return come(self.outcome)

        eventually(has_come, self.outcome)
        return self.outcome
