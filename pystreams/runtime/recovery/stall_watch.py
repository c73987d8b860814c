"""Notices that records of a partition have stopped arriving without an error, and assigns the partition again.

This has happened to clients of Kafka after failures of brokers: the partition is assigned, the log holds more records,
and the position does not change. A task that waits on purpose does not count as a stall, because only the *reading* is
watched, not the processing: a task that is paused or waits for others still reads until its buffers are full, and then
its partitions are paused. A partition that is assigned again continues at the same offset, so nothing is lost or
repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from pystreams.broker.port import Admin, Consumer
from pystreams.clock import Clock
from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition

log = logging.getLogger(__name__)

#: A position must be unchanged for this many polls. With fewer, the thread was busy with other work.
_POLLS_MIN: Final = 10
#: A short timeout, because the thread has other work than to wait for a broker that does not answer.
_ANSWER_TIMEOUT_MS: Final = 2_000.0


@dataclass(slots=True)
class _Still:
    """A position of a partition that does not change: since when, and since which poll of the thread."""

    position: int
    since_ms: float
    since_polls: int
    #: Whether the log had more records at the last look. One look proves no stall, because the records may have come
    #: just before it.
    had_more: bool = False


class StallWatch:
    """Watches the partitions that a thread reads."""

    def __init__(self, consumer: Consumer, admin: Admin, clock: Clock, timeout_ms: int, thread: str) -> None:
        """``timeout_ms``: how long a position may stay the same although the log has more records; 0: for ever."""
        self._consumer = consumer
        self._admin = admin
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._thread = thread
        self._polls = 0
        self._still: dict[TopicPartition, _Still] = {}
        self._next_look_ms = clock.monotonic_ms()

    def polled(self, reads: Callable[[], Collection[TopicPartition]]) -> None:
        """The thread has polled; ``reads`` returns its partitions that are not paused. Looks at their positions a few
        times within the timeout. Raises ``TopicError``, ``BrokerError``."""
        self._polls += 1
        now_ms = self._clock.monotonic_ms()
        if not self._timeout_ms or now_ms < self._next_look_ms:
            return
        self._next_look_ms = now_ms + self._timeout_ms / 5
        positions = {partition: self._consumer.position(partition) for partition in reads()}
        self._still = {
            partition: before
            if (before := self._still.get(partition)) is not None and before.position == position
            else _Still(position, now_ms, self._polls)
            for partition, position in positions.items()
        }
        long = [partition for partition, still in self._still.items() if self._is_long(still, now_ms)]
        if long:
            self._read_again(long, now_ms)

    def _is_long(self, still: _Still, now_ms: float) -> bool:
        return now_ms - still.since_ms >= self._timeout_ms and self._polls - still.since_polls >= _POLLS_MIN

    def _read_again(self, partitions: Collection[TopicPartition], now_ms: float) -> None:
        """Assign partitions again if the log has more records. If the log does not answer, this is no stall."""
        try:
            ends = self._admin.stable_end_offsets(partitions, _ANSWER_TIMEOUT_MS)
        except BrokerError:
            # Ask again after the whole timeout, not at the next look.
            for partition in partitions:
                del self._still[partition]
            return
        anew: dict[TopicPartition, int] = {}
        for partition in sorted(partitions):
            still, end = self._still[partition], ends[partition]
            if end > still.position and not still.had_more:
                still.had_more = True
                continue
            del self._still[partition]
            if end <= still.position:
                continue
            log.warning(
                "[%s] nothing has been read from %s for %.0f s, although it has %d more records, from offset %d on:"
                " it is assigned again (stall_timeout_ms)",
                self._thread,
                partition,
                (now_ms - still.since_ms) / 1000,
                end - still.position,
                still.position,
            )
            anew[partition] = still.position
        if anew:
            self._consumer.read_anew(anew)
