"""Ends a thread if another living member of the group has its transactional id, because then both end each other's
transactions for ever.

The id follows from the process id in the state directory. Two processes have the same one if a directory was copied, or
if each of two machines has a disk made from one image. A member that a process has left behind when it was killed has
the same id, too, but only until its session times out: a member that stays for longer is alive.

All who see the group agree about who gives up, so that one of them goes on. (A broker decides the same for static
members: KIP-345.)
"""

from __future__ import annotations

import logging
import socket
from pathlib import Path

from pystreams.broker.port import Admin, Member, MemberDescription
from pystreams.clock import Clock
from pystreams.errors import BrokerError, SupersededError

log = logging.getLogger(__name__)


class Rivals:
    """Other members with the transactional id of one thread."""

    def __init__(
        self,
        group: str,
        transactional_id: str,
        process_file: Path,
        admin: Admin,
        clock: Clock,
        session_timeout_ms: int,
    ) -> None:
        """``process_file`` holds the process id."""
        self._group = group
        self._transactional_id = transactional_id
        self._process_file = process_file
        self._admin = admin
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        #: When each rival was seen first, by its member id.
        self._since_ms: dict[str, float] = {}

    def look(self, member: Member) -> None:
        """Others have ended the transaction of this thread, which is ``member``. Raises ``SupersededError`` if a rival
        is alive, and it is this thread that gives up."""
        try:
            members = self._admin.describe_group(self._group).members
        except BrokerError as error:
            log.debug("group %s: whether another member has the same id is not known: %s", self._group, error)
            return
        same = [one for one in members if one.client_id == self._transactional_id]
        own = next((one for one in same if one.member_id == member.member_id), None)
        if own is None:
            return
        now_ms = self._clock.monotonic_ms()
        self._since_ms = {
            one.member_id: self._since_ms.get(one.member_id, now_ms) for one in same if one is not own
        }
        for rival in same:
            since_ms = self._since_ms.get(rival.member_id, now_ms)
            if now_ms - since_ms > self._session_timeout_ms and _rank(rival) < _rank(own):
                raise self._superseded(own, rival)

    def _superseded(self, own: MemberDescription, rival: MemberDescription) -> SupersededError:
        return SupersededError(
            "Another process has the process id of this one: each of them ends the other one's transactions",
            where=f"group {self._group}, transactional id {self._transactional_id}: this process is on "
            f"{socket.gethostname()} ({own.host}), the other one on {rival.host}",
            why=f"{self._process_file} of one was copied to the other; this process gives up, the other one goes on",
            hint="delete the file, or the copied directory, and start this process again: it gets an id of its own",
        )


def _rank(member: MemberDescription) -> tuple[str, str]:
    """The rank of a member. Of the members with the same transactional id, the one of lowest rank goes on. The host is
    compared first, so that all threads of a process come to the same decision."""
    return member.host, member.member_id
