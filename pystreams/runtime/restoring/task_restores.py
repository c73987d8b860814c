"""The tasks of a restorer with the restores of their stores. Chooses the tasks to begin with, and the partitions to
read."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pystreams.broker.port import CommittedOffset
from pystreams.clock import Clock
from pystreams.errors import StreamsError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.restoring.restorable import Followable, Restorable
from pystreams.runtime.restoring.store_restore import StoreRestore

log = logging.getLogger(__name__)

#: Partitions that are read at the same time; a task is read with all of its partitions.
PARTITIONS_READ_MAX: Final = 16
#: How long a standby that has failed waits before it is tried again.
STANDBY_PAUSE_MS: Final = 10_000.0


@dataclass(slots=True)
class TaskRestore:
    """A task with the restores of its stores. A task that is followed is never complete."""

    task: Restorable | Followable
    stores: Sequence[StoreRestore]
    follows: bool = False

    @property
    def left(self) -> int:
        """The number of remaining offsets."""
        return sum(restore.left for restore in self.stores)


class TaskRestores:
    """The tasks of one restorer, whose mutex guards them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: Tasks to restore or to follow whose offsets are not known yet.
        self.submitted: dict[TaskId, Restorable | Followable] = {}
        #: Standbys that have failed, each with the time (monotonic, ms) at which to begin again.
        self._aside: dict[TaskId, float] = {}
        #: All tasks to follow, whether they have begun or not.
        self.followed: dict[TaskId, Followable] = {}
        #: Those of them that have got the group's commits.
        self._informed: set[TaskId] = set()
        self.begun: dict[TaskId, TaskRestore] = {}
        self.stores: dict[TopicPartition, StoreRestore] = {}
        #: Whether the partitions to read may have changed since reading was last adjusted.
        self.changed = False

    @property
    def waiting(self) -> bool:
        """Whether a task waits for its stores."""
        return (self.submitted.keys() | self.begun.keys()) > self.followed.keys()

    @property
    def task_ids(self) -> list[TaskId]:
        """The tasks that are being restored or followed."""
        return sorted({*self.submitted, *self.begun})

    def progress(self) -> list[StoreRestore]:
        """Copies of the restores under way, without those of followed tasks. Needs no mutex."""
        return [replace(restore) for restore in list(self.stores.values()) if not restore.follows]

    def lags(self) -> dict[TaskId, int]:
        """For each followed task that has begun, the number of offsets that its stores are behind. Needs no mutex."""
        lags: dict[TaskId, int] = {}
        for restore in list(self.stores.values()):
            if restore.follows:
                lags[restore.task_id] = lags.get(restore.task_id, 0) + restore.left
        return lags

    def due(self) -> dict[TaskId, Restorable | Followable]:
        """The tasks to begin with now."""
        now_ms = self._clock.monotonic_ms()
        return {
            task_id: task
            for task_id, task in self.submitted.items()
            if self._aside.get(task_id, now_ms) <= now_ms
        }

    def begin(self, task_id: TaskId, restores: Sequence[StoreRestore]) -> None:
        """Begin with a task whose offsets are known now."""
        task = self.submitted.pop(task_id)
        self.begun[task_id] = TaskRestore(task, restores, task_id in self.followed)
        self.stores |= {restore.partition: restore for restore in restores}
        self.changed = True

    def put_aside(self, task_id: TaskId, error: StreamsError) -> None:
        """Stop following a task after an error, and begin again after a pause. The others do not need it."""
        pause_s = STANDBY_PAUSE_MS / 1000
        log.warning("a standby of task %s is tried again in %.0f s: %s", task_id, pause_s, error)
        self.forget(task_id)
        self.submitted[task_id] = self.followed[task_id]
        self._aside[task_id] = self._clock.monotonic_ms() + STANDBY_PAUSE_MS

    def forget(self, task_id: TaskId) -> None:
        """Stop the restore of a task, if it has begun."""
        of_task = self.begun.pop(task_id, None)
        if of_task is not None:
            for restore in of_task.stores:
                del self.stores[restore.partition]
            self.changed = True

    def withdraw(self, task_id: TaskId) -> None:
        """Stop restoring or following a task."""
        self.submitted.pop(task_id, None)
        self._aside.pop(task_id, None)
        self.forget(task_id)
        self.followed.pop(task_id, None)
        self._informed.discard(task_id)

    def group_committed(self, committed: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Give followed tasks the group's committed offsets, up to which their inputs may be read."""
        if self._informed != self.followed.keys():
            self._informed, self.changed = set(self.followed), True
        for task_id, task in self.followed.items():
            limits = task.group_committed(committed)
            begun = self.begun.get(task_id)
            for restore in begun.stores if begun is not None else ():
                if restore.store in limits:
                    restore.end_offset = max(restore.position, limits[restore.store])
                    self.changed = True

    def to_read(self) -> dict[TopicPartition, StoreRestore]:
        """The partitions of the tasks with the fewest remaining offsets; if no task is being restored, those of
        followed tasks. A task that needs the group's commits is not read before it has got them."""
        restored = [of_task for of_task in self.begun.values() if not of_task.follows and of_task.left]
        if not restored:
            return {
                partition: restore
                for partition, restore in self.stores.items()
                if restore.goes_on and self._may_follow(restore.task_id)
            }
        chosen: dict[TopicPartition, StoreRestore] = {}
        for of_task in sorted(restored, key=lambda of_task: of_task.left):
            if len(chosen) >= PARTITIONS_READ_MAX:
                break
            chosen |= {restore.partition: restore for restore in of_task.stores if restore.left}
        return chosen

    def _may_follow(self, task_id: TaskId) -> bool:
        task = self.followed.get(task_id)
        return task is not None and (task_id in self._informed or not task.needs_commits)
