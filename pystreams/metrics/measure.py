"""What a thread measures now and then, in windows: durations, numbers of records."""

from __future__ import annotations

from typing import Final, NamedTuple

#: Two windows of this length count, as with Kafka's metrics.num.samples and metrics.sample.window.ms: what was measured
#: in the last 30 to 60 seconds.
WINDOW_MS: Final = 30_000.0


class _Window(NamedTuple):
    """What was measured since ``start_ms`` (monotonic)."""

    start_ms: float
    number: int = 0
    total: float = 0.0
    greatest: float = 0.0


class Measure:
    """The average and the maximum of what was measured lately. One thread records, any thread may read."""

    __slots__ = ("_windows",)

    def __init__(self, now_ms: float) -> None:
        #: The present window and the one before. Replaced as a whole, so that no reader sees half of a change.
        self._windows: tuple[_Window, _Window | None] = (_Window(now_ms), None)

    def record(self, total: float, count: int, now_ms: float) -> None:
        """Add ``count`` things that measure ``total`` together, at least one."""
        window, before = self._windows
        passed = (now_ms - window.start_ms) // WINDOW_MS
        if passed >= 1:
            # Windows follow each other without gaps: a share is also of the time in which nothing was recorded.
            start_ms = window.start_ms + passed * WINDOW_MS
            before = window if passed == 1 else _Window(start_ms - WINDOW_MS)
            window = _Window(start_ms)
        greatest = max(window.greatest, total / count)
        self._windows = (
            _Window(window.start_ms, window.number + count, window.total + total, greatest),
            before,
        )

    def average(self, now_ms: float) -> float | None:
        """The average of all things; None: nothing was measured lately."""
        windows = self._recent(now_ms)
        number = sum(window.number for window in windows)
        return sum(window.total for window in windows) / number if number else None

    def maximum(self, now_ms: float) -> float | None:
        """The greatest average of things that were recorded together; None: nothing was measured lately."""
        return max((window.greatest for window in self._recent(now_ms) if window.number), default=None)

    def share(self, now_ms: float) -> float:
        """Of durations: their share of the time, from 0 to 1."""
        windows = self._recent(now_ms)
        elapsed_ms = max((now_ms - window.start_ms for window in windows), default=0.0)
        return min(1.0, sum(window.total for window in windows) / elapsed_ms) if elapsed_ms > 0 else 0.0

    def _recent(self, now_ms: float) -> list[_Window]:
        """The windows that count: who records may have been idle for long."""
        return [window for window in self._windows if window and now_ms - window.start_ms < 2 * WINDOW_MS]
