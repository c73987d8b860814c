"""A block that cannot be read is an error wherever it is met: a scan must not end at it as if that were the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pystreams.errors import StateCorruptedError
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.overlay import Overlay

ROWS = {f"key-{i:05}".encode(): b"x" * 200 for i in range(2_000)}


@pytest.fixture
def damaged(tmp_path: Path) -> RocksDatabase:
    """A database whose largest file has a few wrong bytes in its middle."""
    database = RocksDatabase(tmp_path / "db", ["rows"], RocksResources())
    database.write([(database.tables["rows"], ROWS)])
    database.close()
    largest = max((tmp_path / "db").glob("*.sst"), key=lambda path: path.stat().st_size)
    with largest.open("r+b") as file:
        file.seek(largest.stat().st_size // 2)
        file.write(os.urandom(100))
    reopened = RocksDatabase(tmp_path / "db", ["rows"], RocksResources())
    yield reopened
    reopened.close()


def test_reading_its_keys_raises_and_other_keys_are_there(damaged: RocksDatabase) -> None:
    rows = Overlay(damaged.tables["rows"])
    unreadable = 0
    for key, value in ROWS.items():
        try:
            assert rows.get(key) == value
        except StateCorruptedError:
            unreadable += 1
    assert 0 < unreadable < 40, "one block's rows"


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_over_it_raises_instead_of_ending(damaged: RocksDatabase, reverse: bool) -> None:
    scan = damaged.tables["rows"].scan(None, None, upper_inclusive=True, reverse=reverse)
    with pytest.raises(StateCorruptedError, match="damaged"):
        list(scan)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_beside_it_is_complete(damaged: RocksDatabase, reverse: bool) -> None:
    lower, upper = (b"key-01900", None) if not reverse else (None, b"key-00099")
    scan = damaged.tables["rows"].scan(lower, upper, upper_inclusive=True, reverse=reverse)
    assert len(list(scan)) == 100
