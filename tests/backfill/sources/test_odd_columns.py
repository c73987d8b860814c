"""Columns of other tools are read for what they say, or refused with their file; no record is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pystreams.backfill.sources import ParquetSource
from pystreams.errors import ConfigError
from pystreams.ids import TopicPartition
from tests.backfill.sources.files_kit import read

PARTITION = TopicPartition("lines", 0)
PAIRS = [("value", pa.binary()), ("key", pa.string())]
TWO = (("h", b"1"), ("h", b"2"))


def source(folder: Path, columns: dict[str, Any]) -> ParquetSource:
    """One record at offset 0; a column that is None is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = {"topic": ["lines"], "partition": [0], "offset": [0], "timestamp": [5], "value": [b"v"]}
    there = {name: column for name, column in {**plain, **columns}.items() if column is not None}
    pq.write_table(pa.table(there), folder / "a.parquet")
    return ParquetSource(str(folder))


@pytest.mark.parametrize(
    "headers",
    [
        pa.array([[{"value": b"1", "key": "h"}, {"value": b"2", "key": "h"}]], pa.list_(pa.struct(PAIRS))),
        pa.array([[("h", b"1"), ("h", b"2")]], pa.map_(pa.string(), pa.binary())),
        pa.array(['[["h", "1"], ["h", "2"]]'], pa.string()),
    ],
    ids=["value first", "map", "JSON"],
)
def test_headers_in_any_shape(headers: pa.Array, tmp_path: Path) -> None:
    assert read(source(tmp_path, {"headers": headers}), PARTITION, 0, 1) == [(0, 5, None, b"v", TWO)]


@pytest.mark.parametrize(
    "name, column",
    [
        ("headers", pa.array([5])),
        ("headers", pa.array([[{"a": "x", "b": b"y", "c": 1}]])),
        ("value", pa.array([5])),
        ("partition", pa.array(["one"])),
        ("offset", pa.array([0.5])),
        ("timestamp", pa.array([1500], pa.date32())),
    ],
)
def test_a_column_of_another_type_is_named(name: str, column: pa.Array, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"column {name} has type") as raised:
        read(source(tmp_path, {name: column}), PARTITION, 0, 1)
    assert "a.parquet" in raised.value.where


def test_a_folder_that_names_no_partition_is_reported(tmp_path: Path) -> None:
    files = source(tmp_path / "partition=one", {"partition": None})
    with pytest.raises(ConfigError, match="no column partition"):
        files.partitions()
    with pytest.raises(ConfigError, match="column partition has type string") as raised:
        ParquetSource(str(tmp_path)).partitions()
    assert "partition=one/a.parquet" in raised.value.where


def test_records_of_no_partition_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="records of partition -1") as raised:
        source(tmp_path, {"partition": [-1]}).partitions()
    assert "a.parquet" in raised.value.where


def test_a_password_in_an_address_is_not_shown() -> None:
    for told in (
        ParquetSource("s3://user:hush-hush@bucket/archive?secret=hush-hush").description,
        repr(ParquetSource("s3://user:hush-hush@bucket/archive")),
        repr(ParquetSource("s3://user:hush-hush@bucket/archive").folder),
    ):
        assert "hush-hush" not in told
    assert ParquetSource("s3://user:x@bucket/a").description == "Parquet archive s3://user:***@bucket/a"
    with pytest.raises(ConfigError, match="not on a file system") as raised:
        ParquetSource("nowhere://user:hush-hush@bucket/archive").partitions()
    assert "hush-hush" not in str(raised.value)
