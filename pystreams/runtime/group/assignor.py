"""Assigns tasks to members: a pure function of the tasks, the members and their local state.

    even spread ──► standby replicas ──► what is not ready stays where it is, and warms up ──► threads of each process

``even_spread`` chooses the members that should have the active tasks. If a stateful task would have to be restored
there, it continues or begins in a process that is ready, and the process that should have it gets a *warm-up*: a
temporary standby. When this is ready, the next rebalance moves the task. At most ``max_warmup_replicas`` warm up at a
time.

Source: KIP-441, HighAvailabilityTaskAssignor, TaskMovement.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from pystreams.ids import TaskId
from pystreams.runtime.group.even_spread import spread_evenly
from pystreams.runtime.group.situation import AssignorMember, AssignorSettings, Situation, TaskFacts
from pystreams.runtime.group.standby_places import place_standbys


@dataclass(frozen=True, slots=True)
class Assignment:
    """The result, by member id. ``standbys`` are kept up to date permanently, ``warm_ups`` until they are ready.
    ``coming`` has those of both that the member is to run when they are ready. ``pending``: some tasks are not yet
    where they should be, so the group should rebalance again later."""

    active: Mapping[str, Sequence[TaskId]]
    standbys: Mapping[str, Sequence[TaskId]]
    warm_ups: Mapping[str, Sequence[TaskId]]
    coming: Mapping[str, Sequence[TaskId]]
    pending: bool = False


def assign_tasks(
    facts: TaskFacts, members: Sequence[AssignorMember], settings: AssignorSettings | None = None
) -> Assignment:
    """The tasks of each member. The result does not depend on the order of the arguments."""
    situation = Situation(facts, members, settings or AssignorSettings())
    if not members:
        return Assignment({}, {}, {}, {})
    spread = spread_evenly(situation)
    wanted = {task: situation.members[index].process_id for task, index in spread.items()}
    moves = _Moves(situation, wanted)
    moves.keep_active_where_ready()
    moves.keep_standbys_where_ready()
    threads = _Threads(situation)
    # First the tasks that are where they should be, so that the others go to threads with few tasks.
    for task in sorted(moves.active, key=lambda task: (moves.active[task] != wanted[task], task)):
        threads.activate(task, moves.active[task], situation.members[spread[task]])
    for task in sorted(moves.standbys):
        for process in moves.standbys[task]:
            threads.follow(task, process, threads.standbys, coming=process == moves.coming.get(task))
        for process in moves.warm_ups.get(task, ()):
            threads.follow(task, process, threads.warm_ups, coming=process == moves.coming.get(task))
    for tasks in threads.active.values():
        tasks.sort()
    return Assignment(threads.active, threads.standbys, threads.warm_ups, threads.coming, moves.pending)


def spread_over_threads(
    situation: Situation, active: Mapping[TaskId, str], standbys: Mapping[str, Collection[TaskId]]
) -> Assignment:
    """The assignment to threads, for given processes: ``active`` has the process of each active task, ``standbys`` the
    standby tasks of each process."""
    threads = _Threads(situation)
    counts = Counter(active.values())
    for task in sorted(active):
        process = active[task]
        threads.activate_within(task, process, -(-counts[process] // situation.processes[process].threads))
    for process, tasks in sorted(standbys.items()):
        for task in sorted(tasks):
            threads.follow(task, process, threads.standbys, coming=False)
    return Assignment(threads.active, threads.standbys, threads.warm_ups, threads.coming)


class _Begun(IntEnum):
    """How far a process has prepared for a task that it should run and is not ready for."""

    NOTHING = 0
    TO_FOLLOW = 1
    TO_RUN = 2


class _Moves:
    """The moves of tasks from their present processes to those that should have them."""

    def __init__(self, situation: Situation, wanted: Mapping[TaskId, str]) -> None:
        self._situation = situation
        self._warm_ups_left = (
            situation.settings.max_warmup_replicas if situation.facts.ends is not None else 0
        )
        self.active = dict(wanted)
        self.standbys = {task: [*places] for task, places in place_standbys(situation, wanted).items()}
        self.warm_ups: dict[TaskId, list[str]] = defaultdict(list)
        #: For each task that waits until another process is ready, that process.
        self.coming: dict[TaskId, str] = {}
        self.pending = False
        for task in situation.facts.replicable:
            self.standbys.setdefault(task, [])
        self._load = Counter(wanted.values())

    def keep_active_where_ready(self) -> None:
        """If the process that should have a task is not ready, leave or give the task to a process that is."""
        situation = self._situation
        waiting = [
            task
            for task in sorted(situation.facts.replicable)
            if self.active[task] not in situation.ready(task)
        ]
        begun = {task: self._begun(task) for task in waiting}
        # First the moves that have begun, then the tasks for which the fewest processes are ready.
        for task in sorted(waiting, key=lambda task: (-begun[task], len(situation.ready(task)), task)):
            wanted, process = self.active[task], self._stand_in(task)
            self.coming[task] = wanted
            self.pending = True
            self.active[task] = process
            self._load.update({process: 1, wanted: -1})
            if process in self.standbys[task]:
                self.standbys[task].remove(process)
                self.standbys[task].append(wanted)
            else:
                self._warm_up(task, wanted, goes_on=begun[task] is _Begun.TO_RUN)

    def _begun(self, task: TaskId) -> _Begun:
        """How far the process that should have a task has prepared for it."""
        holders = [
            holder
            for holder in self._situation.standby_holders.get(task, ())
            if holder.process_id == self.active[task]
        ]
        if any(task in holder.coming for holder in holders):
            return _Begun.TO_RUN
        return _Begun.TO_FOLLOW if holders else _Begun.NOTHING

    def _stand_in(self, task: TaskId) -> str:
        """The ready process that runs the task meanwhile: its owner; otherwise a process that is to have a standby of
        it; otherwise the one with the least lag, then with the fewest tasks per thread."""
        situation = self._situation
        owner = situation.owners.get(task)
        standbys = self.standbys[task]
        return min(
            situation.ready(task),
            key=lambda p: (
                owner is None or p != owner.process_id,
                p not in standbys,
                situation.lags(task)[p],
                self._load[p] / situation.processes[p].threads,
                p,
            ),
        )

    def keep_standbys_where_ready(self) -> None:
        """Keep a ready standby until the standby that replaces it is ready, too."""
        situation = self._situation
        for task in sorted(situation.facts.replicable):
            ready = situation.ready(task)
            in_use = {self.active[task], *self.standbys[task], *self.warm_ups.get(task, ())}
            held = [holder.process_id for holder in situation.standby_holders.get(task, ())]
            spare = [process for process in dict.fromkeys(held) if process in ready and process not in in_use]
            for process in [process for process in self.standbys[task] if process not in ready]:
                if spare:
                    self.pending = True
                    self.standbys[task].remove(process)
                    self.standbys[task].append(spare.pop(0))
                    self._warm_up(task, process)

    def _warm_up(self, task: TaskId, process: str, *, goes_on: bool = False) -> None:
        """Have a process warm up a task, unless there are too many warm-ups. ``goes_on``: the process has already
        begun, as a warm-up or as a standby that is elsewhere now, and continues in any case, because to begin again
        later would cost more."""
        if self._warm_ups_left > 0 or goes_on:
            self._warm_ups_left -= 1
            self.warm_ups[task].append(process)


class _Threads:
    """Distributes the tasks of each process over its threads."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self.active: dict[str, list[TaskId]] = {member.member_id: [] for member in situation.members}
        self.standbys: dict[str, list[TaskId]] = {member.member_id: [] for member in situation.members}
        self.warm_ups: dict[str, list[TaskId]] = {member.member_id: [] for member in situation.members}
        self.coming: dict[str, list[TaskId]] = {member.member_id: [] for member in situation.members}

    def activate(self, task: TaskId, process_id: str, spread_to: AssignorMember) -> None:
        """Give an active task to the member of the even spread; if the task is in another process, to a member there
        that has it already."""
        member = spread_to
        if spread_to.process_id != process_id:
            owner = self._situation.owners.get(task)
            holders = [owner] if owner is not None else []
            member = self._one_of(process_id, [*holders, *self._situation.standby_holders.get(task, ())])
        self.active[member.member_id].append(task)

    def activate_within(self, task: TaskId, process_id: str, most: int) -> None:
        """Give an active task to the member that has it already, unless this has ``most`` tasks; otherwise to the
        member with the fewest tasks."""
        owner = self._situation.owners.get(task)
        holders = [owner] if owner is not None and len(self.active[owner.member_id]) < most else []
        self.active[self._one_of(process_id, holders).member_id].append(task)

    def follow(self, task: TaskId, process_id: str, into: dict[str, list[TaskId]], *, coming: bool) -> None:
        """Give a standby or warm-up to a member that has the task already, as a standby or active."""
        holders = [*self._situation.standby_holders.get(task, ())]
        if task in self._situation.owners:
            holders.append(self._situation.owners[task])
        member_id = self._one_of(process_id, holders).member_id
        into[member_id].append(task)
        if coming:
            self.coming[member_id].append(task)

    def _one_of(self, process_id: str, holders: Sequence[AssignorMember]) -> AssignorMember:
        held = next((member for member in holders if member.process_id == process_id), None)
        return held or min(
            self._situation.processes[process_id].members,
            key=lambda member: sum(
                len(tasks[member.member_id]) for tasks in (self.active, self.standbys, self.warm_ups)
            ),
        )
