"""Measurements of a thread in windows of time: durations, numbers of records."""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

#: Two windows of this length count, as with Kafka's metrics.num.samples and metrics.sample.window.ms: the measurements
#: of the last 30 to 60 seconds.
WINDOW_MS: Final = 30_000.0


class _Window(NamedTuple):
    """The measurements since ``start_ms`` (monotonic)."""

    start_ms: float
    number: int = 0
    total: float = 0.0
    least: float = inf
    greatest: float = -inf


class Measure:
    """The average, minimum and maximum of recent measurements. One thread records, any thread may read."""

    __slots__ = ("_windows",)

    def __init__(self, now_ms: float) -> None:
        #: The present window and the previous one. Replaced as a whole, so that no reader sees half of a change.
        self._windows: tuple[_Window, _Window | None] = (_Window(now_ms), None)

    def record(
        self,
        total: float,
        count: int,
        now_ms: float,
        *,
        least: float | None = None,
        greatest: float | None = None,
    ) -> None:
        """Add ``count`` measurements (at least one) with the sum ``total``. If their ``least`` and ``greatest`` are not
        given, their average is used for both."""
        window, before = self._windows
        passed = (now_ms - window.start_ms) // WINDOW_MS
        if passed >= 1:
            # Windows follow each other without gaps, so that shares include the time in which nothing was recorded.
            start_ms = window.start_ms + passed * WINDOW_MS
            before = window if passed == 1 else _Window(start_ms - WINDOW_MS)
            window = _Window(start_ms)
        average = total / count
        least = average if least is None else least
        greatest = average if greatest is None else greatest
        self._windows = (
            _Window(
                window.start_ms,
                window.number + count,
                window.total + total,
                min(window.least, least),
                max(window.greatest, greatest),
            ),
            before,
        )

    def average(self, now_ms: float) -> float | None:
        """The average; None: there are no recent measurements."""
        windows = self._recent(now_ms)
        number = sum(window.number for window in windows)
        return sum(window.total for window in windows) / number if number else None

    def minimum(self, now_ms: float) -> float | None:
        """The minimum; None: there are no recent measurements."""
        return min((window.least for window in self._recent(now_ms) if window.number), default=None)

    def maximum(self, now_ms: float) -> float | None:
        """The maximum; None: there are no recent measurements."""
        return max((window.greatest for window in self._recent(now_ms) if window.number), default=None)

    def rate(self, now_ms: float) -> float | None:
        """The number of measurements per second; None: there are no recent measurements."""
        windows = self._recent(now_ms)
        number, elapsed_ms = sum(window.number for window in windows), _elapsed_ms(windows, now_ms)
        return 1000 * number / elapsed_ms if number and elapsed_ms > 0 else None

    def share(self, now_ms: float) -> float:
        """For durations: their share of the time, from 0 to 1."""
        windows = self._recent(now_ms)
        elapsed_ms = _elapsed_ms(windows, now_ms)
        return min(1.0, sum(window.total for window in windows) / elapsed_ms) if elapsed_ms > 0 else 0.0

    def _recent(self, now_ms: float) -> list[_Window]:
        """The windows that count. The thread that records may have been idle for a long time."""
        return [window for window in self._windows if window and now_ms - window.start_ms < 2 * WINDOW_MS]


def _elapsed_ms(windows: list[_Window], now_ms: float) -> float:
    """The time since the first of the windows began."""
    return max((now_ms - window.start_ms for window in windows), default=0.0)
