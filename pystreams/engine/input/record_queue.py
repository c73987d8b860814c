"""The buffered records of one input partition, as decoded batches.

Source: org.apache.kafka.streams.processor.internals.RecordQueue, without its objects per record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator

from pystreams.engine.input.decoding import BatchDecoder, Refusal, Rows
from pystreams.engine.task_flow import Source
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch

#: Called for a bad record that has become the head: raises, or returns if the record is to be skipped.
Refuse = Callable[[Rows, int, Refusal], None]


class RecordQueue:
    """A queue whose head is the next good record. ``read(rows, start, end)`` is the compiled code of the source.
    ``in_turns`` does the same as an iterator: the first ``next`` does nothing, each later one processes one record. It
    is None if no other queue takes turns with this one."""

    __slots__ = (
        "_batches",
        "_decoder",
        "_refuse",
        "flow",
        "in_turns",
        "next_offset",
        "partition",
        "partition_time",
        "position",
        "read",
        "rows",
        "size",
    )

    def __init__(
        self,
        partition: TopicPartition,
        decoder: BatchDecoder,
        read: Callable[[Rows, int, int], int],
        in_turns: Callable[[Rows, int, int], Iterator[None]] | None,
        refuse: Refuse,
        flow: Source,
    ) -> None:
        #: Counts the records that are read from the topic.
        self.flow = flow
        self.partition = partition
        self.read = read
        self.in_turns = in_turns
        self._decoder = decoder
        self._refuse = refuse
        self._batches: deque[Rows] = deque()
        #: The batch of the head, and the head's position in it.
        self.rows: Rows | None = None
        self.position = 0
        self.size = 0
        #: Greatest timestamp processed, -1 before the first.
        self.partition_time = -1
        #: The next offset to process; None until a record was processed or ``resume_at`` was called.
        self.next_offset: int | None = None

    @property
    def head_timestamp(self) -> int:
        """The head's timestamp; -1 if there is no head."""
        return -1 if self.rows is None else self.rows.timestamps[self.position]

    def resume_at(self, offset: int, partition_time: int) -> None:
        """Continue at a committed offset."""
        self.next_offset = offset
        self.partition_time = self._decoder.partition_time = partition_time

    def add(self, batch: RecordBatch) -> None:
        """Append a batch."""
        if not len(batch):
            return
        rows = self._decoder.decode(batch)
        self.size += rows.size
        if self.rows is None:
            self.rows, self.position = rows, 0
        else:
            self._batches.append(rows)

    def passed(self, next_offset: int, latest: int) -> None:
        """Continue at an offset: the records before it, with times up to ``latest``, are not buffered."""
        assert self.rows is None, "what is buffered comes first"
        self.resume_at(next_offset, max(self.partition_time, latest))

    def settle(self) -> int:
        """Refuse bad records until the head is a good one. Returns the number of refused records."""
        refused = 0
        while self.rows is not None and self.rows.bad and self.position in self.rows.refused:
            rows, position = self.rows, self.position
            self._refuse(rows, position, rows.refused[position])
            self.advance(position + 1)
            refused += 1
        return refused

    def advance(self, position: int) -> None:
        """Mark all records of the head's batch before ``position`` as processed."""
        rows, start = self.rows, self.position
        assert rows is not None
        whole = position - start == rows.size
        latest = rows.max_timestamp if whole else max(rows.timestamps[start:position])
        self.partition_time = max(self.partition_time, latest)
        self.size -= position - start
        if position < rows.size:
            self.position = position
            self.next_offset = rows.offsets[position - 1] + 1
            return
        self.next_offset = rows.raw.next_offset
        self.rows = self._batches.popleft() if self._batches else None
        self.position = 0

    def run_end(self, limit: int) -> int:
        """The end of the longest stretch from the head that has no bad record and at most ``limit`` records."""
        rows = self.rows
        assert rows is not None
        end = min(rows.size, self.position + limit)
        if rows.bad:
            next_bad = bisect_right(rows.bad, self.position)
            if next_bad < len(rows.bad):
                end = min(end, rows.bad[next_bad])
        return end

    def clear(self) -> None:
        """Discard all buffered records."""
        self._batches.clear()
        self.rows = None
        self.position = self.size = 0


def first_above(timestamps: list[int], start: int, end: int, bound: int) -> int:
    """The first position from ``start`` whose timestamp is above ``bound``; ``end`` if there is none.

    Searches stretches of growing length, so that short runs are cheap and long ones are as fast as ``max``.
    """
    for i in range(start, min(start + 2, end)):
        if timestamps[i] > bound:
            return i
    start, step = start + 2, 8
    while start < end:
        stop = min(start + step, end)
        if max(timestamps[start:stop]) > bound:
            return start + [timestamp > bound for timestamp in timestamps[start:stop]].index(True)
        start, step = stop, step * 2
    return end
