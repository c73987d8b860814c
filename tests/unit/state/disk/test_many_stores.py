"""A task may have hundreds of stores: what they cost grows no faster than their number."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

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
