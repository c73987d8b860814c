"""A new version deletes what stores have left in tasks that do not have them any more; the old one can come back."""

from __future__ import annotations

import pytest
import rocksdict

from pystreams.app import App
from tests.live.support import Log, run_to_the_end, running


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


def with_global_tables(log: Log, *tables: tuple[str, str], persistent: bool = True) -> App:
    """Global tables, each of a topic."""
    app = log.app("shop")
    for topic, store in tables:
        app.global_table(topic, key=str, value=int, name=store, persistent=persistent)
    return app


def global_rows(log: Log, app: App, *stores: str) -> list[dict[str, int]]:
    streams = log.start(app)
    running(streams)
    rows = [{key: item.value for key, item in streams.store(store).all()} for store in stores]
    assert streams.close()
    return rows


def global_families(log: Log) -> set[str]:
    (directory,) = log.path.glob("state/shop/global-*")
    options = rocksdict.Options(raw_mode=True)
    names = rocksdict.Rdict.list_cf(str(directory / "rocksdb"), options)
    return {name.removeprefix("store-") for name in names} - {"default"}


@pytest.mark.parametrize("more", [False, True], ids=["nothing new in the topics", "more in the topics"])
def test_a_global_store_that_left_is_deleted_and_comes_back_whole(log: Log, more: bool) -> None:
    write(log)
    one = dict.fromkeys("abcdef", 1)
    both = ("in", "first"), ("other", "second")
    assert global_rows(log, with_global_tables(log, *both), "first", "second") == [one, one]
    if more:
        log.write("other", [("a", 2, 1_000)])
    assert global_rows(log, with_global_tables(log, both[0]), "first") == [one]
    assert global_families(log) == {"first"}
    now = {**one, "a": 2} if more else one
    assert global_rows(log, with_global_tables(log, *both), "first", "second") == [one, now]


def test_a_global_store_with_another_name_is_filled(log: Log) -> None:
    write(log)
    for name in ("first", "second", "first"):
        assert global_rows(log, with_global_tables(log, ("in", name)), name) == [dict.fromkeys("abcdef", 1)]
        assert global_families(log) == {name}


def test_a_global_store_of_another_topic_has_nothing_of_the_former_one(log: Log) -> None:
    log.write("in", [("a", 1, 1_000), ("b", 1, 1_000)])
    log.write("other", [("b", 2, 1_000)])
    assert global_rows(log, with_global_tables(log, ("in", "rows")), "rows") == [{"a": 1, "b": 1}]
    assert global_rows(log, with_global_tables(log, ("other", "rows")), "rows") == [{"b": 2}]


@pytest.mark.parametrize("kept", [(), (("in", "first"),)], ids=["no store", "in memory"])
def test_without_global_stores_on_the_disk_nothing_of_them_stays_there(
    log: Log, kept: tuple[tuple[str, str], ...]
) -> None:
    write(log)
    global_rows(log, with_global_tables(log, ("in", "first")), "first")
    assert list(log.path.glob("state/shop/global-*"))
    app = with_global_tables(log, *kept, persistent=False)
    app.stream("other", key=str, value=int).to("sums")
    run_to_the_end(log, app)
    assert not list(log.path.glob("state/shop/global-*"))
    assert log.table("sums") == dict.fromkeys("abcdef", 1)
