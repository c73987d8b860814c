"""Heartbeats for members whose threads do not poll for a long time because they are at work.

A member's thread sends heartbeats when it polls. While a function of the program takes long, this thread sends them
instead, but only for ``max_poll_interval_ms``: then the member is removed. A frozen process sends none at all, and is
replaced when its session times out. Source: KIP-62.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from pystreams.broker.embedded import groups
from pystreams.broker.embedded.database import Database
from pystreams.clock import Clock
from pystreams.errors import StreamsError

log = logging.getLogger(__name__)

#: How long to wait for the end of the thread, which may be waiting for another process's transaction.
_CLOSE_TIMEOUT_S: Final = 1.0


class Pulse:
    """Keeps the members of one connection to the log alive. Its thread starts at the first poll of a member."""

    def __init__(
        self, connect: Callable[[], Database], clock: Clock, interval_ms: float, max_poll_interval_ms: float
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._interval_ms = interval_ms
        self._max_poll_interval_ms = max_poll_interval_ms
        #: For each member its group, and the time of its last poll.
        self._polled: dict[str, tuple[str, float]] = {}
        self._mutex = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def polled(self, group: str, member_id: str, now_ms: float) -> None:
        """A member polls now."""
        with self._mutex:
            self._polled[member_id] = group, now_ms
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="embedded-log-pulse", daemon=True)
                self._thread.start()

    def ended(self, member_id: str) -> None:
        """The membership has ended."""
        with self._mutex:
            self._polled.pop(member_id, None)

    def close(self) -> None:
        with self._mutex:
            self._closing.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        database: Database | None = None
        while not self._closing.wait(self._interval_ms / 1000):
            try:
                database = database or self._connect()
                self._beat(database)
            except StreamsError as error:
                # At worst, members lose their tasks; the next heartbeat may succeed.
                if not self._closing.is_set():
                    log.warning("a heartbeat was not sent: %s", error)

    def _beat(self, database: Database) -> None:
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            silent = {
                member_id: (group, now_ms - polled_ms)
                for member_id, (group, polled_ms) in self._polled.items()
                if now_ms - polled_ms >= self._interval_ms
            }
        for member_id, (group, silent_ms) in silent.items():
            if silent_ms < self._max_poll_interval_ms:
                groups.send_heartbeat(database, member_id, now_ms)
            else:
                self._remove(database, group, member_id, silent_ms)

    def _remove(self, database: Database, group: str, member_id: str, silent_ms: float) -> None:
        log.warning(
            "member %s leaves group %s: its thread has not polled for %.0f s (max_poll_interval_ms)",
            member_id,
            group,
            silent_ms / 1000,
        )
        with database.transaction():
            groups.remove_member(database, group, member_id)
        self.ended(member_id)
