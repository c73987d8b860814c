"""Cuts a stretch of processing short that takes too long, from a thread of its own.

How many records go into a round follows from how long the last ones took. A function that turns slow after that, or
hangs once, would hold up commits, membership and stops for thousands of records; asking the clock for each record would
cost more than most functions do. Between two records the compiled code looks at a flag anyway: this thread raises it.
"""

from __future__ import annotations

import threading
from typing import Protocol

from pystreams.clock import Clock

#: A stretch may take this long, and is noticed up to a look later.
_STRETCH_MS = 100.0
_LOOK_S = 0.05


class Hurried(Protocol):
    """Work that can be ended early."""

    def hurry(self) -> None:
        """End after the record at work. Called again until it has ended."""
        ...


class Stopwatch:
    """Watches one stretch at a time."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._clock = clock
        #: Replaced as a whole, so no lock is needed.
        self._watched: tuple[float, Hurried] | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{name}-stopwatch", daemon=True)
        self._thread.start()

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
            watched = self._watched
            if watched is not None and self._clock.monotonic_ms() >= watched[0]:
                watched[1].hurry()
