"""Shows where a thread hangs.

A function that does not return cannot be ended, nor can a request that is not answered or a disk that hangs. The
thread's stack is logged, so that somebody can see where it hangs.
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

#: A hang is noticed up to a look later.
_LOOK_S_MAX: Final = 1.0
_LOOKS_WITHIN_THE_TIMEOUT: Final = 5
#: Looks are far more frequent than this: if there was none for so long, the whole process stood still (SIGSTOP, a
#: machine that slept, a library that held the interpreter).
_STOOD_STILL_MS_MAX: Final = 1000 * _LOOK_S_MAX * _LOOKS_WITHIN_THE_TIMEOUT


@dataclass(slots=True)
class _Round:
    """A round of a thread, since when (monotonic), and whether it has been reported."""

    thread_id: int
    began_ms: float
    reported: bool = False


class WatchedRounds:
    """The rounds of one thread, which take a fraction of a second when all is well. One that takes long is reported
    once. Another thread looks at them."""

    def __init__(self, name: str, stall_timeout_ms: int) -> None:
        """A round that takes ``stall_timeout_ms`` is reported; 0: none is."""
        self._name = name
        self._stall_timeout_ms = stall_timeout_ms
        # Replaced as a whole, so no lock is needed.
        self._round: _Round | None = None
        self._stood_still_ms = min(_STOOD_STILL_MS_MAX, stall_timeout_ms)
        self._looked_ms = 0.0

    def begin(self, now_ms: float) -> None:
        """A round of the calling thread begins (monotonic, ms); the one before has ended."""
        self._round = _Round(threading.get_ident(), now_ms)

    def rest(self) -> None:
        """The round has ended, and the next one may be long in coming."""
        self._round = None

    def look(self, now_ms: float, stretch_ms: float = 0.0) -> None:
        """Report the round if it is long: by the function that has been at work on one record for ``stretch_ms``, or if
        it is none, by the round itself."""
        this_round = self._round
        looked_ms, self._looked_ms = self._looked_ms, now_ms
        if this_round is None or this_round.reported or not self._stall_timeout_ms:
            return
        if now_ms - looked_ms >= self._stood_still_ms:
            # The thread could not work either. What it has not done by then is not its fault.
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
    """Looks at the rounds of a thread now and then, from a thread of its own."""

    def __init__(self, name: str, clock: Clock, stall_timeout_ms: int) -> None:
        """``name``: of the thread that is watched; ``stall_timeout_ms``: see ``WatchedRounds``."""
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
        """A round of the calling thread begins; the one before has ended."""
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
