"""Logs a summary of a thread's work periodically. Source: log.summary.interval.ms."""

from __future__ import annotations

import logging

from pystreams.clock import Clock

log = logging.getLogger(__name__)


class ThreadSummary:
    """Logs every ``interval_ms`` what was done since the last summary; never if that is negative."""

    def __init__(self, thread: str, interval_ms: int, clock: Clock) -> None:
        self._thread = thread
        self._interval_ms = interval_ms
        self._clock = clock
        self._logged_ms = clock.monotonic_ms()
        self._records = self._commits = 0

    def log_if_due(self, records: int, commits: int, tasks: int) -> None:
        """Log a summary if it is due. ``records`` and ``commits`` are the thread's totals, ``tasks`` is the number of
        its tasks."""
        now = self._clock.monotonic_ms()
        elapsed_ms = now - self._logged_ms
        if self._interval_ms < 0 or elapsed_ms < self._interval_ms or elapsed_ms <= 0:
            return
        log.info(
            "[%s] in %.0f s: %d records processed, %d commits; %d tasks",
            self._thread,
            elapsed_ms / 1000,
            records - self._records,
            commits - self._commits,
            tasks,
        )
        self._logged_ms, self._records, self._commits = now, records, commits
