"""What expires on disk goes as ranges of keys."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.windowed import Windowed
from tests.unit.state.state_kit import Task, session, timestamped_window

VERSIONED = Stores.versioned_store("store", str, str, history=1_000)


@pytest.mark.parametrize("spec", [timestamped_window(), session(), VERSIONED], ids=lambda spec: spec.kind)
def test_what_expires_on_disk_is_deleted_in_ranges_that_do_not_overlap(
    spec: StoreSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Overlapping ones cost RocksDB the square of their number, at the next read."""
    deleted: list[tuple[bytes, bytes]] = []
    write = RocksDatabase.write

    def noted(self: RocksDatabase, changes: Any, expired: Any = (), metadata: Any = None) -> None:
        ranges = list(expired)
        deleted.extend((lower, upper) for _, lower, upper in ranges)
        write(self, changes, ranges, metadata)

    monkeypatch.setattr(RocksDatabase, "write", noted)
    with Task(spec, directory=tmp_path / "0_0") as task:
        for time in range(0, 2_000_000, 20_000):
            if spec.kind == "session":
                task.store.put(Windowed("a", time, time), "x")
            else:
                put = task.store.put
                put("a", "x", time) if spec.kind == "versioned" else put("a", (1, time), time)
            task.commit()
    assert len(deleted) > 20
    assert all(lower < upper for lower, upper in deleted)
    assert all(before <= lower for (_, before), (lower, _) in pairwise(deleted))
