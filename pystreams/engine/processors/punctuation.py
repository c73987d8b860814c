"""Schedules of punctuators, and the order in which they fire.

Source: org.apache.kafka.streams.processor.internals.PunctuationQueue, PunctuationSchedule.
"""

from __future__ import annotations

from collections.abc import Callable

from pystreams.engine.processors.java_heap import JavaHeap
from pystreams.processor import Punctuator

#: No schedule is due before this time.
NEVER = 2**63 - 1


class Schedule:
    """A punctuator, the time (ms) at which it fires next, and how to call it. Implements ``processor.Cancellable``."""

    __slots__ = ("cancelled", "interval_ms", "punctuator", "run", "time_ms")

    def __init__(
        self, time_ms: int, interval_ms: int, punctuator: Punctuator, run: Callable[[Punctuator, int], None]
    ) -> None:
        self.time_ms = time_ms
        self.interval_ms = interval_ms
        self.punctuator = punctuator
        self.run = run
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def advance(self, now_ms: int) -> None:
        """Advance to the first scheduled time after ``now_ms``; times that were missed are skipped."""
        missed = max(0, (now_ms - self.time_ms) // self.interval_ms)
        self.time_ms += (missed + 1) * self.interval_ms


class PunctuationQueue:
    """The schedules of one task, either in stream time or in wall-clock time."""

    __slots__ = ("_schedules", "next_time_ms")

    def __init__(self) -> None:
        self._schedules: JavaHeap[Schedule] = JavaHeap(lambda schedule: schedule.time_ms)
        #: When the next schedule is due, which may be a cancelled one; ``NEVER`` if there are none.
        self.next_time_ms = NEVER

    def add(self, schedule: Schedule) -> None:
        self._schedules.offer(schedule)
        self._look_ahead()

    def punctuate(self, now_ms: int) -> int:
        """Call each punctuator that is due once, with ``now_ms``, in order of time. Returns the number of calls.

        A punctuator that is added during the call and already due is called, too. Cancelled ones stay until they are
        due: removing them from the heap earlier would change the order of ties.
        """
        called = 0
        while self.next_time_ms <= now_ms:
            schedule = self._schedules.poll()
            self._look_ahead()
            if schedule.cancelled:
                continue
            schedule.run(schedule.punctuator, now_ms)
            called += 1
            if not schedule.cancelled:
                schedule.advance(now_ms)
                self.add(schedule)
        return called

    def _look_ahead(self) -> None:
        self.next_time_ms = self._schedules.peek().time_ms if self._schedules else NEVER
