"""What the group knows of all processes of an application. To ask the log may take long, so a thread of its own does
it, and only while somebody looks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

import msgspec

from pystreams.clock import Clock
from pystreams.errors import StreamsError, summarize
from pystreams.runtime.group.application_status import ApplicationStatus
from pystreams.serving.live.look import TASKS_MAX, CommittedLook, GroupLook, MemberLook

log = logging.getLogger(__name__)

#: The log is asked so often at most.
_ASK_MS: Final = 3_000.0


class GroupLooks:
    """Asks the log now and then. ``ask`` gives None before there is a log."""

    def __init__(self, ask: Callable[[], ApplicationStatus | None], clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._latest: GroupLook | None = None
        self._asked_ms = -_ASK_MS
        self._asking = threading.Lock()

    def latest(self) -> GroupLook | None:
        """The last answer. Has the log asked again, if that was some time ago."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._asked_ms >= _ASK_MS and self._asking.acquire(blocking=False):
            self._asked_ms = now_ms
            threading.Thread(target=self._look, name="group-look", daemon=True).start()
        return self._latest

    def _look(self) -> None:
        try:
            status = self._ask()
            if status is not None:
                self._latest = _group(status, self._clock.now_ms())
        except StreamsError as error:
            if self._latest is not None:
                self._latest = msgspec.structs.replace(self._latest, trouble=summarize(error))
        except Exception:
            # The log may be closed at any moment, and the page has to do without the others then.
            log.debug("the state of the group is not known", exc_info=True)
        finally:
            self._asking.release()


def _group(status: ApplicationStatus, now_ms: int) -> GroupLook:
    inputs = sorted(status.inputs, key=lambda one: -one.lag)[:TASKS_MAX]
    return GroupLook(
        now_ms,
        status.rebalancing,
        [
            MemberLook(
                member.thread,
                member.process_id,
                member.host,
                [str(task) for task in member.tasks][:TASKS_MAX],
                [str(task) for task in member.standbys][:TASKS_MAX],
                member.same_program,
            )
            for member in status.members[:TASKS_MAX]
        ],
        [
            CommittedLook(*one.partition, str(one.task_id), one.committed, one.end, one.lag)
            for one in sorted(inputs, key=lambda one: one.partition)
        ],
        [str(task) for task in status.tasks],
    )
