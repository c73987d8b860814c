"""Logs the progress of restores."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from pystreams.clock import Clock
from pystreams.runtime.restoring.store_restore import StoreRestore

log = logging.getLogger(__name__)

_INTERVAL_MS: Final = 10_000


class ProgressLog:
    """The log lines of one restorer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._restored = 0
        self._since_ms = self._logged_ms = clock.monotonic_ms()

    def begin(self) -> None:
        """The first of several tasks begins."""
        self._since_ms = self._logged_ms = self._clock.monotonic_ms()
        self._restored = 0

    def add(self, records: int) -> None:
        """Note that ``records`` more were restored."""
        self._restored += records

    @property
    def due(self) -> bool:
        """Whether the last line was logged long enough ago."""
        return self._clock.monotonic_ms() - self._logged_ms >= _INTERVAL_MS

    def write(self, restores: Sequence[StoreRestore], tasks: int) -> None:
        """Log the progress of the restores, which are those of ``tasks`` tasks."""
        self._logged_ms = self._clock.monotonic_ms()
        left = sum(restore.left for restore in restores)
        rate = self._restored / max(1e-3, (self._logged_ms - self._since_ms) / 1000)
        log.info(
            "restoring %d stores of %d tasks: %d records restored, %d offsets to go, %d records/s, ETA %s",
            len(restores),
            tasks,
            self._restored,
            left,
            rate,
            f"{left / rate:.0f} s" if rate else "unknown",
        )
