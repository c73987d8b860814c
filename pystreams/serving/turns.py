"""How often the threads of this process take turns, while others ask it for something.

After each system call, a thread waits until another one that computes has had the interpreter for the switch interval:
5 ms by default. A server needs three system calls for one request.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

#: The switch interval while requests come. A shorter one costs more changes between threads than it saves waiting.
QUICK_S: Final = 0.0005

#: It stays that short for so long after the last request.
LASTS_S: Final = 1.0


class QuickTurns:
    """Shortens the switch interval of the process while requests come. Used in one event loop."""

    def __init__(self) -> None:
        #: What the interval is set to when no more requests come.
        self._usual_s = sys.getswitchinterval()
        self._ends_at = 0.0
        self._end: asyncio.TimerHandle | None = None

    def asked(self) -> None:
        """A request has come."""
        loop = asyncio.get_running_loop()
        self._ends_at = loop.time() + LASTS_S
        if sys.getswitchinterval() > QUICK_S:
            self._usual_s = sys.getswitchinterval()
            sys.setswitchinterval(QUICK_S)
        if self._end is None:
            self._end = loop.call_at(self._ends_at, self._end_if_quiet)

    def end(self) -> None:
        """No more requests come."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
            sys.setswitchinterval(self._usual_s)

    def _end_if_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._ends_at:
            self.end()
        else:
            self._end = loop.call_at(self._ends_at, self._end_if_quiet)
