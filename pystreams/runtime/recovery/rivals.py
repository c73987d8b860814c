"""Ends a thread if another living member of the group has its transactional id, because otherwise both would end each
other's transactions for ever.

The id is derived from the process id in the state directory. Two processes have the same id if a directory was copied,
or if the disks of two machines were made from one image. The former member of a killed process has the same id, too,
but only until its session times out: so a member that stays longer is alive.

All threads of both processes derive from the group's members which process gives up, so that exactly one of them
continues. (For static members a broker decides the same: KIP-345.)
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Collection, Iterable
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
        own_ids: Callable[[], Collection[str]],
    ) -> None:
        """``process_file`` holds the process id. ``own_ids`` gives the member ids of all threads of this process."""
        self._group = group
        self._transactional_id = transactional_id
        self._process_file = process_file
        self._admin = admin
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._own_ids = own_ids
        #: How the transactional ids of all threads of the process begin: only the last number is the thread's.
        self._process_prefix = transactional_id.rpartition("-")[0] + "-"
        #: The time at which each member of another process with this process id was first seen, by its member id.
        self._since_ms: dict[str, float] = {}

    def look(self, member: Member) -> None:
        """Look for rivals, after another process has ended the transaction of this thread, which is ``member``. Raises
        ``SupersededError`` if a rival is alive and this thread must give up."""
        try:
            members = self._admin.describe_group(self._group).members
        except BrokerError as error:
            log.debug("group %s: whether another member has the same id is not known: %s", self._group, error)
            return
        members = tuple(one for one in members if one.client_id.startswith(self._process_prefix))
        own_ids = {*self._own_ids(), member.member_id}
        own = {one.member_id: one for one in members if one.member_id in own_ids}
        if member.member_id not in own:
            return
        others = [one for one in members if one.member_id not in own]
        now_ms = self._clock.monotonic_ms()
        self._since_ms = {one.member_id: self._since_ms.get(one.member_id, now_ms) for one in others}
        alive = [one for one in others if now_ms - self._since_ms[one.member_id] > self._session_timeout_ms]
        rival = next((one for one in alive if one.client_id == self._transactional_id), None)
        if rival is not None and _rank(alive) < _rank(own.values()):
            raise self._superseded(own[member.member_id], rival)

    def _superseded(self, own: MemberDescription, rival: MemberDescription) -> SupersededError:
        return SupersededError(
            "Another process has the process id of this one: each of them ends the other one's transactions",
            where=f"group {self._group}, transactional id {self._transactional_id}: this process is on "
            f"{socket.gethostname()} ({own.host}), the other one on {rival.host}",
            why=f"{self._process_file} of one was copied to the other; this process gives up, the other one goes on",
            hint="delete the file, or the copied directory, and start this process again: it gets an id of its own",
        )


def _rank(members: Iterable[MemberDescription]) -> tuple[str, str]:
    """The rank of the process with these members, at least one. Of the processes with the same id, the one of lowest
    rank goes on. It is the rank of one of its members, so that all its threads come to the same decision."""
    return min((one.host, one.member_id) for one in members)
