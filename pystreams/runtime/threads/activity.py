"""The activity of a stream thread, which other threads can read. It is noted once for each part of a round, never per
record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from pystreams.clock import Clock

#: The parts of a round. Before its first round and at its end, a thread is in none (``NOTHING``), except that it still
#: commits at its end.
NOTHING: Final = "nothing"
GROUP: Final = "group"
POLL: Final = "poll"
PROCESS: Final = "process"
COMMIT: Final = "commit"


class Activity(NamedTuple):
    """The thread has been in ``part`` of a round for ``part_ms``. ``task``: the task at work, if it is known.
    ``polled_ms``, ``committed_ms``: the time since the end of the last poll and of the last commit; None: there was
    none yet."""

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
        """The thread begins a part of its round, or continues it."""
        if self._part[0] != part:
            self._part = part, self._clock.monotonic_ms()

    def polled(self, at_ms: float) -> None:
        """A poll has ended."""
        self._polled_ms = at_ms

    @contextmanager
    def committing(self) -> Iterator[None]:
        """A context around a commit. Afterwards the thread continues the part in which the commit became due."""
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
