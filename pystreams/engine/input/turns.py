"""Records of several queues that take turns: their order, worked out for a whole stretch.

Where heads alternate, a run is one record long, and finding it costs more than the record. Merging queues by the
timestamps of their heads gives the order of (greatest timestamp from the queue's head on, queue): it can be sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from typing import NamedTuple

from pystreams.engine.input.decoding import Rows
from pystreams.engine.input.record_queue import RecordQueue, first_above


class Turns(NamedTuple):
    """The next records: for each one its queue's place in ``queues``, and how far the records have come in time by
    then. ``rows`` and ``ends`` belong to the queues: no record of a queue's rows from its end on is among them."""

    queues: Sequence[RecordQueue]
    rows: Sequence[Rows]
    ends: Sequence[int]
    order: list[tuple[int, int]]


def take_turns(queues: Sequence[RecordQueue], limit: int) -> Turns:
    """At most ``limit`` records that are next, up to where one of the queues has no record that could be compared.

    Each queue has a head; ``queues`` stand in the order in which equal timestamps go.
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
    """The greatest time so far, at each time. Times that ascend are told from others in no time."""
    return times if times == sorted(times) else accumulate(times, max)
