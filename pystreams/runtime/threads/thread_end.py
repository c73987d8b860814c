"""The end of a thread: the error that it reports, how it closes its resources, how it asks others to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from pystreams.broker.port import Assigned, Member
from pystreams.clock import Clock, Deadline
from pystreams.errors import ProcessingError, StreamsError
from pystreams.ids import TaskId
from pystreams.runtime.group.membership_data import decode_assignment_info

log = logging.getLogger(__name__)

#: How long a failed thread stays a member to ask all others to stop.
_GOODBYE_MS: Final = 30_000.0
_POLL_MS: Final = 10.0


def placed(error: BaseException, working: TaskId | None, thread: str) -> BaseException:
    """The error with the task that was at work. A call of ``sys.exit`` is an error, too: otherwise it would end the
    thread silently."""
    place = thread if working is None else f"task {working}"
    if isinstance(error, StreamsError):
        if working is not None and place not in error.where:
            error.extend(where=place)
        return error
    if not isinstance(error, SystemExit):
        return error
    failure = ProcessingError(
        f"a function of the program called sys.exit({'' if error.code is None else error.code})",
        where=place,
        hint="raise an exception to stop at a record; to end the application, call close() of its Streams",
    )
    failure.__cause__ = error
    return failure


def close_all(closing: Sequence[Callable[[], None]], thread: str) -> None:
    """Close the resources of a thread, those opened last first. A failure is logged, so that the others are closed,
    too."""
    for close in reversed(closing):
        try:
            close()
        except Exception:
            log.exception("[%s] a failure while closing %s", thread, close.__qualname__)


def asked_to_stop(application_id: str) -> StreamsError:
    """The error that ends a client because another client has failed."""
    return StreamsError(
        "a member of the group asked the whole application to stop",
        where=f"application {application_id}",
        hint="look into the logs of the other instances for the failure",
    )


def ask_all_to_stop(member: Member, clock: Clock, thread: str) -> None:
    """Stay a member without tasks, whose user data asks the others to stop, until the group has passed this on and the
    others have left."""
    others, pause, deadline = True, threading.Event(), Deadline(clock, _GOODBYE_MS)
    try:
        member.claim(())
        member.request_rejoin()
        while others and not deadline.expired():
            for event in member.poll():
                others = not isinstance(event, Assigned) or _others_go_on(event)
                member.claim(())
            pause.wait(_POLL_MS / 1000)
    except StreamsError as error:
        log.warning("[%s] could not ask the group to stop: %s", thread, error)


def _others_go_on(assigned: Assigned) -> bool:
    """Whether there are others, or may be. An assignment that was made before the request does not show yet whether
    others stop."""
    info = decode_assignment_info(assigned.user_data)
    return not info.shutdown or info.members > 1
