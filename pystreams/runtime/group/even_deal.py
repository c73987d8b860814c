"""Deals tasks to places in even shares, at the least cost: a minimum-cost flow in which tasks with equal wishes are one
node.

    source ──► tasks with equal wishes ──► ways ──► places, by sub-topology ──► places ──► sink

Each place gets its share of all tasks, and of the tasks of each sub-topology: in proportion to its weight, rounded down
or up. Such shares always exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from pystreams.ids import TaskId
from pystreams.runtime.group.flow import FlowNetwork

PlaceT = TypeVar("PlaceT", bound=Hashable)

#: The ways (nodes of the network) that a task may take to a place, each with its cost.
Wish: TypeAlias = tuple[tuple[Hashable, int], ...]

#: For each sub-topology, its tasks by their wishes.
_Groups: TypeAlias = Mapping[int, Mapping[Wish, Sequence[TaskId]]]


@dataclass(frozen=True, slots=True)
class Places(Generic[PlaceT]):
    """The places with their weights, and the ways that lead to several of them; each place is also a way to itself.
    Without ``even_within``, only the shares of all tasks together need to be even."""

    weights: Mapping[PlaceT, int]
    ways: Mapping[Hashable, Sequence[PlaceT]]
    even_within: bool = True


def deal(wishes: Mapping[TaskId, Wish], places: Places[PlaceT]) -> dict[TaskId, PlaceT]:
    """The place of each task."""
    groups: dict[int, dict[Wish, list[TaskId]]] = defaultdict(lambda: defaultdict(list))
    for task in sorted(wishes):
        groups[task.subtopology][wishes[task]].append(task)
    network = _solved(groups, places)
    dealt: dict[TaskId, PlaceT] = {}
    for subtopology, equals in groups.items():
        at: dict[Hashable, list[TaskId]] = defaultdict(list)
        for wish, tasks in equals.items():
            for task, way in _in_turn(network, subtopology, tasks, wish, [way for way, _ in wish]):
                at[way].append(task)
        for way, ends in places.ways.items():
            for task, end in _in_turn(network, subtopology, sorted(at[way]), way, ends):
                at[end].append(task)
        dealt.update((task, place) for place in places.weights for task in at[place])
    return dealt


def _solved(groups: _Groups, places: Places[PlaceT]) -> FlowNetwork:
    network = FlowNetwork()
    whole = sum(places.weights.values())

    def share(amount: int, weight: int) -> tuple[int, int]:
        """``amount * weight / whole``, rounded down and up."""
        return amount * weight // whole, -(-amount * weight // whole)

    total = 0
    for subtopology, equals in groups.items():
        size = sum(map(len, equals.values()))
        total += size
        for wish, tasks in equals.items():
            network.edge("source", (subtopology, wish), len(tasks))
            for way, cost in wish:
                network.edge((subtopology, wish), (subtopology, way), len(tasks), cost=cost)
        for way, ends in places.ways.items():
            for place in ends:
                network.edge((subtopology, way), (subtopology, place), size)
        for place, weight in places.weights.items():
            low, high = share(size, weight) if places.even_within else (0, size)
            network.edge((subtopology, place), ("all", place), high, lower=low)
    for place, weight in places.weights.items():
        low, high = share(total, weight)
        network.edge(("all", place), "sink", high, lower=low)
    network.solve("source", "sink", total)
    return network


def _in_turn(
    network: FlowNetwork,
    subtopology: int,
    tasks: Sequence[TaskId],
    start: Hashable,
    ends: Sequence[Hashable],
) -> Iterator[tuple[TaskId, Hashable]]:
    """Deals the tasks at the node ``start`` to the next nodes in turn, to each as many as flow there."""
    left = [network.flow((subtopology, start), (subtopology, end)) for end in ends]
    turn = -1
    for task in tasks:
        turn = next(i % len(ends) for i in range(turn + 1, turn + 1 + len(ends)) if left[i % len(ends)])
        left[turn] -= 1
        yield task, ends[turn]
