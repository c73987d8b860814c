"""A partition's files are found by statistics: no other file is opened, no other row group is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pystreams.backfill.sources import ParquetSource
from pystreams.backfill.sources.folder import Folder
from pystreams.ids import TopicPartition
from tests.backfill.sources.files_kit import Rows, read, table

ONE, OTHER = TopicPartition("lines", 0), TopicPartition("lines", 1)


def rows(partition: TopicPartition, start: int, end: int) -> Rows:
    return {partition: [(offset, 1000 + offset, b"k", b"v", ()) for offset in range(start, end)]}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened."""
    files: list[str] = []
    open_file = Folder.open_file

    def open_and_tell(folder: Folder, file: str) -> Any:
        files.append(file)
        return open_file(folder, file)

    monkeypatch.setattr(Folder, "open_file", open_and_tell)
    return files


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The row groups whose data are read."""
    read_groups: list[int] = []
    iter_batches = pq.ParquetFile.iter_batches

    def iter_and_tell(parquet: Any, *args: Any, row_groups: list[int], **kwargs: Any) -> Any:
        read_groups.extend(row_groups)
        return iter_batches(parquet, *args, row_groups=row_groups, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_and_tell)
    return read_groups


def test_files_of_others_are_not_opened(tmp_path: Path, opened: list[str]) -> None:
    for partition in (ONE, OTHER):
        for start in (0, 10, 20):
            pq.write_table(
                table(rows(partition, start, start + 10)), tmp_path / f"{partition}-{start}.parquet"
            )
    source = ParquetSource(str(tmp_path))
    source.partitions()
    assert len(opened) == 6
    opened.clear()
    assert len(read(source, OTHER, 5, 20)) == 15
    assert opened == ["lines-1-0.parquet", "lines-1-10.parquet"]


def test_what_is_there_is_known_from_footers(tmp_path: Path, groups: list[int]) -> None:
    pq.write_table(table(rows(ONE, 0, 100)), tmp_path / "one.parquet", row_group_size=10)
    source = ParquetSource(str(tmp_path))
    assert source.ends([ONE]) == {ONE: 100}
    assert groups == []


def test_row_groups_outside_of_the_range_are_not_read(tmp_path: Path, groups: list[int]) -> None:
    pq.write_table(
        table({**rows(ONE, 0, 50), **rows(OTHER, 0, 50)}), tmp_path / "both.parquet", row_group_size=10
    )
    source = ParquetSource(str(tmp_path))
    assert [row[0] for row in read(source, OTHER, 25, 35)] == list(range(25, 35))
    assert groups == [7, 8]
