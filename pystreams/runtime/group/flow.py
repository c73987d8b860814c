"""Minimum-cost flow through a small network whose edges may have a lower bound. The assignor's arithmetic.

Source: the primal-dual method (Ford and Fulkerson, 1962): all cheapest paths of one length are filled at once, with
Dinic's algorithm (1970). Its costs are small whole numbers, so there are few lengths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable


class FlowNetwork:
    """Edges with bounds and a cost per unit; ``solve`` sends a given amount at the least cost.

    The network must be acyclic as built, and must be able to carry the amount within its upper bounds. Lower bounds are
    kept as far as possible, with priority over every cost. Ties go to edges added first, so the result is the same on
    every member.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._edges_of: list[list[int]] = []
        self._to: list[int] = []
        self._room: list[int] = []
        self._cost: list[int] = []
        #: Edges whose flow counts toward a lower bound.
        self._forced: list[int] = []
        self._named: dict[tuple[Hashable, Hashable], list[int]] = {}

    def edge(self, start: Hashable, end: Hashable, upper: int, *, lower: int = 0, cost: int = 0) -> None:
        """Add an edge that carries between ``lower`` and ``upper`` units."""
        if lower:
            self._forced.append(len(self._to))
            self._add(start, end, lower, cost)
        if upper > lower:
            self._add(start, end, upper - lower, cost)

    def flow(self, start: Hashable, end: Hashable) -> int:
        """The flow on the edges from ``start`` to ``end`` after ``solve``."""
        return sum(self._room[edge ^ 1] for edge in self._named.get((start, end), ()))

    def solve(self, source: Hashable, sink: Hashable, amount: int) -> None:
        """Send ``amount`` units. Raises ``ValueError`` if they do not fit."""
        start, end = self._number(source), self._number(sink)
        # Cheaper than any path of real costs.
        advantage = 1 + 2 * sum(abs(cost) for cost in self._cost)
        for edge in self._forced:
            self._cost[edge] -= advantage
            self._cost[edge ^ 1] += advantage
        while amount:
            distance = self._distances(start)
            if distance[end] is None:
                raise ValueError(f"{amount} units do not fit through the network")
            cheapest = self._cheapest_edges(distance)
            while amount and (levels := self._levels(cheapest, start, end)):
                amount -= self._fill(cheapest, levels, start, end, amount)

    def _number(self, name: Hashable) -> int:
        number = self._numbers.setdefault(name, len(self._numbers))
        if number == len(self._edges_of):
            self._edges_of.append([])
        return number

    def _add(self, start: Hashable, end: Hashable, room: int, cost: int) -> None:
        edge = len(self._to)
        from_, to = self._number(start), self._number(end)
        self._to += (to, from_)
        self._room += (room, 0)
        self._cost += (cost, -cost)
        self._edges_of[from_].append(edge)
        self._edges_of[to].append(edge + 1)
        self._named.setdefault((start, end), []).append(edge)

    def _distances(self, start: int) -> list[int | None]:
        """The cost of a cheapest path with free capacity to each node (Bellman-Ford with a queue)."""
        room, costs, ends = self._room, self._cost, self._to
        distance: list[int | None] = [None] * len(self._edges_of)
        distance[start] = 0
        queue, queued = deque([start]), {start}
        while queue:
            node = queue.popleft()
            queued.discard(node)
            here = distance[node]
            assert here is not None
            for edge in self._edges_of[node]:
                if not room[edge]:
                    continue
                to, cost = ends[edge], here + costs[edge]
                known = distance[to]
                if known is None or cost < known:
                    distance[to] = cost
                    if to not in queued:
                        queue.append(to)
                        queued.add(to)
        return distance

    def _cheapest_edges(self, distance: list[int | None]) -> list[list[int]]:
        """For each node the edges that lie on cheapest paths. The flow on them may go either way."""
        cheapest: list[list[int]] = [[] for _ in self._edges_of]
        for node, edges in enumerate(self._edges_of):
            here = distance[node]
            if here is not None:
                cheapest[node] = [
                    edge for edge in edges if distance[self._to[edge]] == here + self._cost[edge]
                ]
        return cheapest

    def _levels(self, cheapest: list[list[int]], start: int, end: int) -> list[int]:
        """The number of edges from ``start`` to each node, -1 where no path leads; empty if none leads to ``end``."""
        levels = [-1] * len(cheapest)
        levels[start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for edge in cheapest[node]:
                to = self._to[edge]
                if self._room[edge] and levels[to] < 0:
                    levels[to] = levels[node] + 1
                    queue.append(to)
        return levels if levels[end] >= 0 else []

    def _fill(self, cheapest: list[list[int]], levels: list[int], start: int, end: int, amount: int) -> int:
        """Send as much as fits over paths with ascending levels; returns how much that was."""
        room, ends = self._room, self._to
        #: For each node the index of the first edge that may still lead on.
        first = [0] * len(cheapest)
        sent, path, node = 0, list[int](), start
        while sent < amount:
            if node == end:
                units = min(amount - sent, *(room[edge] for edge in path))
                for edge in path:
                    room[edge] -= units
                    room[edge ^ 1] += units
                sent += units
                path, node = [], start
                continue
            edges = cheapest[node]
            while first[node] < len(edges):
                edge = edges[first[node]]
                if room[edge] and levels[ends[edge]] == levels[node] + 1:
                    break
                first[node] += 1
            if first[node] < len(edges):
                path.append(edges[first[node]])
                node = ends[path[-1]]
            elif node == start:
                break
            else:
                node = ends[path.pop() ^ 1]
                first[node] += 1
        return sent
