"""Batches of records survive the way through Arrow; the stretches of a column are found."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, record_batch, record_rows, runs_of
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch

HEADERS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple)
RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=4), st.none() | st.binary(max_size=4), st.integers(-1, 9), HEADERS
    ),
    min_size=1,
    max_size=8,
)


@given(records=RECORDS, gap=st.integers(1, 3))
def test_a_batch_comes_back_as_it_was(records, gap):
    keys, values, timestamps, headers = (list(column) for column in zip(*records, strict=True))
    offsets = list(range(7, 7 + gap * len(records), gap))
    batch = RecordBatch("t", 3, keys, values, timestamps, offsets, headers, offsets[-1] + 1)
    rows = record_rows(batch)
    assert rows.schema == RECORD_SCHEMA
    back = record_batch(rows, TopicPartition("t", 3), offsets)
    if not any(headers):
        batch.headers = None
    assert back == batch


@given(values=st.lists(st.sampled_from("ab"), max_size=12))
def test_runs_are_the_stretches_of_equal_values(values):
    runs = runs_of(pa.array(values, pa.string()))
    assert [value for value, start, end in runs for _ in range(start, end)] == values
    assert all(one[0] != other[0] for one, other in itertools.pairwise(runs))
