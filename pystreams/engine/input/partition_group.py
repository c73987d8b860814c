"""Chooses the next records of a task: those of the queue whose head has the least timestamp.

Source: org.apache.kafka.streams.processor.internals.PartitionGroup. Unlike Java, ties are
resolved by topic and partition, and the result is not one record but a run: the longest stretch of one batch that
precedes all other heads. Where runs are short, the result is turns.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from pystreams.engine.input.decoding import Rows
from pystreams.engine.input.record_queue import RecordQueue, first_above
from pystreams.engine.input.turns import Turns, take_turns
from pystreams.ids import TopicPartition

#: The value of ``max_task_idle_ms`` that switches waiting off.
NEVER_IDLE = -1

#: If the next run is shorter than this, the queues' records are merged one by one.
_SHORT_RUN = 8


class Run(NamedTuple):
    """The next records: those from ``start`` to ``end`` (exclusive) of ``rows``."""

    queue: RecordQueue
    rows: Rows
    start: int
    end: int


class HeadOrder(Protocol):
    """Holds the queues that have a head, in the order in which the heads must be processed."""

    def __len__(self) -> int: ...

    def offer(self, queue: RecordQueue) -> None:
        """Add a queue. Its head must not change until ``poll`` returns the queue."""
        ...

    def poll(self) -> RecordQueue:
        """Remove and return the queue whose head is next."""
        ...

    def run_end(self, queue: RecordQueue, end: int) -> int:
        """The position in ``queue``, which ``poll`` has just returned, before which no other head is next; at most
        ``end``."""
        ...


class TimestampOrder:
    """Orders queues by the timestamp of the head, then by topic, then by partition."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, TopicPartition, RecordQueue]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def offer(self, queue: RecordQueue) -> None:
        heapq.heappush(self._heap, (queue.head_timestamp, queue.partition, queue))

    def poll(self) -> RecordQueue:
        return heapq.heappop(self._heap)[2]

    def run_end(self, queue: RecordQueue, end: int) -> int:
        if not self._heap:
            return end
        timestamp, partition, _ = self._heap[0]
        bound = timestamp if queue.partition < partition else timestamp - 1
        rows = queue.rows
        assert rows is not None
        if rows.max_timestamp <= bound:
            return end
        return first_above(rows.timestamps, queue.position, end, bound)

    def poll_alternating(self) -> list[RecordQueue]:
        """Remove and return all queues, in the order that resolves ties, if the next run is short; else none."""
        heap = self._heap
        if len(heap) < 2:
            return []
        next_time, queue = min(heap[1:3])[0], heap[0][2]
        rows, ahead = queue.rows, queue.position + _SHORT_RUN
        assert rows is not None
        if ahead < rows.size and rows.timestamps[ahead] <= next_time:
            return []
        heap.sort(key=lambda entry: entry[1])
        queues = [queue for _, _, queue in heap]
        heap.clear()
        return queues


class PartitionGroup:
    """The queues of a task."""

    def __init__(
        self,
        queues: Mapping[TopicPartition, RecordQueue],
        max_idle_ms: int,
        lag: Callable[[TopicPartition], int | None],
        order: HeadOrder,
    ) -> None:
        self.queues = queues
        self._max_idle_ms = max_idle_ms
        self._lag = lag
        self._order = order
        self._alternating: TimestampOrder | None = None
        if isinstance(order, TimestampOrder) and all(queue.in_turns for queue in queues.values()):
            self._alternating = order
        self._unsettled: dict[RecordQueue, None] = {}
        self._idle_deadlines: dict[TopicPartition, int] = {}

    @property
    def head_time(self) -> int | None:
        """The least timestamp of the heads; None if there is none."""
        least: int | None = None
        for queue in self.queues.values():
            rows = queue.rows
            if rows is not None:
                time = rows.timestamps[queue.position]
                if least is None or time < least:
                    least = time
        return least

    def has_head(self, until_ms: int) -> bool:
        """Whether there is a head that is not later than ``until_ms``."""
        head_time = self.head_time
        return head_time is not None and head_time <= until_ms

    def settle(self) -> int:
        """Find the heads of all queues that got new records or were processed. Returns the number of bad records that
        were refused meanwhile; raises the errors of refusing them."""
        refused = 0
        while self._unsettled:
            # The queue stays in ``_unsettled`` until it is done: refusing may raise, and the owner may call again.
            queue = next(iter(self._unsettled))
            refused += queue.settle()
            del self._unsettled[queue]
            if queue.rows is not None:
                self._order.offer(queue)
        return refused

    def touched(self, queue: RecordQueue) -> None:
        """Note that a queue may have another head now. It must not be in the order at present."""
        self._unsettled[queue] = None

    def next_run(self, limit: int, until_ms: int | None = None) -> Run:
        """Remove and return the next run, of at most ``limit`` records, before the first that is later than
        ``until_ms``. The group must be ready, with a head that is not later.

        The caller advances the queue and hands it back with ``touched``.
        """
        queue = self._order.poll()
        end = self._order.run_end(queue, queue.run_end(limit))
        rows = queue.rows
        assert rows is not None
        if until_ms is not None and rows.max_timestamp > until_ms:
            end = first_above(rows.timestamps, queue.position, end, until_ms)
        return Run(queue, rows, queue.position, end)

    def next_turns(self, limit: int, until_ms: int | None = None) -> Turns | None:
        """If heads alternate, remove and return all queues with the order of their records, before the first that is
        later than ``until_ms``. None: use ``next_run``.

        The caller advances the queues and hands them back with ``touched``.
        """
        queues = () if self._alternating is None else self._alternating.poll_alternating()
        if not queues:
            return None
        turns = take_turns(queues, limit)
        if until_ms is not None:
            del turns.order[bisect_left(turns.order, (until_ms + 1, -1)) :]
        return turns

    def is_ready(self, now_ms: int) -> bool:
        """Whether records may be processed although some partitions have no buffered records.

        The task waits for an empty partition while its end is not known or not reached, and for ``max_idle_ms`` after
        that, because the partition's next record might be older than the buffered ones.
        """
        if self._max_idle_ms == NEVER_IDLE:
            return len(self._order) > 0
        if len(self._order) == len(self.queues):
            self._idle_deadlines.clear()
            return len(self._order) > 0
        ready = True
        for partition, queue in self.queues.items():
            if queue.size:
                self._idle_deadlines.pop(partition, None)
                continue
            lag = self._lag(partition)
            if lag is None or lag > 0:
                self._idle_deadlines.pop(partition, None)
                return False
            deadline = self._idle_deadlines.setdefault(partition, now_ms + self._max_idle_ms)
            ready = ready and now_ms >= deadline
        return ready and len(self._order) > 0
