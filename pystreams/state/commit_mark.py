"""The time between two commits of a task, as an object."""

from __future__ import annotations

from collections.abc import Callable


class CommitMark:
    """Stands for what readers of a task's stores read between two commits. It ends at the second of them, before its
    content can be read."""

    __slots__ = ("_at_end", "_has_ended")

    def __init__(self) -> None:
        self._has_ended = False
        self._at_end: set[Callable[[], None]] = set()

    def at_end(self, call: Callable[[], None]) -> bool:
        """Have ``call`` called when the mark ends, in the thread that commits. False if the mark has ended already.
        From any thread."""
        # Whichever of the two threads is later sees what the other one has set.
        self._at_end.add(call)
        return not self._has_ended

    def end(self) -> None:
        """End the mark. Only the thread that commits calls this, once."""
        self._has_ended = True
        for call in tuple(self._at_end):
            call()
