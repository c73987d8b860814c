"""A thread that ends a stretch of processing early if it takes too long, and logs where another thread hangs.

The number of records of a step is based on the time of the last steps. If a function then becomes slow, or hangs once,
thousands of records would delay commits, membership and stops. To read the clock for each record would cost more than
most functions do. But the compiled code checks a flag between two records anyway: this thread sets the flag.

Nothing can end a function that does not return, a request without an answer or a hanging disk. The thread's stack is
logged, to show where it hangs; the group gives its tasks to other members after ``max_poll_interval_ms``.
"""

from __future__ import annotations

import threading
from typing import Protocol

from pystreams.clock import Clock
from pystreams.runtime.recovery.hang_watch import WatchedRounds

#: A stretch may take this long. A longer one is noticed with a delay of up to ``_LOOK_S``.
_STRETCH_MS = 100.0
_LOOK_S = 0.05


class Hurried(Protocol):
    """Work that can be ended early."""

    def hurry(self) -> None:
        """End after the record at work. Called repeatedly until the work has ended."""
        ...


class Stopwatch:
    """Watches the rounds of a thread, and in them one stretch of processing at a time."""

    def __init__(self, name: str, clock: Clock, stall_timeout_ms: int) -> None:
        """A stretch or a round that takes ``stall_timeout_ms`` is reported; 0: none is."""
        self._clock = clock
        self._stall_timeout_ms = stall_timeout_ms
        self._rounds = WatchedRounds(name, stall_timeout_ms)
        self._of_others: list[WatchedRounds] = []
        # Replaced as a whole, so no lock is needed.
        self._watched: tuple[float, Hurried] | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{name}-stopwatch", daemon=True)
        self._thread.start()

    def watch_also(self, name: str) -> WatchedRounds:
        """Watch the rounds of another thread, too."""
        rounds = WatchedRounds(name, self._stall_timeout_ms)
        self._of_others.append(rounds)
        return rounds

    def begin_round(self, now_ms: float) -> None:
        """A round of the thread begins (monotonic, ms); the last round has ended, and its stretch, too, if that has
        failed."""
        self._watched = None
        self._rounds.begin(now_ms)

    def watch(self, working: Hurried) -> None:
        """A stretch of ``working`` begins, and the last one has ended."""
        self._watched = self._clock.monotonic_ms() + _STRETCH_MS, working

    def rest(self) -> None:
        """The stretch has ended."""
        self._watched = None

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(_LOOK_S):
            now_ms = self._clock.monotonic_ms()
            watched = self._watched
            stretch_ms = 0.0
            if watched is not None and now_ms >= watched[0]:
                watched[1].hurry()
                stretch_ms = now_ms - watched[0] + _STRETCH_MS
            self._rounds.look(now_ms, stretch_ms)
            for rounds in self._of_others:
                rounds.look(now_ms)
