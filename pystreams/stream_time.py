"""Stream time: how far event time has advanced in a task, and at each of its steps and stores.

The time *seen* is the greatest timestamp so far. While an upstream task lags, it may still send older records: then the
task has a *bound*, the oldest timestamp to expect. The time *in force* closes windows, expires entries and calls
punctuators: it is the lesser of seen and bound, and never decreases. Without a bound it is the time seen, as in Kafka
Streams, where every step and every store observes only the records that reach it.

At least once, a store may be restored with what later records wrote that were not committed. While these are processed
again (``Observed.repeat``), an entry moves the store's time no further than the record that writes it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Final

#: Later than all timestamps: as a bound, it limits nothing.
TIME_MAX: Final = 0x7FFFFFFFFFFFFFFF

#: The time before the first record.
NO_TIME: Final = -1

#: The places of a task's own time and of its stores. The steps are between them.
_BEFORE_STEPS: Final = -1
_AFTER_STEPS: Final = 0x7FFFFFFF


def _any_time() -> int:
    return TIME_MAX


class Observed:
    """The stream time of a task, a step or a store.

    Code that runs for each record avoids unnecessary calls of ``see``, because calls are expensive:

        now = time.ms
        if timestamp > now:
            if time.unbounded:
                time.ms = now = timestamp
            elif timestamp > time.beyond_ms:
                now = time.see(timestamp)
    """

    __slots__ = (
        "_bound_ms",
        "_place",
        "_record_ms",
        "_repeated_ms",
        "beyond_ms",
        "ms",
        "on_move",
        "unbounded",
    )

    def __init__(self, place: int, bound_ms: int, record_ms: Callable[[], int] = _any_time) -> None:
        """``record_ms`` returns the timestamp of the task's current record."""
        self._place = place
        self._record_ms = record_ms
        self._repeated_ms = NO_TIME
        #: The time in force (ms); -1 before the first record.
        self.ms = NO_TIME
        self.set_bound(bound_ms)
        #: The greatest timestamp beyond the bound; if it is outdated, it is not greater than ``ms``. With a bound,
        #: callers need not call ``see`` with a timestamp that is not greater than this, because nothing would change.
        self.beyond_ms = NO_TIME
        #: Called when a raised bound has moved the time in force, because results may be final now without a new
        #: record.
        self.on_move: Callable[[], None] | None = None

    def __lt__(self, other: Observed) -> bool:
        return self._place < other._place

    @property
    def seen_ms(self) -> int:
        """The greatest timestamp that was seen (ms); -1 before the first record."""
        return max(self.ms, self.beyond_ms)

    @property
    def held_ms(self) -> int | None:
        """The time that was seen, if the bound keeps the time in force below it; else None."""
        return self.beyond_ms if self.beyond_ms > self.ms else None

    @property
    def bound_ms(self) -> int:
        """The bound in force (ms)."""
        return self._bound_ms

    def set_bound(self, bound_ms: int) -> None:
        """Set the bound for the timestamps that are seen from now on."""
        self._bound_ms = bound_ms
        self._moved()

    def _moved(self) -> None:
        """The bound or the time in force is another one."""
        #: Whether nothing limits the time: then a timestamp greater than ``ms`` becomes it.
        self.unbounded = self._bound_ms >= TIME_MAX and self.ms >= self._repeated_ms

    def repeat(self, until_ms: int) -> None:
        """Until the time in force reaches ``until_ms``, the task processes records again whose results the store holds
        already. Such a record may find an entry that is much later than itself, for example a session that later
        records have extended, and write it anew. This moves the time only to the record's own timestamp: otherwise
        entries that the next records need would expire."""
        self._repeated_ms = until_ms
        self._moved()

    def see(self, timestamp: int) -> int:
        """A record with this timestamp came. Returns the time in force."""
        bound_ms, now_ms = self._bound_ms, self.ms
        repeats = now_ms < self._repeated_ms
        if repeats:
            timestamp = min(timestamp, self._record_ms())
        # Under a bound this is called often, and ``max`` and ``min`` take twice as long.
        if timestamp > bound_ms:
            self.beyond_ms = max(self.beyond_ms, timestamp)
            timestamp = bound_ms
        if timestamp > now_ms:
            self.ms = now_ms = timestamp
            if repeats:
                self._moved()
        return now_ms

    def go_on(self, ms: int, seen_ms: int = NO_TIME) -> None:
        """Continue at the times of an earlier run, independent of the bound."""
        self.ms = max(self.ms, ms)
        self.beyond_ms = max(self.beyond_ms, seen_ms)
        self._moved()

    def reset(self, ms: int, seen_ms: int) -> None:
        """Set the time in force, and what was seen."""
        self.ms, self.beyond_ms = ms, seen_ms
        self._moved()

    def would_move(self, bound_ms: int) -> bool:
        """Whether this bound would move the time in force."""
        return min(self.beyond_ms, bound_ms) > self.ms

    def limit(self, bound_ms: int) -> bool:
        """Set the bound, also for timestamps seen before; returns whether the time in force has moved."""
        self.set_bound(bound_ms)
        if not self.would_move(bound_ms):
            return False
        self.ms = min(self.beyond_ms, bound_ms)
        self._moved()
        if self.on_move is not None:
            self.on_move()
        return True


class StreamTime:
    """The only place where a task keeps stream time: its own, and that of each step and store, all with one bound.

    A lower bound takes effect at once. A higher bound takes effect when the task's caches have been flushed, because
    they may hold changes that later steps must see before. Then the times move in the order of the topology, each after
    the steps before it have emitted their final results: so no record that is emitted then is late for a later step.
    """

    __slots__ = ("_bound_ms", "_next_bound_ms", "_observed", "_record_ms", "task")

    def __init__(self, record_ms: Callable[[], int] = _any_time) -> None:
        """``record_ms`` returns the timestamp of the task's current record."""
        self._bound_ms = self._next_bound_ms = TIME_MAX
        self._record_ms = record_ms
        #: In the order of their places.
        self._observed: list[Observed] = []
        #: The task's own time.
        self.task = self.of_step(_BEFORE_STEPS)

    @property
    def bound_ms(self) -> int:
        """The last bound that was set (ms); ``TIME_MAX``: there is none."""
        return self._next_bound_ms

    def of_step(self, place: int) -> Observed:
        """The time of a step. Its ``place`` is greater than the places of the steps before it."""
        observed = Observed(place, self._bound_ms, self._record_ms)
        insort(self._observed, observed)
        return observed

    def of_store(self) -> Observed:
        """The time of a store. The times of stores move last, so that stores still accept the writes of steps whose
        times have just moved."""
        return self.of_step(_AFTER_STEPS)

    def limit(self, bound_ms: int) -> bool:
        """Set the bound (ms): no older record is expected. Returns whether the next ``flushed`` will move a time in
        force, or end the waiting. A bound below a time in force does not change that time."""
        self._next_bound_ms = bound_ms
        if bound_ms < self._bound_ms:
            self._bound_ms = bound_ms
            for observed in self._observed:
                observed.set_bound(bound_ms)
        if bound_ms == TIME_MAX > self._bound_ms:
            return True
        return any(observed.would_move(bound_ms) for observed in self._observed)

    def flushed(self, flush: Callable[[], None]) -> bool:
        """The task's caches have been flushed, so the bound takes effect. Returns whether a time in force has moved.
        ``flush`` flushes the caches again, after each emission."""
        bound_ms = self._bound_ms = self._next_bound_ms
        moved = False
        for observed in self._observed:
            if observed.limit(bound_ms):
                moved = True
                if observed.on_move is not None:
                    flush()
        return moved
