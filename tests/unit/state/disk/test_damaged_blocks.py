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


def damage(database: Path) -> None:
    """Write a few wrong bytes into the middle of its largest file."""
    largest = max(database.glob("*.sst"), key=lambda path: path.stat().st_size)
    with largest.open("r+b") as file:
        file.seek(largest.stat().st_size // 2)
        file.write(os.urandom(100))


def damaged_rows(path: Path) -> RocksDatabase:
    database = RocksDatabase(path, ["rows"], RocksResources())
    database.write([(database.tables["rows"], ROWS)])
    database.close()
    damage(path)
    return RocksDatabase(path, ["rows"], RocksResources())


@pytest.fixture
def damaged(tmp_path: Path) -> RocksDatabase:
    database = damaged_rows(tmp_path / "db")
    yield database
    database.close()


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


@pytest.mark.parametrize("reverse", [False, True])
def test_after_a_scan_over_it_the_database_can_be_closed_and_opened_again(
    tmp_path: Path, reverse: bool
) -> None:
    """Also while the error is kept: whoever handles it deletes the files, and opens them anew."""
    damaged = damaged_rows(tmp_path / "db")
    scan = damaged.tables["rows"].scan(None, None, upper_inclusive=True, reverse=reverse)
    with pytest.raises(StateCorruptedError) as kept:
        list(scan)
    damaged.close()
    RocksDatabase(tmp_path / "db", ["rows"], RocksResources()).close()
    assert kept.value.action == "wipe"


def test_after_damaged_metadata_were_read_the_database_can_be_closed_and_opened_again(tmp_path: Path) -> None:
    database = RocksDatabase(tmp_path / "db", ["rows"], RocksResources())
    database.write([], metadata=ROWS)
    database.close()
    damage(tmp_path / "db")
    reopened = RocksDatabase(tmp_path / "db", ["rows"], RocksResources())
    with pytest.raises(StateCorruptedError) as kept:
        reopened.metadata()
    reopened.close()
    RocksDatabase(tmp_path / "db", ["rows"], RocksResources()).close()
    assert kept.value.action == "wipe"
