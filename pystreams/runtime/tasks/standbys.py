"""The standbys of one thread: opened when their directories are free, followed by the restorer, and closed.

An error of a standby is only logged, and the standby is tried again later, because tasks and other standbys do not need
it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from pystreams.clock import Clock
from pystreams.errors import StateCorruptedError, StateError, StateLockedError, StreamsError
from pystreams.ids import TaskId
from pystreams.metrics import Counter
from pystreams.runtime.restoring.restorer import Restorer
from pystreams.runtime.restoring.task_restores import STANDBY_PAUSE_MS
from pystreams.runtime.tasks.standby_task import StandbyTask
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.task_opening import TaskOpener, level_of_wiping
from pystreams.runtime.tasks.task_set import TaskSet

log = logging.getLogger(__name__)


class Standbys:
    """Used by the stream thread; other threads may iterate. ``created``, ``closed``: the thread's counts of tasks."""

    def __init__(
        self, opener: TaskOpener, restorer: Restorer, clock: Clock, created: Counter, closed: Counter
    ) -> None:
        self._opener = opener
        self._restorer = restorer
        self._clock = clock
        self._created = created
        self._closed = closed
        self._tasks: TaskSet[StandbyTask] = TaskSet()

    def __iter__(self) -> Iterator[StandbyTask]:
        return iter(self._tasks)

    def __contains__(self, task_id: TaskId) -> bool:
        return task_id in self._tasks

    def ids(self) -> list[TaskId]:
        """Those of all standbys, also those whose stores are not open yet."""
        return self._tasks.ids()

    def add(self, task_id: TaskId) -> None:
        """Begin a standby, which is opened later."""
        self._tasks.add(self._opener.make_standby(task_id))

    def open_created(self) -> None:
        """Open the standbys that are not open yet, and have the restorer follow them."""
        now_ms = self._clock.monotonic_ms()
        for task in self._tasks.having(TaskStatus.CREATED):
            if now_ms < task.open_at_ms:
                continue
            try:
                self._open(task)
            except StateLockedError as error:
                task.waits_for_lock(now_ms, error)
            except StateError as error:
                self._tasks[task.task_id].open_at_ms = now_ms + STANDBY_PAUSE_MS
                pause_s = STANDBY_PAUSE_MS / 1000
                log.warning("a standby of task %s is tried again in %.0f s: %s", task.task_id, pause_s, error)

    def _open(self, task: StandbyTask) -> None:
        if not self._opener.state_is_here(task.task_id):
            return
        try:
            self._opener.open(task)
        except StateCorruptedError as error:
            self._opener.check_wiping_helps(task, error)
            self.wipe(task.task_id, error)
            return
        self._created.add()
        self._tasks.become(task, TaskStatus.STANDBY)
        task.state.committed_stores.open()
        self._restorer.follow(task)

    def give(self, task_id: TaskId) -> StandbyTask | None:
        """End a standby for an active task; its stores stay open, for the active task to take over. None: they are not
        open."""
        task = self._tasks[task_id]
        was = task.status
        self._restorer.withdraw(task_id)
        self._tasks.become(task, TaskStatus.CLOSED)
        return task if was is TaskStatus.STANDBY else None

    def close(self, task_id: TaskId) -> None:
        """End a standby. Errors of its stores are only logged."""
        task = self._tasks[task_id]
        was = task.status
        self._tasks.become(task, TaskStatus.CLOSED)
        if was is TaskStatus.CREATED:
            self._opener.give_up(task_id)
            return
        self._closed.add()
        self._restorer.withdraw(task_id)
        task.close_anyway()

    def wipe(self, task_id: TaskId, error: StreamsError) -> None:
        """Delete the state of a standby, which is corrupt, and begin anew."""
        log.log(level_of_wiping(error), "task %s: %s", task_id, error)
        self.close(task_id)
        self.add(task_id)
        self._opener.wipe(task_id)
        self._tasks[task_id].wiped = True
