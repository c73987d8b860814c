"""Cuts a stretch of processing short that takes too long, and shows where a thread hangs, from a thread of its own.

How many records go into a round follows from how long the last ones took. A function that turns slow after that, or
hangs once, would hold up commits, membership and stops for thousands of records; asking the clock for each record would
cost more than most functions do. Between two records the compiled code looks at a flag anyway: this thread raises it.

A function that does not return cannot be ended, nor can a request that is not answered or a disk that hangs. The
thread's stack is logged, so that somebody can see where it hangs; the group gives its tasks to others after
``max_poll_interval_ms``.
"""

from __future__ import annotations

import threading
from typing import Protocol

from pystreams.clock import Clock
from pystreams.runtime.recovery.hang_watch import WatchedRounds

#: A stretch may take this long, and is noticed up to a look later.
_STRETCH_MS = 100.0
_LOOK_S = 0.05


class Hurried(Protocol):
    """Work that can be ended early."""

    def hurry(self) -> None:
        """End after the record at work. Called again until it has ended."""
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
        """A round of the thread begins (monotonic, ms); the one before has ended, and with it a stretch that has
        failed."""
        self._watched = None
        self._rounds.begin(now_ms)

    def watch(self, working: Hurried) -> None:
        """A stretch of ``working`` begins; it takes the place of the one before."""
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
