"""The activity of a stream thread, for other threads to see: noted between the parts of a round, never per record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from pystreams.clock import Clock

#: The parts of a round. A thread that ends, or is not yet in its first round, is in none. A thread that ends still
#: commits.
NOTHING: Final = "nothing"
GROUP: Final = "group"
POLL: Final = "poll"
PROCESS: Final = "process"
COMMIT: Final = "commit"


class Activity(NamedTuple):
    """``part`` of a round, for ``part_ms`` so far. ``task``: the one at work, if it is known. ``polled_ms``,
    ``committed_ms``: the time since the last poll and the last commit ended; None: there was none yet."""

    part: str = NOTHING
    part_ms: float = 0.0
    task: str | None = None
    polled_ms: float | None = None
    committed_ms: float | None = None


class ActivityNotes:
    """Written by one thread, read by any."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: The part and its beginning: one object, so that readers never see half of a change.
        self._part = NOTHING, clock.monotonic_ms()
        self._polled_ms: float | None = None
        self._committed_ms: float | None = None

    def begin(self, part: str) -> None:
        """The thread begins a part of its round, or goes on with it."""
        if self._part[0] != part:
            self._part = part, self._clock.monotonic_ms()

    def polled(self, at_ms: float) -> None:
        """A poll has ended."""
        self._polled_ms = at_ms

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Around a commit. After it the thread goes on with the part in which the commit became due."""
        part, _ = self._part
        self.begin(COMMIT)
        try:
            yield
            self._committed_ms = self._clock.monotonic_ms()
        finally:
            self.begin(part)

    def now(self, task: str | None) -> Activity:
        """The activity now; ``task`` is the one at work."""
        now_ms = self._clock.monotonic_ms()
        (part, began_ms), polled_ms, committed_ms = self._part, self._polled_ms, self._committed_ms
        return Activity(
            part,
            now_ms - began_ms,
            task,
            None if polled_ms is None else now_ms - polled_ms,
            None if committed_ms is None else now_ms - committed_ms,
        )
