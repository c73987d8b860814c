"""Groups for the tests of the assignor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from pystreams.ids import TaskId
from pystreams.runtime.group.assignor import Assignment, assign_tasks
from pystreams.runtime.group.situation import AssignorMember, AssignorSettings, TaskFacts

Active = Mapping[str, Sequence[TaskId]]

#: What brute force can go through: up to six tasks, and up to six threads in processes of one to three.
few_tasks = st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda widths: sum(widths) <= 6)
few_threads = st.lists(st.integers(1, 3), min_size=1, max_size=4).filter(lambda threads: sum(threads) <= 6)
#: Who owns each task: see ``owning``.
few_owners = st.lists(st.integers(0, 6), min_size=6, max_size=6)


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


def owning(
    members: Sequence[AssignorMember], tasks: Iterable[TaskId], owners: Sequence[int], end: int
) -> list[AssignorMember]:
    """The members with the tasks that they own, and the state of these up to ``end``. ``owners`` says who owns each
    task, in circles: first the members in their order, then nobody."""
    held: list[list[TaskId]] = [[] for _ in range(len(members) + 1)]
    for task, owner in zip(tasks, owners, strict=False):
        held[owner % len(held)].append(task)
    return [
        replace(m, owned=frozenset(own), state=dict.fromkeys(own, end))
        for m, own in zip(members, held, strict=False)
    ]


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


def settled(
    facts: TaskFacts, members: Sequence[AssignorMember], wanted: AssignorSettings
) -> tuple[Assignment, list[AssignorMember]]:
    """The assignment when all warm-ups are done, and the members that got it."""
    given, now = assign_tasks(facts, members, wanted), [*members]
    most = 2 * (1 + wanted.num_standby_replicas) * len(facts.tasks)
    for _ in range(most):
        if not given.pending:
            return given, now
        now = lived(given, now, facts.ends)
        given = assign_tasks(facts, now, wanted)
    raise AssertionError(f"not settled after {most} rounds")


def processes_of(given: Active) -> dict[TaskId, list[str]]:
    """The processes of each task; member ids are ``PROCESS-THREAD``."""
    places: dict[TaskId, list[str]] = {}
    for member_id, tasks in sorted(given.items()):
        for task in tasks:
            places.setdefault(task, []).append(member_id.split("-")[0])
    return places


def owners_of(given: Active, members: Iterable[AssignorMember]) -> dict[TaskId, AssignorMember]:
    """The member of each task."""
    return {task: m for m in members for task in given.get(m.member_id, ())}


class Shares:
    """What is even: each process has its share of all tasks in proportion to its threads, rounded down or up, and each
    thread has its own. If ``within``, both have their share of each sub-topology, too."""

    def __init__(
        self, tasks: Iterable[TaskId], members: Sequence[AssignorMember], *, within: bool = True
    ) -> None:
        self._members, self._within = members, within
        self._tasks = sorted(tasks)
        weights = Counter(name for m in members for name in (m.process_id, m.member_id))
        sizes = Counter(part for task in self._tasks for part in self._parts(task))
        self._bounds = {
            (part, name): (size * weight // len(members), -(-size * weight // len(members)))
            for part, size in sizes.items()
            for name, weight in weights.items()
        }

    def _parts(self, task: TaskId) -> tuple[int | None, ...]:
        return (None, task.subtopology) if self._within else (None,)

    def _counted(self, task: TaskId, member: AssignorMember) -> list[tuple[int | None, str]]:
        return [(part, name) for part in self._parts(task) for name in (member.process_id, member.member_id)]

    def are_kept(self, owners: Mapping[TaskId, AssignorMember]) -> bool:
        """Whether an assignment is even."""
        counts = Counter(place for task, member in owners.items() for place in self._counted(task, member))
        return all(low <= counts[place] <= high for place, (low, high) in self._bounds.items())

    def all_even(self) -> Iterator[dict[TaskId, AssignorMember]]:
        """All assignments that are even."""
        yield from self._continued({}, Counter())

    def _continued(
        self, owners: dict[TaskId, AssignorMember], counts: Counter[tuple[int | None, str]]
    ) -> Iterator[dict[TaskId, AssignorMember]]:
        if len(owners) == len(self._tasks):
            if self.are_kept(owners):
                yield owners
            return
        task = self._tasks[len(owners)]
        for member in self._members:
            places = self._counted(task, member)
            if all(counts[place] < self._bounds[place][1] for place in places):
                yield from self._continued({**owners, task: member}, counts + Counter(places))


def settings(**given: Any) -> AssignorSettings:
    return AssignorSettings(**given)
