"""Stores into which much was restored hold the same as others, during that as well as after it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pystreams.errors import StateCorruptedError
from pystreams.state.disk.directory import ROCKSDB_DIRECTORY
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.windowed import Windowed
from tests.live.support import eventually
from tests.unit.state.state_kit import Task, batch_of, key_value, session, timestamped, timestamped_window

RECORDS = 2_000

#: How a store of a kind is made, how it is written to, and whether it can be filled.
KINDS: dict[str, tuple[StoreSpec, Callable[[Any, str, int], object], bool]] = {
    "key_value": (key_value(), lambda store, key, n: store.put(key, str(n) if n % 7 else None), True),
    "timestamped": (timestamped(), lambda store, key, n: store.put(key, (n, n)), True),
    "window": (timestamped_window(), lambda store, key, n: store.put(key, (n, n), n), True),
    "session": (session(), lambda store, key, n: store.put(Windowed(key, n, n + 10), str(n)), True),
    "versioned": (
        Stores.versioned_store("store", str, str, history=10_000),
        lambda store, key, n: store.put(key, str(n), n),
        False,
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def history(kind: str) -> tuple[list[Any], list[Any]]:
    """The records of a changelog with keys in no order, and what a store holds that has logged them."""
    spec, write, _ = KINDS[kind]
    random = Random(3)
    with Task(spec) as task:
        for number in range(RECORDS):
            task.at(number)
            write(task.store, f"key {random.randrange(RECORDS // 3)}", number)
        task.state.flush_caches()
        return task.records(), list(task.store.logged())


def filled(directory: Path, kind: str, records: list[Any]) -> Task:
    """A task into which a history was restored, in batches, that is not complete yet."""
    task = Task(KINDS[kind][0], directory=directory)
    task.state.fill(["store"])
    for start in range(0, len(records), 300):
        task.state.restore("store", batch_of(records[start : start + 300], start))
    return task


def complete(task: Task) -> None:
    eventually(task.state.settled, "what fills the store is settled")
    task.state.complete()


@every_kind
def test_a_filled_store_holds_what_another_holds(tmp_path: Path, kind: str) -> None:
    spec, write, _ = KINDS[kind]
    records, held = history(kind)
    with filled(tmp_path, kind, records) as task:
        assert list(task.store.logged()) == held
        complete(task)
        assert list(task.store.logged()) == held
        write(task.store, "key 1", RECORDS)
        task.commit()
        held = list(task.store.logged())
    with Task(spec, directory=tmp_path) as task:
        assert list(task.store.logged()) == held


@every_kind
def test_what_was_filled_when_the_process_died_is_there(tmp_path: Path, kind: str) -> None:
    records, held = history(kind)
    with filled(tmp_path / "0_0", kind, records):
        # A copy of the files is what a kill leaves.
        shutil.copytree(tmp_path / "0_0", tmp_path / "left")
    for directory in ("0_0", "left"):
        with Task(KINDS[kind][0], directory=tmp_path / directory) as task:
            assert list(task.store.logged()) == held
            assert task.state.changelog_offset("store") == len(records)


@every_kind
def test_only_stores_that_read_nothing_while_they_are_restored_are_filled(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[list[str]] = []
    reopen = RocksDatabase.reopen

    def noted(database: RocksDatabase, unsorted: Collection[str] = ()) -> None:
        opened.append(list(unsorted))
        reopen(database, unsorted)

    monkeypatch.setattr(RocksDatabase, "reopen", noted)
    with filled(tmp_path, kind, history(kind)[0]) as task:
        complete(task)
    assert opened == ([["store"], []] if KINDS[kind][2] else [])


def test_a_database_that_cannot_be_opened_again_is_closed(tmp_path: Path) -> None:
    with filled(tmp_path, "timestamped", history("timestamped")[0]) as task:
        (tmp_path / ROCKSDB_DIRECTORY / "CURRENT").write_text("nothing\n")
        with pytest.raises(StateCorruptedError, match="cannot open a task's stores"):
            complete(task)
    # Its lock is free.
    shutil.rmtree(tmp_path)
    with Task(key_value(), directory=tmp_path) as task:
        assert list(task.store.logged()) == []
