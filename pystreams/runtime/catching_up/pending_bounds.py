"""The bounds on a task's stream time that are known, but not in force yet.

A bound is a lower limit for the times of all records that will arrive later. It is in force when the task has passed
the ends that its inputs had when the bound became known: before that, the task may still have older records to process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from pystreams.ids import TopicPartition


class PendingBounds:
    """The bounds of one task, in the order in which they became known."""

    def __init__(self) -> None:
        self._in_force: int | None = None
        self._pending: deque[tuple[int, Mapping[TopicPartition, int]]] = deque()

    def __len__(self) -> int:
        return len(self._pending)

    def offer(self, bound_ms: int, ends: Mapping[TopicPartition, int]) -> None:
        """Add a bound with the ends of all inputs that the task has to pass before the bound is in force."""
        if self._pending and self._pending[-1][1] == ends:
            self._pending.pop()
        if bound_ms != (self._pending[-1][0] if self._pending else self._in_force):
            self._pending.append((bound_ms, ends))

    def forget(self) -> None:
        """Discard all bounds."""
        self._pending.clear()
        self._in_force = None

    def passed(self, position_of: Callable[[TopicPartition], int]) -> int | None:
        """The bound that is in force now that the task is at these positions; None: no other one than before."""
        found = None
        while self._pending and all(position_of(p) >= end for p, end in self._pending[0][1].items()):
            found = self._in_force = self._pending.popleft()[0]
        return found
