"""A boundary, and a table in Python, are answered with what to write where they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pystreams.backfill import CsvSource, DataFrameSource, ParquetSource, plan_backfill
from pystreams.backfill.sources import SparkTable
from pystreams.errors import ConfigError
from tests.backfill.kit import memory
from tests.backfill.programs import word_count

TABLE = SparkTable("parquet", "orders")


def refused(sources: Any, **given: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        plan_backfill(word_count(), sources=sources, **given)
    return str(raised.value)


def test_a_boundary_that_is_yet_to_come_is_refused() -> None:
    told = refused(memory({"lines": [[]]}), boundary="2999-01-01")
    assert "the boundary 2999-01-01T00:00:00Z is in the future" in told


def test_what_is_no_time_is_refused() -> None:
    assert "boundary 1764115200 is ambiguous" in refused(memory({"lines": [[]]}), boundary=1764115200)
    assert "boundary 'then' is not a time" in refused(memory({"lines": [[]]}), boundary="then")


@pytest.mark.parametrize("named", ["lines", "*"])
def test_a_table_that_is_read_as_an_archive_is_told(named: str) -> None:
    told = refused({named: ParquetSource("orders.parquet")}, boundary="2024-03-01")
    topic = "TOPIC" if named == "*" else named
    assert "is read as an archive, because no timestamp=COLUMN was named" in told
    assert f"--source '{topic}=KIND:PLACE?key=COLUMN&timestamp=COLUMN'" in told
    assert "DataFrameSource(" in told


def test_a_single_archive_is_told_too() -> None:
    assert "read as an archive" in refused(CsvSource("orders"), boundary="2024-03-01")


def test_a_table_with_offsets_needs_none() -> None:
    exact = DataFrameSource(TABLE, timestamp="at", partition="p", offset="o")
    assert "a table with offsets needs no boundary" in refused({"lines": exact}, boundary="2024-03-01")


def test_a_table_without_its_columns_is_told(tmp_path: Path) -> None:
    pa.parquet = pytest.importorskip("pyarrow.parquet")
    pa.parquet.write_table(pa.table({"customer": ["ann"], "at": [1]}), tmp_path / "orders.parquet")
    told = refused(ParquetSource(str(tmp_path / "orders.parquet")))
    assert "no column topic" in told
    assert "read as an archive" in told
    assert "?key=COLUMN&timestamp=COLUMN (in Python: DataFrameSource)" in told


def test_a_table_needs_the_name_of_its_topic() -> None:
    told = refused(DataFrameSource(TABLE, timestamp="at"))
    assert "name the topic: sources={'orders': DataFrameSource(...)}" in told


def test_what_is_neither_a_dataframe_nor_a_table_is_told() -> None:
    with pytest.raises(ConfigError) as raised:
        DataFrameSource([{"at": 1}], timestamp="at")
    assert "it was given a list" in str(raised.value)
    assert "make one of it: pandas.DataFrame(rows)" in str(raised.value)
    with pytest.raises(ConfigError, match=r"SparkTable\('parquet', '/lake/orders'\)"):
        DataFrameSource("/lake/orders", timestamp="at")
