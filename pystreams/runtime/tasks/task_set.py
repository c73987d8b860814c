"""The tasks that are assigned to a thread, by their states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from pystreams.ids import TaskId
from pystreams.runtime.tasks.task import Task, TaskStatus

T = TypeVar("T", bound=Task)


class TaskSet(Generic[T]):
    """Every task that is assigned, once, in the state that it is in; none that is closed."""

    def __init__(self) -> None:
        self._tasks: dict[TaskId, T] = {}
        self._running: list[T] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[T]:
        """A snapshot: tasks may come and go meanwhile, and another thread may ask."""
        return iter(list(self._tasks.values()))

    def __getitem__(self, task_id: TaskId) -> T:
        return self._tasks[task_id]

    @property
    def running(self) -> Sequence[T]:
        """Those that process records, by their ids."""
        return self._running

    def ids(self) -> list[TaskId]:
        return sorted(self._tasks)

    def having(self, *statuses: TaskStatus) -> list[T]:
        """Those that are in one of these states."""
        return [task for task in self._tasks.values() if task.status in statuses]

    def add(self, task: T) -> None:
        """A task that has just been made. It takes the place of one that was closed."""
        assert task.task_id not in self._tasks, f"task {task.task_id} is here twice"
        self._tasks[task.task_id] = task

    def become(self, task: T, status: TaskStatus) -> None:
        """Have a task go over to a state; one that is closed is forgotten. Raises ``IllegalTransitionError``."""
        task.become(status)
        if status is TaskStatus.CLOSED:
            del self._tasks[task.task_id]
        self._running = sorted(self.having(TaskStatus.RUNNING), key=lambda one: one.task_id)
