"""Spreads the active tasks evenly over the processes and their threads, and prefers the places where they are and where
their state is.

The rules, in the order of their priority:

1. Every task has one owner.
2. Tasks are spread evenly, within each sub-topology and in total, over the processes in proportion to their threads,
   and over the threads of each process (each gets its share, rounded down or up). With ``min_traffic`` a process need
   not get an even share of each sub-topology.
3. With a rack-aware strategy, few partitions are read from another rack and few tasks change their process, weighted by
   the costs in the settings.
4. A stateful task goes where its state is.
5. A task stays in its process.
6. A task stays with its thread.

All but the first two are weighted preferences. The spread over the processes maximizes their sum (``even_deal``), so
that only the necessary tasks change their process; then the spread over the threads of each process does the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pystreams.ids import TaskId
from pystreams.runtime.group.even_deal import Places, Wish, deal
from pystreams.runtime.group.situation import Situation

#: The weights of the preferences. A stateful task prefers a process that, in this order of the constants: is ready to
#: run it, has the least lag, runs it now, keeps a standby of it, prepares to run it. A stateless task prefers the
#: process that runs it now.
_READY: Final = 16
_FURTHEST: Final = 6
_SAME_PROCESS: Final = 5
_STANDBY_PROCESS: Final = 2
_COMING: Final = 5
_SAME_PROCESS_STATELESS: Final = 2
#: Within its process, a task prefers a thread that runs it now, or keeps a standby of it.
_SAME_THREAD: Final = 2
_STANDBY_THREAD: Final = 1

#: The way to all threads of a process.
_ANY_THREAD: Final = "any"


@dataclass(frozen=True, slots=True)
class _Preferences:
    """The sums of the weights for a task: by process, and by the index of the member (thread)."""

    processes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    threads: dict[int, int] = field(default_factory=lambda: defaultdict(int))


def spread_evenly(situation: Situation) -> dict[TaskId, int]:
    """For each task the index of its member in ``situation.members``, which must not be empty."""
    preferences = {task: _preferences(situation, task) for task in situation.tasks}
    tasks_of: dict[str, list[TaskId]] = defaultdict(list)
    for task, process_id in _over_processes(situation, preferences).items():
        tasks_of[process_id].append(task)
    spread: dict[TaskId, int] = {}
    for process_id, tasks in tasks_of.items():
        indexes = [situation.indexes[member.member_id] for member in situation.processes[process_id].members]
        wishes = {task: _wish_for_thread(preferences[task], indexes) for task in tasks}
        spread.update(deal(wishes, Places(dict.fromkeys(indexes, 1), {_ANY_THREAD: indexes})))
    return spread


def _preferences(situation: Situation, task: TaskId) -> _Preferences:
    wanted = _Preferences()
    owner = situation.owners.get(task)
    stateful = task in situation.facts.stateful
    if owner is not None:
        wanted.processes[owner.process_id] += _SAME_PROCESS if stateful else _SAME_PROCESS_STATELESS
        wanted.threads[situation.indexes[owner.member_id]] += _SAME_THREAD
    if not stateful:
        return wanted
    ready = situation.ready(task)
    for able, weight in ((ready, _READY), (situation.furthest(task), _FURTHEST)):
        # If this applies to all processes, it makes no difference.
        if len(able) < len(situation.processes):
            for process_id in able:
                wanted.processes[process_id] += weight
    for holder in situation.standby_holders.get(task, ()):
        # A standby that is far behind saves no time, so it counts only if the task is to move to its process later.
        if holder.process_id in ready:
            wanted.processes[holder.process_id] += _STANDBY_PROCESS
        elif task in holder.coming:
            wanted.processes[holder.process_id] += _COMING
        else:
            continue
        wanted.threads[situation.indexes[holder.member_id]] += _STANDBY_THREAD
    return wanted


def _over_processes(situation: Situation, preferences: Mapping[TaskId, _Preferences]) -> dict[TaskId, str]:
    """The process of each task."""
    aware = situation.rack_aware
    rack_of = {name: process.rack if aware else "" for name, process in situation.processes.items()}
    ways: dict[Hashable, list[str]] = defaultdict(list)
    for name, rack in rack_of.items():
        ways["rack", rack].append(name)
    # So high that a lower cost of racks is worth more than all other preferences of all tasks together.
    per_rack_cost = 1 + sum(max(wanted.processes.values(), default=0) for wanted in preferences.values())
    wishes = {
        task: _wish_for_process(situation, task, wanted, rack_of, per_rack_cost)
        for task, wanted in preferences.items()
    }
    places = Places(
        {name: process.threads for name, process in situation.processes.items()},
        ways,
        even_within=not (aware and situation.settings.rack_aware_assignment_strategy == "min_traffic"),
    )
    return _from_full_threads(situation, wishes, deal(wishes, places))


def _wish_for_process(
    situation: Situation, task: TaskId, wanted: _Preferences, rack_of: Mapping[str, str], per_rack_cost: int
) -> Wish:
    """The preferences of a task as costs: of processes, and of all others by rack."""
    settings, owner = situation.settings, situation.owners.get(task)
    racks = {
        rack: per_rack_cost * settings.traffic_cost * situation.crossing(task, rack) if rack else 0
        for rack in sorted(set(rack_of.values()))
    }
    processes = {name: racks[rack_of[name]] - weight for name, weight in sorted(wanted.processes.items())}
    if situation.rack_aware and owner is not None:
        processes[owner.process_id] -= per_rack_cost * settings.non_overlap_cost
    return (*processes.items(), *((("rack", rack), cost) for rack, cost in racks.items()))


def _wish_for_thread(wanted: _Preferences, indexes: list[int]) -> Wish:
    """The preferences of a task as costs: of the threads of its process, and of all others."""
    threads = ((index, -wanted.threads[index]) for index in indexes if index in wanted.threads)
    return (*threads, (_ANY_THREAD, 0))


def _from_full_threads(
    situation: Situation, wishes: Mapping[TaskId, Wish], process_of: Mapping[TaskId, str]
) -> dict[TaskId, str]:
    """The process of each task, with a better choice among tasks with equal wishes: the tasks of the fullest threads
    leave a process, so that fewer of the remaining tasks have to change their thread."""
    owners = situation.owners
    equals: dict[tuple[int, Wish, str], list[TaskId]] = defaultdict(list)
    over_all, within = Counter[str](), Counter[tuple[str, int]]()
    for task in situation.tasks:
        if task in owners:
            equals[task.subtopology, wishes[task], owners[task].process_id].append(task)
            over_all[owners[task].member_id] += 1
            within[owners[task].member_id, task.subtopology] += 1

    def fullness(task: TaskId) -> tuple[int, int]:
        member_id = owners[task].member_id
        return over_all[member_id], within[member_id, task.subtopology]

    chosen = dict(process_of)
    for (subtopology, _, process_id), tasks in equals.items():
        goals = [process_of[task] for task in tasks if process_of[task] != process_id]
        chosen.update(dict.fromkeys(tasks, process_id))
        for goal in goals:
            leaves = max((task for task in tasks if chosen[task] == process_id), key=fullness)
            chosen[leaves] = goal
            over_all[owners[leaves].member_id] -= 1
            within[owners[leaves].member_id, subtopology] -= 1
    return chosen
