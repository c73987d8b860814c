"""Spreads the active tasks evenly over the members, by preference where they are and where their state is.

The rules, in this order: every task has one owner; tasks are spread evenly over the members, within each sub-topology
and over all, and over processes in proportion to their members (counts differ by one at most); with a rack-aware
strategy, few partitions are read from another rack and few tasks change their process, weighted by the costs in the
settings; a stateful task goes where its state is; a task stays with its owner. All but the first two are weighted
preferences, and the assignment maximizes their sum within an even spread: a least-cost flow, so that only the necessary
tasks move. With ``min_traffic`` it need not be even within each sub-topology.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple

from pystreams.ids import TaskId
from pystreams.runtime.group.flow import FlowNetwork
from pystreams.runtime.group.situation import Situation

#: The weights of the preferences. A stateful task goes to a process that: is ready to run it, has the least lag, runs
#: it now, keeps a standby of it, prepares to run it. A task goes to a thread that: runs it now, keeps a standby of it.
_READY: Final = 16
_FURTHEST: Final = 6
_SAME_PROCESS: Final = 3
_SAME_THREAD: Final = 2
_STANDBY_PROCESS: Final = 1
_STANDBY_THREAD: Final = 1
_COMING: Final = 4
#: The costs of racks come before these.
_RACKS_FIRST: Final = 64


class _Wish(NamedTuple):
    """The preferences of a task, as costs: of members (by index), of processes, and of all others by rack."""

    members: tuple[tuple[int, int], ...]
    processes: tuple[tuple[str, int], ...]
    racks: tuple[tuple[str, int], ...]


def spread_evenly(situation: Situation) -> dict[TaskId, int]:
    """For each task the index of its member in ``situation.members``, of which there must be one."""
    groups: dict[int, list[TaskId]] = defaultdict(list)
    for task in situation.tasks:
        groups[task.subtopology].append(task)
    wishes = {task: _wish(situation, task) for task in situation.tasks}
    network = _network(situation, groups, wishes)
    dealt: dict[TaskId, int] = {}
    for subtopology, group in groups.items():
        dealt.update(_deal(situation, network, subtopology, group, wishes))
    return dealt


def _wish(situation: Situation, task: TaskId) -> _Wish:
    of_process: dict[str, int] = defaultdict(int)
    of_member: dict[int, int] = defaultdict(int)
    owner = situation.owners.get(task)
    if task in situation.facts.stateful:
        ready = situation.ready(task)
        # If all processes are ready, this decides nothing.
        if len(ready) < len(situation.processes):
            for process in ready:
                of_process[process] += _READY
        furthest = situation.furthest(task)
        if len(furthest) < len(situation.processes):
            for process in furthest:
                of_process[process] += _FURTHEST
        if owner is not None:
            of_process[owner.process_id] += _SAME_PROCESS
        for holder in situation.standby_holders.get(task, ()):
            # A standby that is far behind is no better than no state, unless the task has been meant to come.
            if holder.process_id in ready:
                of_process[holder.process_id] += _STANDBY_PROCESS
            elif task in holder.coming:
                of_process[holder.process_id] += _COMING
            else:
                continue
            of_member[_index(situation, holder.member_id)] += _STANDBY_THREAD
    if owner is not None:
        of_member[_index(situation, owner.member_id)] += _SAME_THREAD
    racks = (
        sorted({process.rack for process in situation.processes.values()}) if situation.rack_aware else [""]
    )
    cost_of = {rack: _rack_cost(situation, task, rack) for rack in racks}
    moves = _RACKS_FIRST * situation.settings.non_overlap_cost if situation.rack_aware and owner else 0

    def cost(process_id: str) -> int:
        rack = situation.processes[process_id].rack if situation.rack_aware else ""
        stays = owner is not None and owner.process_id == process_id
        return cost_of[rack] + (0 if stays else moves) - of_process.get(process_id, 0)

    if owner is not None and moves:
        of_process[owner.process_id] += 0
    members = situation.members
    return _Wish(
        tuple((index, cost(members[index].process_id) - worth) for index, worth in sorted(of_member.items())),
        tuple((process, cost(process)) for process in sorted(of_process)),
        tuple((rack, cost_of[rack] + moves) for rack in racks),
    )


def _rack_cost(situation: Situation, task: TaskId, rack: str) -> int:
    if not situation.rack_aware:
        return 0
    return _RACKS_FIRST * situation.settings.traffic_cost * situation.crossing(task, rack)


def _index(situation: Situation, member_id: str) -> int:
    return situation.indexes[member_id]


def _network(
    situation: Situation, groups: Mapping[int, Sequence[TaskId]], wishes: Mapping[TaskId, _Wish]
) -> FlowNetwork:
    """The solved network: source, equal tasks, (sub-topology, rack), (sub-topology, process), (sub-topology, member),
    member, process, sink."""
    network = FlowNetwork()
    members, total = situation.members, len(situation.tasks)
    even_within = (
        situation.settings.rack_aware_assignment_strategy != "min_traffic" or not situation.rack_aware
    )
    for subtopology, group in groups.items():
        equals: dict[_Wish, int] = defaultdict(int)
        for task in group:
            equals[wishes[task]] += 1
        for wish, amount in equals.items():
            network.edge("source", (subtopology, wish), amount)
            for target, cost in (*wish.members, *wish.processes):
                network.edge((subtopology, wish), (subtopology, target), amount, cost=cost)
            for rack, cost in wish.racks:
                network.edge((subtopology, wish), (subtopology, "rack", rack), amount, cost=cost)
        low, high = _share(len(group), 1, len(members)) if even_within else (0, len(group))
        for process in situation.processes.values():
            rack = process.rack if situation.rack_aware else ""
            network.edge((subtopology, "rack", rack), (subtopology, process.process_id), len(group))
        for index, member in enumerate(members):
            network.edge((subtopology, member.process_id), (subtopology, index), high)
            network.edge((subtopology, index), index, high, lower=low)
    low, high = _share(total, 1, len(members))
    for index, member in enumerate(members):
        network.edge(index, member.process_id, high, lower=low)
    for process in situation.processes.values():
        low, high = _share(total, process.threads, len(members))
        network.edge(process.process_id, "sink", high, lower=low)
    network.solve("source", "sink", total)
    return network


def _share(amount: int, share: int, of: int) -> tuple[int, int]:
    """``amount * share / of``, rounded down and up."""
    return amount * share // of, -(-amount * share // of)


def _deal(
    situation: Situation,
    network: FlowNetwork,
    subtopology: int,
    group: Sequence[TaskId],
    wishes: Mapping[TaskId, _Wish],
) -> dict[TaskId, int]:
    """Choose the tasks for the network's counts: at each node, the tasks that have come go on in turn."""
    at: dict[Hashable, list[TaskId]] = defaultdict(list)
    for task in group:
        at[wishes[task]].append(task)

    def go_on(start: Hashable, node: Hashable, targets: Sequence[Hashable], ends: Sequence[Hashable]) -> None:
        counts = [network.flow(node, end) for end in ends]
        turn = -1
        for task in sorted(at.pop(start, ())):
            turn = next(i % len(ends) for i in range(turn + 1, turn + 1 + len(ends)) if counts[i % len(ends)])
            counts[turn] -= 1
            at[targets[turn]].append(task)

    for wish in list(at):
        assert isinstance(wish, _Wish)
        named: list[Hashable] = [target for target, _ in (*wish.members, *wish.processes)]
        racks: list[Hashable] = [("rack", rack) for rack, _ in wish.racks]
        ends = [(subtopology, target) for target in named] + [
            (subtopology, "rack", rack) for rack, _ in wish.racks
        ]
        go_on(wish, (subtopology, wish), named + racks, ends)
    processes = list(situation.processes)
    for key in [key for key in at if isinstance(key, tuple)]:
        go_on(key, (subtopology, *key), processes, [(subtopology, process) for process in processes])
    for process_id in processes:
        indexes = [i for i, member in enumerate(situation.members) if member.process_id == process_id]
        go_on(process_id, (subtopology, process_id), indexes, [(subtopology, index) for index in indexes])
    return {task: index for index, tasks in at.items() if isinstance(index, int) for task in tasks}
