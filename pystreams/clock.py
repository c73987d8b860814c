"""Time: the only module that reads the system's clocks, so that tests can replace them."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time for records and punctuation, monotonic time for durations. Both in milliseconds."""

    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since the epoch."""
        ...

    def monotonic_ms(self) -> float:
        """A time that never goes back. Only differences between two readings have a meaning."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1e6


def thread_cpu_ms() -> float:
    """The time for which the calling thread has computed so far, without its waits."""
    return time.thread_time_ns() / 1e6


class ManualClock:
    """A clock that stands still until it is advanced. Wall-clock and monotonic time move together."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> float:
        return float(self._now_ms)

    def advance_ms(self, duration_ms: int) -> None:
        """Move both times forward. Raises ``ValueError`` if ``duration_ms`` is negative."""
        if duration_ms < 0:
            raise ValueError(f"a clock cannot go back: {duration_ms} ms")
        self._now_ms += duration_ms


class Deadline:
    """A point of monotonic time by which something must be done. Calls that share it pass it down."""

    __slots__ = ("_clock", "_end_ms")

    def __init__(self, clock: Clock, timeout_ms: float) -> None:
        self._clock = clock
        self._end_ms = clock.monotonic_ms() + timeout_ms

    def remaining_ms(self) -> float:
        """Milliseconds that are left, never below 0."""
        return max(0.0, self._end_ms - self._clock.monotonic_ms())

    def expired(self) -> bool:
        return self.remaining_ms() == 0.0
