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


def sorted_rows(rows: Arrow) -> Arrow:
    """Rows of ``EXCHANGE_SCHEMA`` in the order in which their task gets them."""
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in ORDER]))


class _Queue:
    """One queue's rows that have arrived, and where they come from."""

    def __init__(self, id: QueueId, batches: Iterable[Arrow]) -> None:
        self.id = id
        self._batches = iter(batches)
        self.rows: Arrow | None = None
        self.times: list[int] = []
        self.advance()

    def advance(self) -> None:
        """On to the next batch that holds anything; ``rows`` is None at the end."""
        self.rows = next((batch for batch in self._batches if batch.num_rows), None)
        self.times = [] if self.rows is None else self.rows.column("queue_time").to_pylist()

    def take(self, horizon: tuple[int, QueueId]) -> Arrow | None:
        """The rows up to ``horizon``, which stay no longer."""
        time, last = horizon
        end = (bisect_right if self.id <= last else bisect_left)(self.times, time)
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


def merged(queues: Sequence[tuple[QueueId, Iterable[Arrow]]]) -> Iterator[Arrow]:
    """The rows of several queues in the order in which their task gets them, with one batch per queue in memory.

    Each queue's own batches must be in order. What one round hands out is everything before the least of the ends of
    the batches at hand: nothing that has not arrived can come before that.
    """
    waiting = [queue for queue in (_Queue(id, batches) for id, batches in queues) if queue.rows is not None]
    while waiting:
        if len(waiting) == 1:
            # Alone, a queue needs no look at its rows.
            while (rows := waiting[0].rows) is not None:
                yield rows
                waiting[0].advance()
            return
        horizon = min((queue.times[-1], queue.id) for queue in waiting)
        pieces = [piece for queue in waiting if (piece := queue.take(horizon)) is not None]
        yield pieces[0] if len(pieces) == 1 else sorted_rows(combined(pieces))
        waiting = [queue for queue in waiting if queue.rows is not None]
