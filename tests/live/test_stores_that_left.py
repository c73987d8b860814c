"""A new version deletes what stores have left in tasks that do not have them any more; the old one can come back."""

from __future__ import annotations

import pytest

from pystreams.app import App
from tests.live.support import Log, run_to_the_end


@pytest.fixture(autouse=True)
def topics(log: Log) -> None:
    log.create("in", "other", "sums", "counts", partitions=2)


def version(log: Log, order: list[str], *, counts_on_disk: bool = True) -> App:
    """Two sub-topologies, numbered in this order, with a store each."""
    app = log.app("shop")
    for name in order:
        if name == "sums":
            grouped = app.stream("in", key=str, value=int).group_by_key()
            table = grouped.reduce(lambda a, b: a + b, name="sums")
        else:
            grouped = app.stream("other", key=str, value=int).group_by_key()
            table = grouped.count(name="counts", persistent=counts_on_disk)
        table.to_stream().to(name)
    return app


def families(log: Log, stores: tuple[str, ...] = ("sums", "counts")) -> dict[str, set[str]]:
    """By task, the stores whose names RocksDB's own files mention."""
    found: dict[str, set[str]] = {}
    for task in sorted(log.path.glob("state/shop/*_*")):
        manifest = task / "rocksdb" / (task / "rocksdb" / "CURRENT").read_text().strip()
        content = manifest.read_bytes() if manifest.exists() else b""
        found[task.name] = {store for store in stores if f"store-{store}".encode() in content}
    return found


def write(log: Log) -> None:
    for topic in ("in", "other"):
        log.write(topic, [(key, 1, 1_000) for key in "abcdef"])


def test_nothing_is_left_and_nothing_is_lost_when_stores_change_their_tasks(log: Log) -> None:
    orders = ["sums", "counts"], ["counts", "sums"]
    for run, order in enumerate((orders[0], orders[1], orders[1], orders[0], orders[0]), 1):
        write(log)
        run_to_the_end(log, version(log, order))
        assert log.table("sums") == log.table("counts") == dict.fromkeys("abcdef", run)
        # Opening a database writes its list of stores anew.
        run_to_the_end(log, version(log, order))
        assert families(log) == {f"{n}_{p}": {name} for n, name in enumerate(order) for p in (0, 1)}


def test_a_store_that_moves_to_memory_and_back_is_restored(log: Log) -> None:
    for run, on_disk in enumerate((True, False, True), 1):
        write(log)
        run_to_the_end(log, version(log, ["sums", "counts"], counts_on_disk=on_disk))
        assert log.table("counts") == dict.fromkeys("abcdef", run)
