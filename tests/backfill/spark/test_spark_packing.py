"""Rows come back from their packed form as they were, and a packed row is never large."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pystreams.backfill.exchange.rows import (
    EXCHANGE_SCHEMA,
    Kind,
    counted,
    exchange_rows,
    headers_column,
    repeated,
)
from pystreams.backfill.spark.packing import PACKED_BYTES, packed, unpacked

BYTES = st.none() | st.binary(max_size=4)
HEADERS = st.lists(st.tuples(st.text(max_size=3), BYTES), max_size=2).map(tuple)
RECORDS = st.lists(st.tuples(st.integers(-1, 9), BYTES, BYTES, HEADERS), min_size=1, max_size=8)


def rows(kind: Kind, records: list[Any], sequence: int) -> Any:
    times, keys, values, headers = (list(column) for column in zip(*records, strict=True))
    size = len(records)
    return exchange_rows(
        kind,
        repeated("t", pa.string(), size),
        repeated(3, pa.int32(), size),
        pa.array(times, pa.int64()),
        7,
        counted(sequence, size),
        (
            pa.array(times, pa.int64()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            headers_column(headers, size),
        ),
    )


@given(kind=st.sampled_from(Kind), records=RECORDS, sequence=st.integers(0, 1 << 40), start=st.integers(0, 7))
def test_rows_come_back_as_they_were(kind: Kind, records: list[Any], sequence: int, start: int) -> None:
    batch = rows(kind, records, sequence).slice(min(start, len(records) - 1))
    [one] = unpacked(packed([batch]))
    assert (one.kind, one.topic, one.partition, one.upstream) == (kind, "t", 3, 7)
    assert one.place == (batch.column("queue_time")[0].as_py(), ("t", 7))
    assert one.rows().equals(batch)


def test_many_rows_become_several_packed_rows() -> None:
    batch = rows(Kind.RECORD, [(i, b"k", bytes(1_000), ()) for i in range(5_000)], 11)
    batches = list(packed([batch]))
    assert len(batches) > 1
    assert all(one.nbytes <= 2 * PACKED_BYTES for one in batches)
    back = pa.Table.from_batches([one.rows() for one in unpacked(batches)], EXCHANGE_SCHEMA)
    assert back.equals(pa.Table.from_batches([batch]))
