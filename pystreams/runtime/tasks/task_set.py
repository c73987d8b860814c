"""The tasks that are assigned to a thread, by their states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from pystreams.ids import TaskId
from pystreams.runtime.tasks.task import Task, TaskStatus

T = TypeVar("T", bound=Task)


class TaskSet(Generic[T]):
    """All assigned tasks by their ids, without closed ones. It is the only place that changes their states."""

    def __init__(self) -> None:
        self._tasks: dict[TaskId, T] = {}
        self._running: list[T] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[T]:
        """Iterates over a copy, because tasks may be added or closed meanwhile; another thread may iterate, too."""
        return iter(list(self._tasks.values()))

    def __contains__(self, task_id: TaskId) -> bool:
        return task_id in self._tasks

    def __getitem__(self, task_id: TaskId) -> T:
        return self._tasks[task_id]

    @property
    def running(self) -> Sequence[T]:
        """The tasks that process records, sorted by their ids."""
        return self._running

    def ids(self) -> list[TaskId]:
        return sorted(self._tasks)

    def having(self, *statuses: TaskStatus) -> list[T]:
        """The tasks in one of these states."""
        return [task for task in self._tasks.values() if task.status in statuses]

    def add(self, task: T) -> None:
        """Add a new task. The set must not contain another task with its id."""
        assert task.task_id not in self._tasks, f"task {task.task_id} is here twice"
        self._tasks[task.task_id] = task

    def become(self, task: T, status: TaskStatus) -> None:
        """Change a task's state; a closed task leaves the set. Raises ``IllegalTransitionError``."""
        was = task.status
        task.become(status)
        if status is TaskStatus.CLOSED:
            del self._tasks[task.task_id]
        if TaskStatus.RUNNING in (was, status):
            self._running = sorted(self.having(TaskStatus.RUNNING), key=lambda one: one.task_id)
