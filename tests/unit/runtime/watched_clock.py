"""A clock that moves when told to, for tests of threads that look at it again and again."""

from __future__ import annotations

from pystreams.clock import ManualClock
from tests.live.support import eventually


class WatchedClock(ManualClock):
    """Counts how often it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def monotonic_ms(self) -> float:
        now_ms = super().monotonic_ms()
        self.reads += 1
        return now_ms

    def is_looked_at(self, after_ms: int) -> None:
        """Let time pass, and wait until it has been seen by a thread that reads the clock once for each look, and the
        look is over."""
        self.advance_ms(after_ms)
        before = self.reads
        # The first of these may have read the time before it was advanced; the third begins after the second look.
        eventually(lambda: self.reads >= before + 3, "it has been looked at")
