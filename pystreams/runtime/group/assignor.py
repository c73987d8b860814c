"""Assigns tasks to members: a pure function of the tasks, the members and their local state.

The rules, in this order: every task has one owner; tasks are spread evenly over the members, within each sub-topology
and over all, and over processes in proportion to their members (counts differ by one at most); a stateful task goes
where its state is; a task stays with its owner. The last two are weighted preferences, and the assignment maximizes
their sum within an even spread: a least-cost flow, so that only the necessary tasks move.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pystreams.ids import TaskId
from pystreams.runtime.group.flow import FlowNetwork

#: The weights: a task keeps its owner; a stateful task finds its state on the disk of its process.
_KEEP_OWNER = 1
_KEEP_STATE = 2

#: The preferences of a task: (index of a member, weight), ascending.
_Wish: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class AssignorMember:
    """A member as the assignor sees it. ``state`` is the progress of the tasks' state on its process' disk, as the
    member reported it: members of one process share the disk, so the report of one is valid for all."""

    member_id: str
    process_id: str
    thread: str
    owned: frozenset[TaskId] = frozenset()
    state: Mapping[TaskId, int] = field(default_factory=dict)


def assign_tasks(
    tasks: Iterable[TaskId], stateful: frozenset[TaskId], members: Iterable[AssignorMember]
) -> dict[str, list[TaskId]]:
    """The tasks of each member, by member id; the same for any order of the arguments."""
    ordered = sorted(members, key=lambda m: (m.process_id, m.thread, m.member_id))
    result: dict[str, list[TaskId]] = {member.member_id: [] for member in ordered}
    if not ordered:
        return result
    subtopologies: dict[int, list[TaskId]] = defaultdict(list)
    for task in sorted(set(tasks)):
        subtopologies[task.subtopology].append(task)
    wishes = _wishes(subtopologies, stateful, ordered)
    network = _network(subtopologies, wishes, ordered)
    for subtopology, group in subtopologies.items():
        for task, index in _deal(network, subtopology, group, wishes, len(ordered)):
            result[ordered[index].member_id].append(task)
    return {member_id: sorted(owned) for member_id, owned in result.items()}


def _wishes(
    subtopologies: Mapping[int, Sequence[TaskId]],
    stateful: frozenset[TaskId],
    members: Sequence[AssignorMember],
) -> dict[TaskId, _Wish]:
    on_disk: dict[str, dict[TaskId, int]] = defaultdict(dict)
    furthest: dict[TaskId, int] = {}
    for member in members:
        of_process = on_disk[member.process_id]
        for task, reached in member.state.items():
            of_process[task] = max(reached, of_process.get(task, reached))
            furthest[task] = max(reached, furthest.get(task, reached))
    worth: dict[TaskId, dict[int, int]] = {task: {} for group in subtopologies.values() for task in group}
    owned: set[TaskId] = set()
    for index, member in enumerate(members):
        for task in (member.owned & worth.keys()) - owned:
            worth[task][index] = _KEEP_OWNER
        owned |= member.owned
        for task, reached in on_disk[member.process_id].items():
            if task in stateful and task in worth and reached == furthest[task]:
                worth[task][index] = worth[task].get(index, 0) + _KEEP_STATE
    return {task: tuple(sorted(wish.items())) for task, wish in worth.items()}


def _network(
    subtopologies: Mapping[int, Sequence[TaskId]],
    wishes: Mapping[TaskId, _Wish],
    members: Sequence[AssignorMember],
) -> FlowNetwork:
    """The solved network: source, equal tasks, (sub-topology, member), member, process, sink."""
    network = FlowNetwork()
    total = sum(len(group) for group in subtopologies.values())
    for subtopology, group in subtopologies.items():
        equals: dict[_Wish, int] = defaultdict(int)
        for task in group:
            equals[wishes[task]] += 1
        for wish, amount in equals.items():
            network.edge("source", (subtopology, wish), amount)
            for index, worth in wish:
                network.edge((subtopology, wish), (subtopology, index), amount, cost=-worth)
            network.edge((subtopology, wish), (subtopology, "anywhere"), amount)
        low, high = _share(len(group), 1, len(members))
        for index in range(len(members)):
            network.edge((subtopology, "anywhere"), (subtopology, index), high)
            network.edge((subtopology, index), index, high, lower=low)
    processes: dict[str, int] = defaultdict(int)
    for index, member in enumerate(members):
        low, high = _share(total, 1, len(members))
        network.edge(index, member.process_id, high, lower=low)
        processes[member.process_id] += 1
    for process_id, count in processes.items():
        low, high = _share(total, count, len(members))
        network.edge(process_id, "sink", high, lower=low)
    network.solve("source", "sink", total)
    return network


def _share(amount: int, share: int, of: int) -> tuple[int, int]:
    """``amount * share / of``, rounded down and up."""
    return amount * share // of, -(-amount * share // of)


def _deal(
    network: FlowNetwork,
    subtopology: int,
    group: Sequence[TaskId],
    wishes: Mapping[TaskId, _Wish],
    members: int,
) -> list[tuple[TaskId, int]]:
    """Choose the tasks for the network's counts: preferences first, then the others in turn."""
    granted = {
        (wish, index): network.flow((subtopology, wish), (subtopology, index))
        for wish in {wishes[task] for task in group}
        for index, _ in wish
    }
    room = [network.flow((subtopology, "anywhere"), (subtopology, index)) for index in range(members)]
    dealt: list[tuple[TaskId, int]] = []
    turn = -1
    for task in group:
        chosen = next((index for index, _ in wishes[task] if granted[wishes[task], index]), None)
        if chosen is not None:
            granted[wishes[task], chosen] -= 1
        else:
            turn = next(i % members for i in range(turn + 1, turn + 1 + members) if room[i % members])
            room[turn] -= 1
            chosen = turn
        dealt.append((task, chosen))
    return dealt
