"""Calls the assignor of the program, and checks what it returns.

Source: StreamsPartitionAssignor.UserTaskAssignmentListener, TaskAssignmentUtils.validateTaskAssignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pystreams.config import StreamsConfig
from pystreams.errors import ConfigError, TopologyError, summarize
from pystreams.ids import TaskId
from pystreams.nearest import listing
from pystreams.runtime.group.assignor import Assignment, spread_over_threads
from pystreams.runtime.group.situation import Situation
from pystreams.task_assignor import ApplicationState, ProcessState, TaskAssignment, TaskInfo


@dataclass(frozen=True, slots=True)
class OwnAssignor:
    """The assignor of the setting ``task_assignor_class``, with the facts about the tasks that it gets."""

    assign: Callable[[ApplicationState], object]
    tasks: Mapping[TaskId, TaskInfo]
    config: StreamsConfig

    def __call__(self, situation: Situation) -> tuple[Assignment, int]:
        """The assignment, and after how many ms the group is to rebalance again (0: not by itself). Raises
        ``TopologyError`` if the assignor fails, or returns something invalid."""
        try:
            given = self.assign(ApplicationState(self.tasks, _processes(situation), self.config))
        except Exception as error:
            raise TopologyError(
                "the program's own assignor failed", where=self._where, why=summarize(error)
            ) from error
        if not isinstance(given, TaskAssignment):
            raise self._invalid(f"it returned {type(given).__qualname__}, not TaskAssignment")
        if why := why_invalid(given, situation):
            raise self._invalid(why)
        process_of = {task: process for process, tasks in given.active.items() for task in tasks}
        return spread_over_threads(situation, process_of, given.standbys), given.follow_up_ms

    @property
    def _where(self) -> str:
        return f"task_assignor_class of application {self.config.application_id}"

    def _invalid(self, why: str) -> TopologyError:
        return TopologyError(
            "the program's own assignor gives an invalid assignment",
            where=self._where,
            why=why,
            hint="each task is active in one process, and its standbys are in others; see pystreams.task_assignor",
        )


def own_assignor(given: Any, tasks: Mapping[TaskId, TaskInfo], config: StreamsConfig) -> OwnAssignor | None:
    """The assignor of the setting: an object with ``assign``, its class, or a function. None: none is set. Raises
    ``ConfigError``."""
    if given is None:
        return None
    assignor = given() if isinstance(given, type) else given
    assign = getattr(assignor, "assign", assignor)
    if not callable(assign):
        raise ConfigError(
            f"task_assignor_class cannot be {given!r}",
            why="expected an object with the method assign, its class, or a function",
        )
    return OwnAssignor(assign, tasks, config)


def why_invalid(given: TaskAssignment, situation: Situation) -> str:
    """The reason why an assignment is invalid; empty if it is valid."""
    processes = situation.processes.keys()
    active = Counter(task for tasks in given.active.values() for task in tasks)
    followed = {task for tasks in given.standbys.values() for task in tasks}
    beside = [
        task
        for process, tasks in given.standbys.items()
        for task in tasks
        if task in given.active.get(process, ())
    ]
    known = situation.facts.tasks
    findings: list[tuple[str, Sequence[Any]]] = [
        ("unknown processes", sorted({*given.active, *given.standbys} - processes)),
        ("no tasks, not even an empty collection, for processes", sorted(processes - given.active.keys())),
        ("unknown tasks", sorted((active.keys() | followed) - known)),
        ("tasks that are active more than once", sorted(task for task, count in active.items() if count > 1)),
        ("tasks that are active nowhere", sorted(known - active.keys())),
        ("standbys of tasks without changelogs", sorted(followed & known - situation.facts.replicable)),
        ("standbys in the process of their active task", sorted(beside)),
    ]
    return "; ".join(f"{what}: {listing(list(map(str, of)), most=5)}" for what, of in findings if of)


def _processes(situation: Situation) -> dict[str, ProcessState]:
    lags_known = situation.facts.ends is not None
    return {
        name: ProcessState(
            name,
            process.threads,
            frozenset[TaskId]().union(*(member.owned for member in process.members)),
            frozenset[TaskId]().union(*(member.standbys for member in process.members)),
            {task: situation.lags(task)[name] for task in situation.facts.replicable} if lags_known else {},
            process.tags,
            process.rack,
        )
        for name, process in situation.processes.items()
    }
