"""The group's commits, up to which standbys read inputs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from pystreams.broker.port import Admin, CommittedOffset
from pystreams.clock import Clock
from pystreams.ids import TopicPartition

#: The maximal age of the commits that ``read`` returns.
COMMITS_INTERVAL_MS: Final = 1_000
#: The timeout of a request that only standbys need. Stores that a task waits for may have to wait for it, too.
STANDBY_ANSWER_TIMEOUT_MS: Final = 2_000.0


class GroupCommits:
    """The commits of a group. They are requested once for all threads of a client."""

    def __init__(self, admin: Admin, group: str, clock: Clock) -> None:
        self._admin = admin
        self._group = group
        self._clock = clock
        self._mutex = threading.Lock()
        self._committed: Mapping[TopicPartition, CommittedOffset] = {}
        self._asked_ms: float | None = None

    def read(self) -> Mapping[TopicPartition, CommittedOffset] | None:
        """The offsets that the group had committed up to ``COMMITS_INTERVAL_MS`` ago; None if another thread is asking
        for them, because the caller must not wait for as long as that takes. Raises errors of the log."""
        if not self._mutex.acquire(blocking=False):
            return None
        try:
            now_ms = self._clock.monotonic_ms()
            if self._asked_ms is None or now_ms - self._asked_ms >= COMMITS_INTERVAL_MS:
                self._committed = self._admin.group_offsets(
                    self._group, stable=False, timeout_ms=STANDBY_ANSWER_TIMEOUT_MS
                )
                self._asked_ms = now_ms
            return self._committed
        finally:
            self._mutex.release()
