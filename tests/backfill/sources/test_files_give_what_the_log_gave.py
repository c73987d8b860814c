"""Whatever format an archive has: it gives the records that went into it, any range of them, and the same cuts."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.ids import TopicPartition
from tests.backfill.sources.files_kit import FORMATS, Row, Rows, in_memory, read
from tests.examples import examples

PARTITIONS = [TopicPartition("lines", 0), TopicPartition("lines", 1), TopicPartition("w.x-y_z", 0)]

data = st.one_of(st.none(), st.just(b""), st.binary(max_size=6))
names = st.text("abc é", max_size=3)
headers = st.lists(st.tuples(names, st.one_of(st.none(), names.map(str.encode))), max_size=2).map(tuple)


@st.composite
def rows_of_partition(draw: st.DrawFn) -> list[Row]:
    """At least one record; offsets with holes, times that go back."""
    offset, rows = draw(st.integers(0, 5)), []
    for _ in range(draw(st.integers(1, 8))):
        rows.append((offset, draw(st.integers(0, 50)), draw(data), draw(data), draw(headers)))
        offset += draw(st.integers(1, 3))
    return rows


@pytest.mark.parametrize("format", FORMATS)
@examples(10)
@given(st.fixed_dictionaries({p: rows_of_partition() for p in PARTITIONS}), st.data())
def test_any_range_and_any_cut(format: str, rows: Rows, more: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        memory, files = in_memory(rows), FORMATS[format](rows, Path(folder) / "archive")
        assert dict(files.partitions()) == dict(memory.partitions())
        assert files.beginnings(PARTITIONS) == memory.beginnings(PARTITIONS)
        assert files.ends(PARTITIONS) == memory.ends(PARTITIONS)
        for time_ms in (-1, 0, more.draw(st.integers(0, 51)), 51):
            assert files.offsets_at(PARTITIONS, time_ms) == memory.offsets_at(PARTITIONS, time_ms)
        # Workers get it pickled.
        files = pickle.loads(pickle.dumps(files))
        for partition in PARTITIONS:
            first, end = memory.beginnings([partition])[partition], memory.ends([partition])[partition]
            start = more.draw(st.integers(first, end))
            stop = more.draw(st.integers(start, end))
            for span in ((first, end), (start, stop)):
                assert read(files, partition, *span) == [
                    r for r in rows[partition] if span[0] <= r[0] < span[1]
                ]
