"""Logs why a thread waits for its first tasks: the group waits for members that do not answer, for example because they
were killed."""

from __future__ import annotations

import logging
from typing import Final

from pystreams.broker.port import Admin
from pystreams.clock import Clock
from pystreams.errors import BrokerError

log = logging.getLogger(__name__)

#: A healthy group finishes a rebalance in less time, even if it delays the first one to wait for more members.
PATIENCE_MS: Final = 10_000
WARNING_INTERVAL_MS: Final = 15_000


class GroupWait:
    """Watches from before a thread joins until it has its first assignment. It lists the members at the start: the
    group waits for those of them that are still in it later."""

    def __init__(self, admin: Admin, group: str, session_timeout_ms: int, clock: Clock) -> None:
        self._admin = admin
        self._group = group
        self._session_timeout_ms = session_timeout_ms
        self._clock = clock
        self._began_ms = clock.monotonic_ms()
        self._next_ms = self._began_ms + PATIENCE_MS
        self._before = self._members()

    def warn_if_long(self) -> None:
        """Called repeatedly while the thread waits."""
        now_ms = self._clock.monotonic_ms()
        if not self._before or now_ms < self._next_ms:
            return
        self._next_ms = now_ms + WARNING_INTERVAL_MS
        silent = self._before & self._members()
        if not silent:
            return
        waited_ms = now_ms - self._began_ms
        left_ms = self._session_timeout_ms - waited_ms
        one = len(silent) == 1
        log.warning(
            "group %s: no tasks for %.0f s, because the group waits for %s that %s in the group before: %s; %s",
            self._group,
            waited_ms / 1000,
            "a member" if one else f"{len(silent)} members",
            "was" if one else "were",
            ", ".join(sorted(silent)),
            f"if {'it was' if one else 'they were'} killed, {'its session times' if one else 'their sessions time'} "
            f"out in {left_ms / 1000:.0f} s at the latest (session_timeout_ms={self._session_timeout_ms})"
            if left_ms > 0
            else f"{'it is alive, and has' if one else 'they are alive, and have'} been busy for long"
            " (max_poll_interval_ms)",
        )

    def _members(self) -> frozenset[str]:
        """The members of the group; empty if the log cannot list them, because they are only needed for a message."""
        try:
            return frozenset(self._admin.group_members(self._group))
        except BrokerError as error:
            log.debug("the members of group %s cannot be listed: %s", self._group, error)
            return frozenset()
