"""The state of an application in all its processes, as the log knows it. The log may answer slowly, so a separate
thread asks it, and only while there are requests for the state."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from pystreams.clock import Clock
from pystreams.errors import StreamsError, summarize
from pystreams.runtime.group.application_status import ApplicationStatus

log = logging.getLogger(__name__)

#: The shortest time between two requests to the log.
_ASK_MS: Final = 3_000.0


class Known(NamedTuple):
    """The last answer of the log (None: there was none yet), and its time. ``trouble``: why later requests to the log
    have failed."""

    status: ApplicationStatus | None = None
    at_ms: int = 0
    trouble: str = ""


class GroupStatus:
    """Asks the log, but not too often, for all callers. ``ask`` returns None before there is a log."""

    def __init__(self, ask: Callable[[], ApplicationStatus | None], clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._known = Known()
        self._asked_ms = -_ASK_MS
        self._asking = False
        self._answered = threading.Condition()

    def latest(self) -> Known:
        """The last answer, at once. If it is some time old, the log is asked again."""
        now_ms = self._clock.monotonic_ms()
        with self._answered:
            if now_ms - self._asked_ms >= _ASK_MS and not self._asking:
                self._asked_ms, self._asking = now_ms, True
                threading.Thread(target=self._look, name="group-status", daemon=True).start()
            return self._known

    def fresh(self, wait_s: float) -> Known:
        """As ``latest``, but if the log is being asked, waits for its answer for up to ``wait_s``."""
        self.latest()
        with self._answered:
            self._answered.wait_for(lambda: not self._asking, wait_s)
            return self._known

    def _look(self) -> None:
        known = self._known
        try:
            status = self._ask()
            if status is not None:
                known = Known(status, self._clock.now_ms())
        except StreamsError as error:
            known = Known(known.status, known.at_ms, summarize(error))
        except Exception as error:
            # The log may be closed at any moment.
            log.debug("the state of the group is not known", exc_info=True)
            known = Known(known.status, known.at_ms, repr(error))
        finally:
            with self._answered:
                self._known, self._asking = known, False
                self._answered.notify_all()
