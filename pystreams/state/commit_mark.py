"""The time between two commits of a task, as an object."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CommitMark:
    """Stands for what readers of a task's stores read between two commits. It ends with the second of them, before
    anybody can read what that one has written."""

    __slots__ = ("_at_end", "_changing", "_has_ended")

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._has_ended = False
        self._at_end: set[Callable[[], None]] = set()

    def at_end(self, call: Callable[[], None]) -> bool:
        """Have ``call`` called when the mark ends, in the thread that commits. False if the mark has ended already.
        From any thread."""
        with self._changing:
            if not self._has_ended:
                self._at_end.add(call)
            return not self._has_ended

    def end(self) -> None:
        """End the mark. Only the thread that commits calls this, once."""
        with self._changing:
            self._has_ended = True
        for call in self._at_end:
            call()
