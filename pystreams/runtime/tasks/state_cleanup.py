"""Deletes the local state of tasks that have run elsewhere for long. Source: state.cleanup.delay.ms,
state.cleanup.dir.max.age.ms."""

from __future__ import annotations

import logging
import threading

from pystreams.clock import Clock
from pystreams.errors import StateError
from pystreams.state.disk.directory import StateDirectory

log = logging.getLogger(__name__)


class StateCleanup:
    """The cleanup of one client's state directory. Threads may share it."""

    def __init__(self, directory: StateDirectory, delay_ms: int, clock: Clock) -> None:
        self._directory = directory
        self._delay_ms = delay_ms
        self._clock = clock
        self._mutex = threading.Lock()
        self._next_ms = clock.monotonic_ms() + delay_ms

    def at_start(self, max_age_ms: int) -> None:
        """Delete state that has been unused for longer than ``max_age_ms``; negative: delete nothing. Raises
        ``StateError``."""
        gone = self._directory.clean_up(max_age_ms, self._clock) if max_age_ms >= 0 else []
        if gone:
            log.info("deleted state that is older than %d ms: %s", max_age_ms, ", ".join(map(str, gone)))

    def now_and_then(self) -> None:
        """If a cleanup is due, delete state that has been unused for the delay."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            if now_ms < self._next_ms:
                return
            self._next_ms = now_ms + self._delay_ms
        try:
            gone = self._directory.clean_up(self._delay_ms, self._clock)
        except StateError as error:
            log.warning("state of tasks that left could not be deleted: %s", error)
            return
        if gone:
            log.info("deleted the state of tasks that are elsewhere: %s", ", ".join(map(str, gone)))
