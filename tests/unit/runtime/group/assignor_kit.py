"""Groups for the tests of the assignor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pystreams.ids import TaskId
from pystreams.runtime.group.assignor import Assignment, assign_tasks
from pystreams.runtime.group.situation import AssignorMember, AssignorSettings, TaskFacts

Active = Mapping[str, Sequence[TaskId]]


def members_of(*processes: int) -> list[AssignorMember]:
    """Members by the number of threads of each process: ``members_of(2, 1)`` are p0-t0, p0-t1, p1-t0."""
    return [
        AssignorMember(f"p{p}-t{t}", f"p{p}", f"p{p}-t{t}")
        for p, threads in enumerate(processes)
        for t in range(threads)
    ]


def holding(members: Iterable[AssignorMember], active: Active) -> list[AssignorMember]:
    """The members, each with what it was assigned."""
    return [replace(m, owned=frozenset(active.get(m.member_id, ()))) for m in members]


def tasks_of(*widths: int) -> list[TaskId]:
    return [TaskId(sub, partition) for sub, width in enumerate(widths) for partition in range(width)]


def facts_of(tasks: Iterable[TaskId], end: int = 0, **more: Any) -> TaskFacts:
    """Tasks that all have a changelog, of which each ends at ``end``."""
    ids = frozenset(tasks)
    return TaskFacts(ids, ids, ids, dict.fromkeys(ids, end), **more)


def spread_of(tasks: Iterable[TaskId], stateful: frozenset[TaskId], members: list[AssignorMember]) -> Active:
    """The active tasks of the members, if nothing has to warm up: the stores of ``stateful`` have no changelogs."""
    return assign_tasks(TaskFacts(frozenset(tasks), stateful), members).active


def lived(
    assignment: Assignment,
    members: Iterable[AssignorMember],
    ends: Mapping[TaskId, int] | None,
    read: float = 1.0,
) -> list[AssignorMember]:
    """The members some time later: active tasks run, and standbys have read this part of the changelogs."""
    later = []
    for m in members:
        standbys = [*assignment.standbys.get(m.member_id, ()), *assignment.warm_ups.get(m.member_id, ())]
        state = dict(m.state)
        for task in (*standbys, *assignment.active.get(m.member_id, ())):
            end = (ends or {}).get(task, 0)
            state[task] = max(state.get(task, 0), end if task not in standbys else int(end * read))
        later.append(
            replace(
                m,
                owned=frozenset(assignment.active.get(m.member_id, ())),
                standbys=frozenset(standbys),
                coming=frozenset(assignment.coming.get(m.member_id, ())),
                state=state,
            )
        )
    return later


def processes_of(given: Active) -> dict[TaskId, list[str]]:
    """The processes of each task; member ids are ``PROCESS-THREAD``."""
    places: dict[TaskId, list[str]] = {}
    for member_id, tasks in sorted(given.items()):
        for task in tasks:
            places.setdefault(task, []).append(member_id.split("-")[0])
    return places


def settings(**given: Any) -> AssignorSettings:
    return AssignorSettings(**given)
