"""Notices that another process of the application on this machine has died, and removes its members from the group.

Kafka notices a death only when the session of a member times out (``session_timeout_ms``, 45 s by default). But the
processes that share a state directory, such as the workers of one supervisor, can see it at once: each holds a lock on
its notes (``state/disk/member_notes.py``), and the kernel releases the lock when the process dies.

    each watches the next one ──► the lock is free ──► remove its members from the group ──► delete its notes
    notes are gone ──► everybody asks the group whether it rebalances, instead of waiting for the next heartbeat

Static members are expected back, so they stay in the group. But static members of a supervisor's workers are removed if
their next process does not announce itself in time, because it may fail again and again. A process announces itself as
soon as it starts: it notes which static members it is going to be. Then it has as long to join as Kafka would wait.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

from pystreams.broker.port import Admin, Broker
from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.errors import StreamsError
from pystreams.ids import MemberName, instance_id_of
from pystreams.state.disk.directory import StateDirectory
from pystreams.state.disk.member_notes import MemberNotes

log = logging.getLogger(__name__)

_INTERVAL_S: Final = 0.2
#: How long to wait for this client's first member.
_JOIN_TIMEOUT_S: Final = 2.0
#: How long a static member of a supervisor's worker has to announce itself. The supervisor starts the worker again at
#: once, and the next process needs one to three seconds for its imports before that. If it fails, its tasks have waited
#: this long in vain.
STATIC_RETURN_MS: Final = 5_000.0
#: How long to wait for the end of the thread, which may be waiting for an answer.
_CLOSE_TIMEOUT_S: Final = 1.0


def neighbours_of(
    broker: Broker,
    admin: Admin,
    directory: StateDirectory,
    config: StreamsConfig,
    clock: Clock,
    worker: int,
    *,
    supervised: bool,
) -> Neighbours | None:
    """The neighbours of the client with this number; None if the log notices deaths itself. ``supervised``: a
    supervisor starts the process of the client again if it dies. Raises ``StateError``."""
    if broker.notices_deaths:
        return None
    neighbours = Neighbours(
        MemberNotes(directory.path),
        admin,
        config.application_id,
        clock,
        config.session_timeout_ms,
        supervised=supervised,
    )
    if config.group_instance_id is not None and supervised:
        threads = range(1, config.num_stream_threads + 1)
        neighbours.announce([instance_id_of(config.group_instance_id, worker, thread) for thread in threads])
    return neighbours


class Neighbours:
    """The other clients of the application that share this client's state directory."""

    def __init__(
        self,
        notes: MemberNotes,
        admin: Admin,
        group: str,
        clock: Clock,
        session_timeout_ms: float,
        *,
        supervised: bool,
    ) -> None:
        """``supervised``: a supervisor starts the process of this client again if it dies."""
        self._notes = notes
        self._admin = admin
        self._group = group
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._supervised = supervised
        self._known: set[str] = set()
        #: The dead clients with static members, each with the time at which its death was noticed.
        self._dead_since_ms: dict[str, float] = {}
        self._trouble = ""
        self._on_change: Callable[[], None] = lambda: None
        self._joining = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{group}-neighbours", daemon=True)

    def begin(self, on_change: Callable[[], None]) -> None:
        """Remove the members that died before this start, then watch. Another thread calls ``on_change`` when a client
        has gone."""
        self._on_change = on_change
        self._thread.start()

    def announce(self, instance_ids: Iterable[str]) -> None:
        """Note that this client is about to become these static members, for clients that wait for them."""
        for instance_id in instance_ids:
            self._add(MemberName("", instance_id))

    def note(self, member: MemberName) -> None:
        """Note that this client has become a member, for clients that find this process dead."""
        # A static member without a supervisor is not noted: it may come back at any time until its session times out.
        if member.instance_id is None or self._supervised:
            self._add(member)
        self._joining.set()

    def _add(self, member: MemberName) -> None:
        try:
            self._notes.add(member)
        except StreamsError as error:
            log.warning("if this process dies, the group waits until its session is over: %s", error)

    def close(self) -> None:
        """End the watch after all members of this client have left. Called before the admin is closed."""
        self._closing.set()
        self._joining.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_TIMEOUT_S)
        try:
            self._notes.close()
        except StreamsError as error:
            log.warning("the notes about members cannot be deleted: %s", error)

    def _run(self) -> None:
        # If its last member is removed, a group becomes empty, and Kafka waits three seconds before it assigns again
        # (group.initial.rebalance.delay.ms). So this client joins before it removes dead members.
        self._joining.wait(_JOIN_TIMEOUT_S)
        while not self._closing.wait(_INTERVAL_S):
            self._look()

    def _look(self) -> None:
        try:
            self._bury_the_next()
        except Exception as error:  # noqa: BLE001 - an admin that is being closed raises what it likes
            self._failed(error)
        else:
            self._trouble = ""
        try:
            now = set(self._notes.others())
        except StreamsError as error:
            self._failed(error)
            return
        gone, self._known = self._known - now, now
        if gone:
            self._on_change()

    def _bury_the_next(self) -> None:
        """Bury the dead among the clients that follow this one in the order of all names, up to the first living one,
        which watches those behind it: so each client is watched by exactly one other."""
        others = self._notes.others()
        self._known.update(others)
        following = [name for name in others if name > self._notes.client]
        for client in following + others[: len(others) - len(following)]:
            lives = self._notes.lives(client)
            members = self._notes.members(client)
            if lives:
                if members and not any(member.member_id for member in members):
                    # This client has announced its static members, but has not joined yet, so it does not watch yet.
                    continue
                return
            if not self._awaited(client, members):
                self._bury(client, members)

    def _awaited(self, client: str, members: list[MemberName]) -> bool:
        """Whether a dead client with static members has not come back yet, and may still do so in time."""
        static = {member.instance_id for member in members if member.instance_id is not None}
        if not static:
            return False
        now_ms, living = self._clock.monotonic_ms(), self._static_of_the_living()
        if all(living.get(instance_id) for instance_id in static):
            return False
        dead_ms = now_ms - self._dead_since_ms.setdefault(client, now_ms)
        return dead_ms < (STATIC_RETURN_MS if static.isdisjoint(living) else self._session_timeout_ms)

    def _static_of_the_living(self) -> dict[str, str]:
        """The static members of living clients, with their member ids; the id is empty until the client has joined."""
        living = [self._notes.client, *filter(self._notes.lives, self._notes.others())]
        return {
            instance_id: member_id
            for client in living
            for member_id, instance_id in self._notes.members(client)
            if instance_id is not None
        }

    def _bury(self, client: str, members: list[MemberName]) -> None:
        if dead := [member for member in members if member.member_id]:
            gone = self._admin.remove_members(self._group, dead)
            if gone:
                log.warning(
                    "group %s goes on without %s: the process has died",
                    self._group,
                    ", ".join(member.member_id for member in gone),
                )
        self._notes.forget(client)
        self._dead_since_ms.pop(client, None)

    def _failed(self, error: Exception) -> None:
        """Log an error of a look. The next look tries again; if none succeeds, the group waits for the session timeout
        of dead members."""
        if not self._closing.is_set() and str(error) != self._trouble:
            self._trouble = str(error)
            unexpected = None if isinstance(error, StreamsError) else error
            log.warning(
                "it is not known whether other processes on this machine have died: %s",
                error,
                exc_info=unexpected,
            )
