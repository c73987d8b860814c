"""Without offsets an archive is read as it stands, if that is asked for; it says that it is approximate."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pystreams.backfill.sources import CsvSource, ParquetSource
from pystreams.errors import ConfigError
from pystreams.ids import TopicPartition
from tests.backfill.sources.files_kit import read

ONE, OTHER = TopicPartition("lines", 0), TopicPartition("lines", 1)


def write(path: Path, partitions: list[int], values: list[str]) -> None:
    """Timestamps are 10, 11, ...; keys there are none, values are text."""
    path.parent.mkdir(exist_ok=True)
    times = list(range(10, 10 + len(values)))
    pq.write_table(
        pa.table({"partition": partitions, "timestamp": times, "value": values}), path, row_group_size=2
    )


def test_records_are_numbered_as_they_stand(tmp_path: Path) -> None:
    write(tmp_path / "topic=lines" / "b.parquet", [0, 1, 0, 0], ["c", "x", "d", "e"])
    write(tmp_path / "topic=lines" / "a.parquet", [0, 0, 1], ["a", "b", "w"])
    with pytest.raises(ConfigError, match="no column offset"):
        ParquetSource(str(tmp_path)).partitions()
    source = ParquetSource(str(tmp_path), approximate=True)
    assert source.approximate
    assert source.ends([ONE, OTHER]) == {ONE: 5, OTHER: 2}
    assert [(row[0], row[3]) for row in read(source, ONE, 1, 4)] == [(1, b"b"), (2, b"c"), (3, b"d")]
    assert [(row[0], row[3]) for row in read(source, OTHER, 0, 2)] == [(0, b"w"), (1, b"x")]
    # In b.parquet the record of time 12 is the second one of its partition, in a.parquet there is none in partition 0.
    assert source.offsets_at([ONE], 12) == {ONE: 3}


def test_offsets_that_are_there_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("offset,timestamp,value\n7,10,a\n,11,b\n7,12,c\n")
    source = CsvSource(str(tmp_path), topic="lines", approximate=True)
    assert dict(source.partitions()) == {"lines": 1}
    assert [row[0] for row in read(source, ONE, 0, 3)] == [0, 1, 2]


def test_a_topic_must_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("offset,timestamp,value\n7,10,a\n")
    with pytest.raises(ConfigError, match="no column topic"):
        CsvSource(str(tmp_path), approximate=True).partitions()
