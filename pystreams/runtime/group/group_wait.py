"""Tells why a thread waits for its first tasks: the group waits for members that do not answer, as killed ones do."""

from __future__ import annotations

import logging
from typing import Final

from pystreams.broker.port import Admin
from pystreams.clock import Clock
from pystreams.errors import BrokerError

log = logging.getLogger(__name__)

#: A group that is well settles sooner, also one that waits for its first members to be many.
PATIENCE_MS: Final = 10_000
TELL_INTERVAL_MS: Final = 15_000


class GroupWait:
    """From before a thread joins until it has its first assignment. The members that were there before it are asked for
    at the start: those that are still there later are the ones that the group waits for."""

    def __init__(self, admin: Admin, group: str, session_timeout_ms: int, clock: Clock) -> None:
        self._admin = admin
        self._group = group
        self._session_timeout_ms = session_timeout_ms
        self._clock = clock
        self._began_ms = clock.monotonic_ms()
        self._next_ms = self._began_ms + PATIENCE_MS
        self._before = self._members()

    def tell(self) -> None:
        """Called again and again while the thread waits."""
        now_ms = self._clock.monotonic_ms()
        if not self._before or now_ms < self._next_ms:
            return
        self._next_ms = now_ms + TELL_INTERVAL_MS
        silent = self._before & self._members()
        if not silent:
            return
        waited_ms = now_ms - self._began_ms
        left_ms = self._session_timeout_ms - waited_ms
        one = len(silent) == 1
        log.warning(
            "group %s: no tasks for %.0f s, because the group waits for %s that %s there before: %s; %s",
            self._group,
            waited_ms / 1000,
            "a member" if one else f"{len(silent)} members",
            "was" if one else "were",
            ", ".join(sorted(silent)),
            f"if {'it was' if one else 'they were'} killed, {'its session is' if one else 'their sessions are'} over in"
            f" {left_ms / 1000:.0f} s at the latest (session_timeout_ms={self._session_timeout_ms})"
            if left_ms > 0
            else f"{'it is' if one else 'they are'} alive, and busy for long (max_poll_interval_ms)",
        )

    def _members(self) -> frozenset[str]:
        """Nothing depends on it: a log that does not tell is no trouble here."""
        try:
            return frozenset(self._admin.group_members(self._group))
        except BrokerError as error:
            log.debug("the members of group %s are not known: %s", self._group, error)
            return frozenset()
