"""Computes the order of the records of several queues that take turns, for a whole stretch at once.

If heads alternate, a run is one record long, and finding it costs more than processing it. Merging queues by the
timestamps of their heads is the same as sorting by (greatest timestamp since the queue's head, queue).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from typing import NamedTuple

from pystreams.engine.input.decoding import Rows
from pystreams.engine.input.record_queue import RecordQueue, first_above


class Turns(NamedTuple):
    """The next records. ``order`` has for each record the greatest timestamp up to it and the index of its queue in
    ``queues``. ``rows`` and ``ends`` are parallel to ``queues``: only rows before the queue's end are among them."""

    queues: Sequence[RecordQueue]
    rows: Sequence[Rows]
    ends: Sequence[int]
    order: list[tuple[int, int]]


def take_turns(queues: Sequence[RecordQueue], limit: int) -> Turns:
    """The next records, at most ``limit``, up to the point where one of the queues has no more record to compare with.

    Each queue must have a head. ``queues`` are in the order that resolves equal timestamps.
    """
    rows = [queue.rows for queue in queues if queue.rows is not None]
    stretches = [
        each.timestamps[queue.position : queue.run_end(limit)]
        for queue, each in zip(queues, rows, strict=True)
    ]
    last_time, last_place = min((max(times), place) for place, times in enumerate(stretches))
    order: list[tuple[int, int]] = []
    ends = []
    for place, (queue, times) in enumerate(zip(queues, stretches, strict=True)):
        bound = last_time if place <= last_place else last_time - 1
        taken = first_above(times, 0, len(times), bound)
        order += zip(_progress(times[:taken]), repeat(place), strict=False)
        ends.append(queue.position + taken)
    order.sort()
    del order[limit:]
    return Turns(queues, rows, ends, order)


def _progress(times: list[int]) -> Iterable[int]:
    """For each timestamp the greatest one up to it. Sorted timestamps, the usual case, are detected quickly."""
    return times if times == sorted(times) else accumulate(times, max)
