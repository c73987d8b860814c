"""The group's commits, which bound what standbys read of inputs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from pystreams.broker.port import Admin, CommittedOffset
from pystreams.clock import Clock
from pystreams.ids import TopicPartition

#: How old the commits are at most.
COMMITS_INTERVAL_MS: Final = 1_000


class GroupCommits:
    """Asks for them once for all threads of a client."""

    def __init__(self, admin: Admin, group: str, clock: Clock) -> None:
        self._admin = admin
        self._group = group
        self._clock = clock
        self._mutex = threading.Lock()
        self._committed: Mapping[TopicPartition, CommittedOffset] = {}
        self._asked_ms: float | None = None

    def read(self) -> Mapping[TopicPartition, CommittedOffset]:
        """The offsets that the group had committed a moment ago, at least. Raises the errors of the log."""
        with self._mutex:
            now_ms = self._clock.monotonic_ms()
            if self._asked_ms is None or now_ms - self._asked_ms >= COMMITS_INTERVAL_MS:
                self._committed = self._admin.group_offsets(self._group, stable=False)
                self._asked_ms = now_ms
            return self._committed
