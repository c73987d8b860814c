"""Lets the threads of this process switch more often while requests come.

After each system call, a thread waits until a computing thread has held the interpreter for the switch interval: 5 ms
by default. A server needs three system calls for one request.
"""

from __future__ import annotations

import asyncio
import sys
from math import isclose
from typing import Final

#: The switch interval while requests come. With a shorter one, the switches would take more time than it saves.
QUICK_S: Final = 0.002

#: The interval stays that short for this time after the last request.
LASTS_S: Final = 1.0


class QuickTurns:
    """Shortens the switch interval of the process while requests come. Used in one event loop."""

    def __init__(self) -> None:
        #: The interval before it was shortened; None: it is not shortened.
        self._usual_s: float | None = None
        self._ends_at = 0.0
        self._end: asyncio.TimerHandle | None = None

    def asked(self) -> None:
        """A request has come."""
        loop = asyncio.get_running_loop()
        self._ends_at = loop.time() + LASTS_S
        interval_s = sys.getswitchinterval()
        if interval_s > QUICK_S and not _is_quick(interval_s):
            self._usual_s = interval_s
            sys.setswitchinterval(QUICK_S)
        if self._end is None:
            self._end = loop.call_at(self._ends_at, self._end_if_quiet)

    def end(self) -> None:
        """Restore the interval, unless other code has changed it meanwhile."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._usual_s is not None and _is_quick(sys.getswitchinterval()):
            sys.setswitchinterval(self._usual_s)
        self._usual_s = None

    def _end_if_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._ends_at:
            self.end()
        else:
            self._end = loop.call_at(self._ends_at, self._end_if_quiet)


def _is_quick(interval_s: float) -> bool:
    return isclose(interval_s, QUICK_S)
