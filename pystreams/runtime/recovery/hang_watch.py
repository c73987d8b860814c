"""Logs where a thread hangs.

Nothing can end a function that does not return, a request without an answer or a hanging disk. The thread's stack is
logged, to show where it hangs.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from dataclasses import dataclass
from typing import Final

from pystreams.clock import Clock

log = logging.getLogger(__name__)

#: The longest time between two looks, and so the longest delay with which a hang is noticed.
_LOOK_S_MAX: Final = 1.0
_LOOKS_WITHIN_THE_TIMEOUT: Final = 5
#: If the time between two looks is longer than this, the whole process stood still (SIGSTOP, a machine in standby, a
#: library that held the interpreter).
_STOOD_STILL_MS_MAX: Final = 1000 * _LOOK_S_MAX * _LOOKS_WITHIN_THE_TIMEOUT


@dataclass(slots=True)
class _Round:
    """A round of a thread: its beginning (monotonic), and whether it has been reported."""

    thread_id: int
    began_ms: float
    reported: bool = False


class WatchedRounds:
    """The rounds of one thread. A round normally takes a fraction of a second; one that takes long is reported once.
    Another thread looks at them."""

    def __init__(self, name: str, stall_timeout_ms: int) -> None:
        """A round that takes ``stall_timeout_ms`` is reported; 0: no round is reported."""
        self._name = name
        self._stall_timeout_ms = stall_timeout_ms
        # Replaced as a whole, so no lock is needed.
        self._round: _Round | None = None
        self._stood_still_ms = min(_STOOD_STILL_MS_MAX, stall_timeout_ms)
        self._looked_ms = 0.0

    def begin(self, now_ms: float) -> None:
        """A round of the calling thread begins (monotonic, ms), and its last one has ended."""
        self._round = _Round(threading.get_ident(), now_ms)

    def rest(self) -> None:
        """The round has ended, and the next one may be long in coming."""
        self._round = None

    def look(self, now_ms: float, stretch_ms: float = 0.0) -> None:
        """Report the round if it takes too long. ``stretch_ms`` is how long a function has been at work on one record;
        if it is 0, the whole round is reported."""
        this_round = self._round
        looked_ms, self._looked_ms = self._looked_ms, now_ms
        if this_round is None or this_round.reported or not self._stall_timeout_ms:
            return
        if now_ms - looked_ms >= self._stood_still_ms:
            # The watched thread stood still, too, so its round is measured from now on.
            this_round.began_ms = now_ms
            return
        round_ms = now_ms - this_round.began_ms
        if round_ms < self._stall_timeout_ms:
            return
        if not stretch_ms:
            self._report(this_round, "the thread has been in the same round of its work", round_ms)
        elif stretch_ms >= self._stall_timeout_ms:
            # The stretch may have begun before the process stood still.
            worked_ms = min(stretch_ms, round_ms)
            self._report(this_round, "a function has been at work on one record", worked_ms)

    def _report(self, this_round: _Round, what: str, took_ms: float) -> None:
        this_round.reported = True
        frame = sys._current_frames().get(this_round.thread_id)
        stack = "" if frame is None else "".join(traceback.format_stack(frame))
        log.warning(
            "[%s] %s for %.0f s (stall_timeout_ms); it is here:\n%s",
            self._name,
            what,
            took_ms / 1000,
            stack.rstrip(),
        )


class HangWatch:
    """A thread that periodically looks at the rounds of another thread."""

    def __init__(self, name: str, clock: Clock, stall_timeout_ms: int) -> None:
        """``name``: the name of the watched thread; ``stall_timeout_ms``: see ``WatchedRounds``."""
        self._clock = clock
        self._wanted = bool(stall_timeout_ms)
        self._rounds = WatchedRounds(name, stall_timeout_ms)
        self._look_s = min(_LOOK_S_MAX, stall_timeout_ms / 1000 / _LOOKS_WITHIN_THE_TIMEOUT)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{name}-watch", daemon=True)

    def start(self) -> None:
        if self._wanted:
            self._thread.start()

    def begin_round(self) -> None:
        """A round of the calling thread begins, and its last one has ended."""
        self._rounds.begin(self._clock.monotonic_ms())

    def rest(self) -> None:
        """The round has ended, and the next one may be long in coming."""
        self._rounds.rest()

    def close(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(self._look_s):
            self._rounds.look(self._clock.monotonic_ms())
