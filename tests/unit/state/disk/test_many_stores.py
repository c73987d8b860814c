"""A task may have hundreds of stores: what they cost grows no faster than their number."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pystreams.state.disk import rocksdb
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import RocksResources

STORES = [f"store-{number}" for number in range(300)]


def test_nearly_empty_stores_take_little_of_the_budget_for_write_buffers(tmp_path: Path) -> None:
    resources = RocksResources()
    with closing(RocksDatabase(tmp_path / "db", STORES, resources)) as database:
        for commit in range(3):
            database.write([(table, {b"%d" % commit: b"value"}) for table in database.tables.values()])
        assert resources.write_buffers.get_usage() < 16 * 1024 * len(STORES)
        assert not list(tmp_path.glob("db/*.sst"))


def test_stores_are_created_at_once(tmp_path: Path) -> None:
    """RocksDB writes the settings of all stores to a new file whenever one is created alone."""
    with closing(RocksDatabase(tmp_path / "db", STORES, RocksResources())) as database:
        assert database.created == set(STORES)
        files = [int(file.name.partition("-")[2]) for file in tmp_path.glob("db/OPTIONS-*")]
        assert max(files) < 20
    with closing(RocksDatabase(tmp_path / "db", [*STORES, "new"], RocksResources())) as database:
        assert database.created == {"new"}


def test_closing_writes_no_file_for_each_store(tmp_path: Path) -> None:
    for run in range(3):
        database = RocksDatabase(tmp_path / "db", STORES, RocksResources())
        files = set(tmp_path.glob("db/*.sst"))
        database.write([(table, {b"%d" % run: b"value"}) for table in database.tables.values()])
        database.close(flush=False)
        assert set(tmp_path.glob("db/*.sst")) == files
    with closing(RocksDatabase(tmp_path / "db", STORES, RocksResources())) as database:
        for table in database.tables.values():
            assert [table.get(b"%d" % run) for run in range(3)] == [b"value"] * 3


def test_closing_leaves_no_long_log_to_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocksdb, "_LOG_BYTES_MAX", 1_000)
    database = RocksDatabase(tmp_path / "db", ["store"], RocksResources())
    database.write([(database.tables["store"], {b"key": b"v" * 1_000})])
    database.close(flush=False)
    assert list(tmp_path.glob("db/*.sst"))


def test_closing_succeeds_while_rocksdb_deletes_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = RocksDatabase(tmp_path / "db", ["store"], RocksResources())
    database.write([(database.tables["store"], {b"key": b"value"})])
    monkeypatch.setattr(Path, "glob", lambda path, _: [path / "deleted.log"])
    database.close(flush=False)
    with closing(RocksDatabase(tmp_path / "db", ["store"], RocksResources())) as database:
        assert database.tables["store"].get(b"key") == b"value"
