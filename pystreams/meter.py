"""Measures how many records are processed per second."""

from __future__ import annotations

from collections import deque

from pystreams.clock import Clock

#: The displayed rate is that of the last seconds.
RATE_WINDOW_MS = 3_000.0


class Meter:
    """Measures records per second: over the last seconds, and over the whole run."""

    def __init__(self, clock: Clock, window_ms: float = RATE_WINDOW_MS) -> None:
        self._clock = clock
        self._window_ms = window_ms
        self._began_ms = clock.monotonic_ms()
        self._samples: deque[tuple[float, int]] = deque([(self._began_ms, 0)])
        self.processed = 0

    def update(self, processed: int) -> None:
        """Report the number of records processed so far."""
        now_ms = self._clock.monotonic_ms()
        self.processed = processed
        self._samples.append((now_ms, processed))
        while len(self._samples) > 2 and now_ms - self._samples[0][0] > self._window_ms:
            self._samples.popleft()

    def rate(self) -> float:
        """Records per second over the last seconds."""
        (first_ms, first), (last_ms, last) = self._samples[0], self._samples[-1]
        return 1000 * (last - first) / (last_ms - first_ms) if last_ms > first_ms else 0.0

    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return (self._clock.monotonic_ms() - self._began_ms) / 1000
