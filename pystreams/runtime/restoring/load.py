"""Measures the share of time that the stream threads of a process spend on processing, so that restoring does not take
it from them.

In Python only one thread computes at a time. Two threads that always have work get half of the time each, so a restore
would halve the rate of the running tasks. A restoring thread takes the rest of the time, and at least a small share.
"""

from __future__ import annotations

import threading
from typing import Final

from pystreams.clock import thread_cpu_ms

#: The share of the time that all restoring threads of a client take together, however busy the others are.
RESTORE_SHARE_MIN: Final = 0.08
#: As long as processing leaves at least this share, restoring does not pause.
_LEFT_ENOUGH: Final = 0.5


class Load:
    """The load of one client. Threads may share it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._processing: dict[str, float] = {}
        self._restoring: set[str] = set()

    def processes(self, thread: str, share: float) -> None:
        """Note the share of its time (0 to 1) that a stream thread has lately spent on processing."""
        with self._mutex:
            self._processing[thread] = share

    def ends(self, thread: str) -> None:
        """A stream thread has ended."""
        with self._mutex:
            self._processing.pop(thread, None)

    def restores(self, thread: str, *, at_work: bool) -> None:
        """Note whether a restoring thread has work from now on."""
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


class BusyTime:
    """How busy a stream thread has been since it was last asked. Used in that thread."""

    def __init__(self) -> None:
        self._processed_ms = 0.0
        self._processed_cpu_ms = 0.0
        self._cpu_ms = thread_cpu_ms()

    def processed(self, took_ms: float, cpu_ms: float) -> None:
        """Records were processed for so long, and computed for ``cpu_ms`` of it."""
        self._processed_ms += took_ms
        self._processed_cpu_ms += cpu_ms

    def share(self, elapsed_ms: float) -> float:
        """The share of the time since the last call that the thread was busy, from 0 to 1.

        Processing counts with its waits: most of them are for the interpreter, while a restore computes. Polls and
        commits count with the time for which they compute, because they also wait for the broker.
        """
        cpu_ms = thread_cpu_ms()
        rest_ms = cpu_ms - self._cpu_ms - self._processed_cpu_ms
        busy_ms = self._processed_ms + rest_ms
        self._processed_ms = self._processed_cpu_ms = 0.0
        self._cpu_ms = cpu_ms
        return min(1.0, busy_ms / elapsed_ms)
