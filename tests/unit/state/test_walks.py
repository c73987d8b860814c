"""Who walks through a store from a key on gets what a scan gives, and pays for no more than it looks at."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.overlay import Overlay
from pystreams.state.table import MemoryTable


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("on_disk", [True, False])
def test_a_walk_is_a_scan(on_disk: bool, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    database = RocksDatabase(tmp_path / "db", ["rows"], RocksResources(1 << 20, 1 << 20)) if on_disk else None
    table: Any = MemoryTable() if database is None else database.tables["rows"]
    try:
        overlay = Overlay(table)
        for _ in range(200):
            key = b"%02d" % chance.randrange(40)
            overlay.put(key, None if chance.random() < 0.4 else b"%d" % chance.randrange(9))
            if chance.random() < 0.05:
                if database is None:
                    table.apply(overlay.changes)
                else:
                    database.write([(table, overlay.changes)])
                overlay.clear()
            if chance.random() < 0.3:
                lower = b"%02d" % chance.randrange(40)
                assert list(overlay.walk(lower)) == list(overlay.scan(lower, None))
    finally:
        if database is not None:
            database.close()


class Counting(dict[Any, Any]):
    """A dictionary that counts what is taken out of it."""

    taken = 0

    def __getitem__(self, key: Any) -> Any:
        self.taken += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("committed", [True, False])
def test_who_stops_soon_looks_at_little(committed: bool) -> None:
    table: Any = MemoryTable()
    overlay = Overlay(table)
    for n in range(1_000):
        overlay.put(b"%04d" % n, b"x")
    if committed:
        table.apply(overlay.changes)
        overlay.clear()
        looked_at = table._data = Counting(table._data)
    else:
        looked_at = overlay.changes = Counting(overlay.changes)
    walk = overlay.walk(b"0500")
    assert [next(walk)[0] for _ in range(3)] == [b"0500", b"0501", b"0502"]
    assert looked_at.taken <= 5
