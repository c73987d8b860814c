"""Sorting by (running maximum, queue, place) is merging by head timestamp, however the rows come in batches."""

from __future__ import annotations

import heapq
from itertools import accumulate
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pystreams.backfill.exchange import order
from pystreams.backfill.exchange.order import in_order, merged, sorted_rows
from pystreams.backfill.exchange.rows import Kind, combined, exchange_rows, headers_column

# Few different times, so that ties are frequent.
QUEUES = st.lists(st.lists(st.integers(0, 6), max_size=12), min_size=1, max_size=5)


def rows(topic: str, upstream: int, times: list[int], start: int = 0, before: int = -1):
    size = len(times)
    running = list(accumulate(times, max, initial=before))[1:]
    return exchange_rows(
        Kind.RECORD,
        pa.array([topic] * size, pa.string()),
        pa.array([0] * size, pa.int32()),
        pa.array(running, pa.int64()),
        upstream,
        pa.array(range(start, start + size), pa.int64()),
        (
            pa.array(times, pa.int64()),
            pa.nulls(size, pa.binary()),
            pa.nulls(size, pa.binary()),
            headers_column(None, size),
        ),
    )


def by_heads(queues: list[list[int]]) -> list[tuple[int, int]]:
    """(queue, position): always the queue whose head has the least time, the first of those that tie."""
    heap = [(times[0], queue, 0) for queue, times in enumerate(queues) if times]
    heapq.heapify(heap)
    found = []
    while heap:
        _, queue, position = heapq.heappop(heap)
        found.append((queue, position))
        if position + 1 < len(queues[queue]):
            heapq.heappush(heap, (queues[queue][position + 1], queue, position + 1))
    return found


def order_of(batch) -> list[tuple[int, int]]:
    """(queue, position) of rows whose topic and upstream are those of ``name``."""
    queues = (
        int(topic) * 2 + upstream
        for topic, upstream in zip(*(batch.column(n).to_pylist() for n in ("topic", "upstream")), strict=True)
    )
    return list(zip(queues, batch.column("sequence").to_pylist(), strict=True))


def name(queue: int) -> tuple[str, int]:
    """Two upstream tasks for each topic."""
    return str(queue // 2), queue % 2


@given(queues=QUEUES)
def test_the_sort_is_the_merge_by_heads(queues):
    everything = combined([rows(*name(queue), times) for queue, times in enumerate(queues)])
    assert order_of(sorted_rows(everything)) == by_heads(queues)


@given(queues=QUEUES, data=st.data())
def test_the_merge_of_batches_is_the_merge_by_heads(queues, data):
    split = []
    for queue, times in enumerate(queues):
        whole, start = rows(*name(queue), times), 0
        pieces = []
        while start < len(times):
            size = data.draw(st.integers(0, 4))
            pieces.append(whole.slice(start, size))
            start += size
        split.append((name(queue), pieces))
    assert [place for batch in merged(split) for place in order_of(batch)] == by_heads(queues)


@given(queues=QUEUES, external=st.integers(0, 4), data=st.data())
def test_queues_that_are_merged_already_merge_with_others(queues, external, data):
    whole = [(name(queue), rows(*name(queue), times)) for queue, times in enumerate(queues)]
    inner = [batch for id, batch in whole if id != name(external)]
    ordered = sorted_rows(combined(inner)) if inner else rows("0", 0, [])
    cut = data.draw(st.integers(0, ordered.num_rows))
    streams = [(None, [ordered.slice(0, cut), ordered.slice(cut)])]
    streams += [(id, [batch]) for id, batch in whole if id == name(external)]
    assert [place for batch in merged(streams) for place in order_of(batch)] == by_heads(queues)


@given(queues=QUEUES, at_once=st.integers(0, 6), data=st.data())
def test_pieces_sorted_by_their_first_rows_come_out_in_order(queues, at_once, data):
    pieces = []
    for queue, times in enumerate(queues):
        whole, start = rows(*name(queue), times), 0
        while start < len(times):
            size = data.draw(st.integers(1, 4))
            piece = whole.slice(start, size)
            pieces.append(((piece.column("queue_time")[0].as_py(), name(queue)), start, piece))
            start += size
    pieces.sort(key=lambda piece: piece[:2])
    with patch.object(order, "_MERGED_ROWS", at_once):
        batches = list(order.in_order((place, piece) for place, _, piece in pieces))
    assert [place for batch in batches for place in order_of(batch)] == by_heads(queues)


def test_a_queue_alone_is_handed_on_as_it_comes():
    batches = [rows("0", 0, [5, 1]), rows("0", 0, [0], start=2, before=5)]
    assert list(merged([(("0", 0), batches)])) == batches


def test_large_rows_do_not_wait_for_many_others():
    """Two queues that overlap, in pieces of a row of 1 MB each."""
    fed = handed_on = 0
    most = 0

    def pieces():
        nonlocal fed
        for number in range(60):
            queue = name(number % 2)
            piece = rows(*queue, [number // 2], start=number // 2)
            at = piece.schema.get_field_index("value")
            piece = piece.set_column(at, piece.schema.field(at), pa.array([bytes(1_000_000)], pa.binary()))
            fed += 1
            yield (number // 2, queue), piece

    for batch in in_order(pieces()):
        most = max(most, fed - handed_on)
        handed_on += batch.num_rows
    assert handed_on == 60
    assert most <= 8
