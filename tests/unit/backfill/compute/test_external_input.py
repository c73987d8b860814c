"""What a source gives reaches its task in pieces of any size, also where there is nothing in a batch."""

from __future__ import annotations

import pytest

from pystreams.backfill.compute.external_input import _cut_up
from pystreams.backfill.exchange.rows import record_rows
from pystreams.record import RecordBatch


def batch(size: int):
    numbers = list(range(size))
    return record_rows(RecordBatch("in", 0, [None] * size, [b"x"] * size, numbers, numbers, None, size))


@pytest.mark.parametrize("rows,sizes", [(None, [3, 2]), (2, [2, 1, 2])])
def test_batches_are_cut_up_and_empty_ones_left_out(rows, sizes):
    assert [piece.num_rows for piece in _cut_up([batch(0), batch(3), batch(0), batch(2)], rows)] == sizes
