"""The order in which a task gets the records of its queues, as a sort.

A task takes the record whose queue's head has the least timestamp, ties by queue. Within a queue no record overtakes
another, so a record waits for the greatest timestamp before it: merging by head timestamp is sorting by (running
maximum of timestamps in the queue, queue, place in the queue).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pystreams.backfill.records import Arrow, combined, pc

#: What rows of ``EXCHANGE_SCHEMA`` are sorted by within a task: Spark's ``sortWithinPartitions`` takes these names.
ORDER: Final = ("queue_time", "topic", "upstream", "sequence")

#: A queue of a task: its topic and the task that filled it.
QueueId = tuple[str, int]

#: Where a row is: its ``queue_time`` and its queue. Rows of one place follow each other by sequence.
Place = tuple[int, QueueId]

#: Rows that ``in_order`` merges at once, at least.
_MERGED_ROWS = 20_000


def sorted_rows(rows: Arrow) -> Arrow:
    """Rows of ``EXCHANGE_SCHEMA`` in the order in which their task gets them."""
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in ORDER]))


class _Stream:
    """Rows that have arrived, and where they come from: one queue, or (id None) several that are merged already."""

    def __init__(self, id: QueueId | None, batches: Iterable[Arrow]) -> None:
        self._id = id
        self._batches = iter(batches)
        self.rows: Arrow | None = None
        self.times: list[int] = []
        self.advance()

    def advance(self) -> None:
        """On to the next batch that holds anything; ``rows`` is None at the end."""
        self.rows = next((batch for batch in self._batches if batch.num_rows), None)
        self.times = [] if self.rows is None else self.rows.column("queue_time").to_pylist()

    def end(self) -> tuple[int, QueueId]:
        """The place of the last row that has arrived."""
        return self.times[-1], self._ids(len(self.times) - 1, len(self.times))[0]

    def take(self, horizon: tuple[int, QueueId]) -> Arrow | None:
        """The rows up to ``horizon``, which stay no longer."""
        time, last = horizon
        start, end = bisect_left(self.times, time), bisect_right(self.times, time)
        if start < end:
            end = start + bisect_right(self._ids(start, end), last)
        if not end:
            return None
        rows = self.rows
        assert rows is not None
        taken = rows.slice(0, end)
        if end == rows.num_rows:
            self.advance()
        else:
            self.rows, self.times = rows.slice(end), self.times[end:]
        return taken

    def _ids(self, start: int, end: int) -> Sequence[QueueId]:
        """The queues of rows, which ascend where their times are equal."""
        if self._id is not None:
            return [self._id] * (end - start)
        assert self.rows is not None
        rows = self.rows.slice(start, end - start)
        return list(zip(rows.column("topic").to_pylist(), rows.column("upstream").to_pylist(), strict=True))


def merged(streams: Sequence[tuple[QueueId | None, Iterable[Arrow]]]) -> Iterator[Arrow]:
    """The rows of several queues in the order in which their task gets them, with one batch per stream in memory.

    A stream is a queue, or (without an id) queues that are merged already; its own batches must be in order. What one
    round hands out is everything before the least of the ends of the batches at hand: nothing that has not arrived can
    come before that.
    """
    waiting = [one for one in (_Stream(id, batches) for id, batches in streams) if one.rows is not None]
    while waiting:
        if len(waiting) == 1:
            # Alone, a stream needs no look at its rows.
            while (rows := waiting[0].rows) is not None:
                yield rows
                waiting[0].advance()
            return
        horizon = min(stream.end() for stream in waiting)
        pieces = [piece for stream in waiting if (piece := stream.take(horizon)) is not None]
        yield pieces[0] if len(pieces) == 1 else sorted_rows(combined(pieces))
        waiting = [stream for stream in waiting if stream.rows is not None]


def in_order(pieces: Iterable[tuple[Place, Arrow]]) -> Iterator[Arrow]:
    """The rows of pieces of several queues, in order. The pieces come sorted by their first row, whose place they have.

    Where queues overlap, what waits is at most one piece of each, and what is merged at once: nothing that has not
    come can be before the first row of the next piece.
    """
    waiting: dict[QueueId, Arrow] = {}
    size = kept = 0
    for place, rows in pieces:
        if waiting.keys() <= {place[1]} or size >= kept + _MERGED_ROWS:
            yield from _taken(waiting, place)
            size = kept = sum(left.num_rows for left in waiting.values())
        before = waiting.get(place[1])
        waiting[place[1]] = rows if before is None else combined([before, rows])
        size += rows.num_rows
    yield from _taken(waiting, None)


def _taken(waiting: dict[QueueId, Arrow], horizon: Place | None) -> Iterator[Arrow]:
    """The rows up to ``horizon``, in order, which wait no longer."""
    taken: list[Arrow] = []
    for id in sorted(waiting):
        rows = waiting[id]
        end = rows.num_rows if horizon is None else _end(rows, id, horizon)
        if end:
            taken.append(rows.slice(0, end))
        if end == rows.num_rows:
            del waiting[id]
        else:
            waiting[id] = rows.slice(end)
    if len(taken) == 1:
        yield taken[0]
    elif taken:
        # Queue by queue as they are, a stable sort leaves ties as they should be.
        rows = combined(taken)
        yield rows.take(pc.sort_indices(rows.column("queue_time")))


def _end(rows: Arrow, id: QueueId, horizon: Place) -> int:
    time, last = horizon
    return (bisect_right if id <= last else bisect_left)(rows.column("queue_time").to_pylist(), time)
