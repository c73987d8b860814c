"""How much of a process's time its threads spend on processing, so that restoring leaves it to them.

In Python one thread computes at a time. Two threads that always have work would get half of the time each, so a restore
would halve the rate of the tasks that run. A restoring thread takes what is left over, and at least a small share.
"""

from __future__ import annotations

import threading
from typing import Final

#: The share of the time that all restoring threads of a client take together, however busy the others are.
RESTORE_SHARE_MIN: Final = 0.15
#: As long as the others leave this much, restoring needs no rest.
_LEFT_ENOUGH: Final = 0.5


class Load:
    """Of one client. Threads may share it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._processing: dict[str, float] = {}
        self._restoring: set[str] = set()

    def processes(self, thread: str, share: float) -> None:
        """A stream thread has lately spent this share of its time on processing, from 0 to 1."""
        with self._mutex:
            self._processing[thread] = share

    def ends(self, thread: str) -> None:
        """A stream thread has ended."""
        with self._mutex:
            self._processing.pop(thread, None)

    def restores(self, thread: str, *, at_work: bool) -> None:
        """A restoring thread has work from now on, or none."""
        with self._mutex:
            (self._restoring.add if at_work else self._restoring.discard)(thread)

    def pause_ms(self, worked_ms: float) -> float:
        """How long a restoring thread rests after it has computed for ``worked_ms``."""
        with self._mutex:
            left = 1 - sum(self._processing.values())
            if left >= _LEFT_ENOUGH:
                return 0.0
            share = max(RESTORE_SHARE_MIN, left) / max(1, len(self._restoring))
        return worked_ms * (1 / share - 1)
