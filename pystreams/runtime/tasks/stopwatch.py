"""Cuts a stretch of processing short that takes too long, from a thread of its own.

How many records go into a round follows from how long the last ones took. A function that turns slow after that, or
hangs once, would hold up commits, membership and stops for thousands of records; asking the clock for each record would
cost more than most functions do. Between two records the compiled code looks at a flag anyway: this thread raises it.

A function that does not return cannot be ended. Its stack is logged, so that somebody can see where it hangs; the group
gives its tasks to others after ``max_poll_interval_ms``.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from typing import Protocol

from pystreams.clock import Clock

log = logging.getLogger(__name__)

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

    def __init__(self, name: str, clock: Clock, stall_timeout_ms: int) -> None:
        """Watches the calling thread. A stretch that takes ``stall_timeout_ms`` is reported; 0: none is."""
        self._name = name
        self._clock = clock
        self._stall_timeout_ms = stall_timeout_ms
        self._thread_id = threading.get_ident()
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
        reported: tuple[float, Hurried] | None = None
        while not self._closing.wait(_LOOK_S):
            watched = self._watched
            if watched is None:
                continue
            late_ms = self._clock.monotonic_ms() - watched[0]
            if late_ms >= 0:
                watched[1].hurry()
            if 0 < self._stall_timeout_ms <= late_ms + _STRETCH_MS and watched is not reported:
                reported = watched
                self._report(late_ms + _STRETCH_MS)

    def _report(self, took_ms: float) -> None:
        frame = sys._current_frames().get(self._thread_id)
        stack = "" if frame is None else "".join(traceback.format_stack(frame))
        log.warning(
            "[%s] a function has been at work on one record for %.0f s (stall_timeout_ms); it is here:\n%s",
            self._name,
            took_ms / 1000,
            stack.rstrip(),
        )
