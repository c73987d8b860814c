"""Minimum-cost flow through a small network whose edges may have a lower bound. The assignor's arithmetic."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

#: Cheaper than any sum of real costs, so that lower bounds come before every preference.
_FORCED = -(10**9)


class FlowNetwork:
    """Edges with bounds and a cost per unit; ``solve`` sends a given amount at the least cost.

    The network must be acyclic as built, and must be able to carry the amount within its bounds. Ties go to edges added
    first, so the result is the same wherever it is computed.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._edges_of: list[list[int]] = []
        self._to: list[int] = []
        self._room: list[int] = []
        self._cost: list[int] = []
        self._named: dict[tuple[Hashable, Hashable], list[int]] = {}

    def edge(self, start: Hashable, end: Hashable, upper: int, *, lower: int = 0, cost: int = 0) -> None:
        """Add an edge that carries between ``lower`` and ``upper`` units."""
        if lower:
            self._add(start, end, lower, cost + _FORCED)
        if upper > lower:
            self._add(start, end, upper - lower, cost)

    def flow(self, start: Hashable, end: Hashable) -> int:
        """The flow on the edges from ``start`` to ``end`` after ``solve``."""
        return sum(self._room[edge ^ 1] for edge in self._named.get((start, end), ()))

    def solve(self, source: Hashable, sink: Hashable, amount: int) -> None:
        """Send ``amount`` units. Raises ``ValueError`` if they do not fit."""
        start, end = self._number(source), self._number(sink)
        while amount:
            path = self._cheapest_path(start, end)
            if path is None:
                raise ValueError(f"{amount} units do not fit through the network")
            units = min(amount, *(self._room[edge] for edge in path))
            for edge in path:
                self._room[edge] -= units
                self._room[edge ^ 1] += units
            amount -= units

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

    def _cheapest_path(self, start: int, end: int) -> list[int] | None:
        """The edges of a cheapest path with free capacity (Bellman-Ford with a queue)."""
        distance: dict[int, int] = {start: 0}
        arrived_by: dict[int, int] = {}
        queue, queued = deque([start]), {start}
        while queue:
            node = queue.popleft()
            queued.discard(node)
            for edge in self._edges_of[node]:
                if not self._room[edge]:
                    continue
                to, cost = self._to[edge], distance[node] + self._cost[edge]
                if to not in distance or cost < distance[to]:
                    distance[to] = cost
                    arrived_by[to] = edge
                    if to not in queued:
                        queue.append(to)
                        queued.add(to)
        if end not in distance:
            return None
        path, node = [], end
        while node != start:
            edge = arrived_by[node]
            path.append(edge)
            node = self._to[edge ^ 1]
        return path
