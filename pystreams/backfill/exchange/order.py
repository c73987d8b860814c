"""The order in which a task gets the records of its queues, as a sort.

A task takes the record whose queue's head has the least timestamp, ties by queue. Within a queue no record overtakes
another, so a record waits for the greatest timestamp before it: merging by head timestamp is sorting by (running
maximum of timestamps in the queue, queue, place in the queue).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from pystreams.backfill.exchange.rows import Arrow, combined, pc

#: The sort columns of ``EXCHANGE_SCHEMA`` within a task: Spark's ``sortWithinPartitions`` takes these names.
ORDER: Final = ("queue_time", "topic", "upstream", "sequence")

#: A queue of a task: its topic and the task that filled it.
QueueId = tuple[str, int]

#: Where a row is: its ``queue_time`` and its queue. Rows of one place follow each other by sequence.
Place = tuple[int, QueueId]

#: The rows that ``in_order`` merges at once: at least this number, or this size.
_MERGED_ROWS = 20_000
_MERGED_BYTES = 4 * 1024 * 1024


def sorted_rows(rows: Arrow) -> Arrow:
    """Rows of ``EXCHANGE_SCHEMA`` in the order in which their task gets them."""
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in ORDER]))


class _Stream:
    """Rows that have arrived, and their origin: one queue, or (id None) several queues that are merged already."""

    def __init__(self, id: QueueId | None, batches: Iterable[Arrow]) -> None:
        self._id = id
        self._batches = iter(batches)
        self.rows: Arrow | None = None
        self.advance()

    def advance(self) -> None:
        """Advance to the next batch that is not empty; ``rows`` is None at the end."""
        self.rows = next((batch for batch in self._batches if batch.num_rows), None)

    def end(self) -> Place:
        """The place of the last row that has arrived."""
        rows = self.rows
        assert rows is not None
        return rows.column("queue_time")[-1].as_py(), self._id_of(rows, rows.num_rows - 1)

    def take(self, horizon: Place) -> Arrow | None:
        """The rows up to ``horizon``, which are removed."""
        rows = self.rows
        assert rows is not None
        end = self._before(rows, horizon)
        if not end:
            return None
        if end == rows.num_rows:
            self.advance()
        else:
            self.rows = rows.slice(end)
        return rows.slice(0, end)

    def _before(self, rows: Arrow, horizon: Place) -> int:
        """How many rows are not behind ``horizon``."""
        if self._id is not None:
            return _end(rows, self._id, horizon)
        time, last = horizon
        times = rows.column("queue_time")
        start, end = _bisected(bisect_left, times, time), _bisected(bisect_right, times, time)
        # Where times are equal, the queues ascend.
        return start + bisect_right(range(start, end), last, key=lambda i: self._id_of(rows, i))

    def _id_of(self, rows: Arrow, i: int) -> QueueId:
        """The queue of a row."""
        if self._id is not None:
            return self._id
        return rows.column("topic")[i].as_py(), rows.column("upstream")[i].as_py()


def merged(streams: Sequence[tuple[QueueId | None, Iterable[Arrow]]]) -> Iterator[Arrow]:
    """The rows of several queues in the order in which their task gets them, with one batch per stream in memory.

    A stream is a queue, or (without an id) queues that are merged already; its own batches must be in order. A round
    returns all rows before the least of the ends of the present batches: no row that arrives later can come before
    them.
    """
    waiting = [one for one in (_Stream(id, batches) for id, batches in streams) if one.rows is not None]
    while waiting:
        if len(waiting) == 1:
            # The rows of a single stream need not be compared.
            while (rows := waiting[0].rows) is not None:
                yield rows
                waiting[0].advance()
            return
        horizon = min(stream.end() for stream in waiting)
        pieces = [piece for stream in waiting if (piece := stream.take(horizon)) is not None]
        yield pieces[0] if len(pieces) == 1 else sorted_rows(combined(pieces))
        waiting = [stream for stream in waiting if stream.rows is not None]


class _Waiting:
    """Rows that ``in_order`` has not passed on yet, as pieces by queue."""

    def __init__(self) -> None:
        self.queues: dict[QueueId, list[Arrow]] = {}
        self.rows = 0
        self.nbytes = 0

    def add(self, id: QueueId, piece: Arrow) -> None:
        self.queues.setdefault(id, []).append(piece)
        self.rows += piece.num_rows
        self.nbytes += piece.nbytes

    def take(self, horizon: Place | None) -> Iterator[Arrow]:
        """The rows up to ``horizon``, in order, which are removed."""
        taken: list[Arrow] = []
        for id in sorted(self.queues):
            # Rows before a piece of the same queue are also before the horizon.
            *whole, last = self.queues.pop(id)
            end = last.num_rows if horizon is None else _end(last, id, horizon)
            taken += whole
            if end:
                taken.append(last.slice(0, end))
            if end < last.num_rows:
                self.queues[id] = [last.slice(end)]
        left = [piece for pieces in self.queues.values() for piece in pieces]
        self.rows = sum(piece.num_rows for piece in left)
        self.nbytes = sum(piece.nbytes for piece in left)
        if len(taken) == 1:
            yield taken[0]
        elif taken:
            # The rows are ordered by queue, so a stable sort keeps ties in the right order.
            rows = combined(taken)
            yield rows.take(pc.sort_indices(rows.column("queue_time")))


def in_order(pieces: Iterable[tuple[Place, Arrow]]) -> Iterator[Arrow]:
    """The rows of pieces of several queues, in order. The pieces come sorted by their first row, whose place they have.

    If queues overlap, at most one piece of each queue waits, and the rows that are merged at once (some thousand rows,
    or some MiB of them), because no later row can come before the first row of the next piece.
    """
    waiting = _Waiting()
    kept_rows = kept_bytes = 0
    for place, piece in pieces:
        full = waiting.rows >= kept_rows + _MERGED_ROWS or waiting.nbytes >= kept_bytes + _MERGED_BYTES
        if full or waiting.queues.keys() <= {place[1]}:
            yield from waiting.take(place)
            kept_rows, kept_bytes = waiting.rows, waiting.nbytes
        waiting.add(place[1], piece)
    yield from waiting.take(None)


def _end(rows: Arrow, id: QueueId, horizon: Place) -> int:
    """How many rows of a queue are not behind ``horizon``."""
    time, last = horizon
    return _bisected(bisect_right if id <= last else bisect_left, rows.column("queue_time"), time)


def _bisected(bisect: Callable[..., int], times: Arrow, time: int) -> int:
    """A place in an ascending column, found with a few look-ups; a list would need an object for each row."""
    return bisect(range(len(times)), time, key=lambda i: times[i].as_py())
