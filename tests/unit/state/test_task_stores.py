"""A task's stores commit together, abort together and are restored from their changelogs."""

from __future__ import annotations

import gc
import threading
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.errors import StateCorruptedError, StateError
from pystreams.ids import TaskId
from pystreams.record import ContextCell, RecordBatch
from pystreams.serde import BYTES
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.disk import rocksdb
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores
from tests.unit.state.state_kit import (
    Task,
    batch_of,
    key_value,
    read_all,
    timestamped,
    timestamped_window,
    window,
)

DISK_OR_MEMORY = pytest.mark.parametrize("on_disk", [True, False])


@DISK_OR_MEMORY
def test_an_abort_forgets_caches_changes_and_stream_time(on_disk: bool, tmp_path: Path) -> None:
    specs = (timestamped("cached", cached=True), key_value("plain"), window("windows"))
    with Task(*specs, directory=tmp_path / "0_0" if on_disk else None) as task:
        task["cached"].put("a", (1, 1))
        task["plain"].put("a", "1")
        task["windows"].put("a", "1", 10)
        task.commit()
        task["cached"].put("a", (2, 2))
        task["cached"].flush_cache()
        task["cached"].put("b", (2, 2))
        task["plain"].put("a", None)
        task["windows"].put("a", "2", 5000)
        assert task["windows"].fetch("a", 10) is None
        task.state.abort()
        assert task.state.uncommitted_bytes == 0
        assert read_all(task["cached"].all()) == [("a", (1, 1))]
        assert task["plain"].get("a") == "1"
        assert task["windows"].fetch("a", 10) == "1"
        task.commit()
        assert task["plain"].get("a") == "1"


def test_committed_state_offsets_and_metadata_are_there_after_a_restart(tmp_path: Path) -> None:
    specs = (timestamped("kv", cached=True), timestamped_window("w"))
    with Task(*specs, directory=tmp_path / "0_0") as task:
        assert task.state.changelog_offset("kv") is None
        task["kv"].put("a", (1, 5))
        task["w"].put("a", (2, 6), 10)
        task.commit(stream_time=77, operator=b"\x00bytes", negative=-1)
        task["kv"].put("a", (9, 9))
        task["kv"].flush_cache()
    with Task(*specs, directory=tmp_path / "0_0") as task:
        assert task["kv"].get("a") == (1, 5)
        assert task["w"].fetch("a", 10) == (2, 6)
        assert task.state.changelog_offset("kv") == 1
        assert task.state.metadata("stream_time") == 77
        assert task.state.metadata("operator") == b"\x00bytes"
        assert task.state.metadata("negative") == -1
        assert task.state.metadata("unknown") is None


def test_what_was_not_committed_is_not_there_after_a_restart(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        task.store.put("a", "1")
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        assert task.store.get("a") is None


def test_stores_in_memory_beside_persistent_ones_start_empty(tmp_path: Path) -> None:
    specs = (key_value("disk"), key_value("memory", persistent=False))
    with Task(*specs, directory=tmp_path / "0_0") as task:
        for name in ("disk", "memory"):
            task[name].put("a", name)
        task.commit()
        assert task["memory"].get("a") == "memory"
    with Task(*specs, directory=tmp_path / "0_0") as task:
        assert task["disk"].get("a") == "disk"
        assert task["memory"].get("a") is None
        assert task.state.changelog_offset("disk") == 1
        assert task.state.changelog_offset("memory") is None


def test_a_task_without_persistent_stores_leaves_the_disk_alone(tmp_path: Path) -> None:
    with Task(key_value(persistent=False), directory=tmp_path / "0_0") as task:
        task.store.put("a", "1")
        task.commit()
    assert not (tmp_path / "0_0").exists()


@DISK_OR_MEMORY
def test_a_restored_store_equals_the_one_that_logged(on_disk: bool, tmp_path: Path) -> None:
    with Task(timestamped(cached=True)) as task:
        for round_ in range(3):
            for number in range(50):
                task.store.put(f"k{number}", None if number % 7 == round_ else (number * round_, round_))
            task.commit()
        with Task(timestamped(cached=True), directory=tmp_path / "0_0" if on_disk else None) as restored:
            records = task.records()
            for first in range(0, len(records), 40):
                restored.state.restore("store", batch_of(records[first : first + 40], first))
                assert restored.state.changelog_offset("store") == min(first + 40, len(records))
            restored.state.restore_checkpoint()
            assert read_all(restored.store.all()) == read_all(task.store.all())
            assert restored.changelog == []


def test_restored_records_and_their_offset_outlive_the_process(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        task.state.restore("store", batch_of([(b"a", b"1", 0), (b"b", b"2", 0), (b"a", None, 0)], 10))
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        assert read_all(task.store.all()) == [("b", "2")]
        assert task.state.changelog_offset("store") == 13


def test_the_offset_moves_past_what_a_compacted_or_transactional_log_leaves_out() -> None:
    with Task(key_value()) as task:
        batch = batch_of([(b"a", b"1", 0)], 5)
        batch.next_offset = 42
        task.state.restore("store", batch)
        assert task.state.changelog_offset("store") == 42


def test_a_commit_writes_slices_of_a_thousand_and_the_offsets_in_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    class CountingDatabase:
        def __init__(self, inner: object) -> None:
            self._inner = inner

        def write(self, batch: object) -> None:
            sizes.append(len(batch))  # type: ignore[arg-type]
            self._inner.write(batch)  # type: ignore[attr-defined]

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    with Task(key_value("x"), key_value("y"), directory=tmp_path / "0_0") as task:
        database = task.state._database
        assert database is not None
        database._db = CountingDatabase(database._db)
        for name in ("x", "y"):
            for number in range(1250):
                task[name].put(f"{number}", "v")
        task.commit()
    assert sizes == [rocksdb.SLICE_ENTRIES, rocksdb.SLICE_ENTRIES, 500 + 2]


def test_uncommitted_bytes_follow_what_is_held() -> None:
    with Task(key_value(value_serde=BYTES)) as task:
        assert task.state.uncommitted_bytes == 0
        task.store.put("a", bytes(1000))
        once = task.state.uncommitted_bytes
        assert 1000 < once < 1500
        task.store.put("a", bytes(1000))
        assert task.state.uncommitted_bytes == once
        task.store.put("a", bytes(5000))
        assert task.state.uncommitted_bytes == once + 4000
        task.store.put("a", None)
        assert task.state.uncommitted_bytes == once - 1000
        task.commit()
        assert task.state.uncommitted_bytes == 0


def test_an_open_iterator_does_not_keep_the_database_locked(tmp_path: Path) -> None:
    specs = (key_value(), window("w"))
    iterators = []
    for _ in range(2):
        with Task(*specs, directory=tmp_path / "0_0") as task:
            for number in range(10):
                task.store.put(str(number), "v")
                task["w"].put("a", "v", number)
            task.commit()
            iterators += [
                task.store.all(),
                task.store.reverse_all(),
                task["w"].fetch("a", 0, 9),
                task["w"].all(),
            ]
            for iterator in iterators[-4:]:
                next(iterator)
    for iterator in iterators:
        with pytest.raises(StateError, match="closed"):
            next(iterator)


def test_a_task_can_be_closed_twice_and_leaves_nothing_behind(tmp_path: Path) -> None:
    cache = ThreadCache(10_000)
    task = Task(key_value(cached=True), directory=tmp_path / "0_0", cache=cache)
    task.store.put("a", "1")
    task.state.close()
    task.state.close()
    assert cache.size_bytes == 0
    del task
    gc.collect()
    Task(key_value(cached=True), directory=tmp_path / "0_0", cache=cache).state.close()


def test_tasks_of_one_thread_share_its_cache() -> None:
    cache = ThreadCache(64)
    spec = timestamped(cached=True)
    with Task(spec, cache=cache) as first, Task(spec, cache=cache, task_id=TaskId(0, 1)) as second:
        first.store.write(b"A", 1, 1)
        second.store.write(b"B", 1, 1)
        assert len(first.store.cache) == 1
        assert len(second.store.cache) == 0
        assert len(second.changelog) == 1


def test_stores_are_filled_by_one_thread_and_get_the_cache_of_another_when_they_are_complete(
    tmp_path: Path,
) -> None:
    state = TaskStores.open(
        tmp_path / "0_0", [key_value(cached=True)], cell=ContextCell(), log_of=lambda _: None
    )
    with closing(state):
        records = RecordBatch("log", 0, [b"a"], [b"1"], [5], [0], None, 1)
        filler = threading.Thread(target=state.restore, args=("store", records))
        filler.start()
        filler.join()
        before = state.stores["store"]
        assert before.cache is None
        cache = ThreadCache(10_000)
        state.attach(cache)
        assert before is not state.stores["store"]
        assert state.stores["store"].get("a") == "1"
        assert cache.size_bytes > 0
    assert cache.size_bytes == 0


def test_a_cache_of_no_size_and_a_store_that_wants_none_leave_the_store_as_it_is() -> None:
    for spec, cache in ((key_value(cached=True), ThreadCache(0)), (key_value(), ThreadCache(10_000))):
        state = TaskStores.open(None, [spec], cell=ContextCell(), log_of=lambda _: None)
        with closing(state):
            before = state.stores["store"]
            state.attach(cache)
            assert state.stores["store"] is before


def test_a_wiped_task_starts_from_nothing(tmp_path: Path) -> None:
    task = Task(key_value(), directory=tmp_path / "0_0")
    task.store.put("a", "1")
    task.commit()
    task.state.wipe()
    assert not (tmp_path / "0_0").exists()
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        assert task.store.get("a") is None
        assert task.state.changelog_offset("store") is None


def test_a_store_that_was_added_is_empty_and_one_that_was_removed_does_no_harm(tmp_path: Path) -> None:
    with Task(key_value("old"), key_value("kept"), directory=tmp_path / "0_0") as task:
        for name in ("old", "kept"):
            task[name].put("a", name)
        task.commit()
    with Task(key_value("kept"), key_value("new"), directory=tmp_path / "0_0") as task:
        assert task["kept"].get("a") == "kept"
        assert task["new"].get("a") is None
        assert task.state.changelog_offset("new") is None


@pytest.mark.parametrize(
    "before, after",
    [
        (key_value(), timestamped()),
        (window(retention_ms=1_000_000), window(retention_ms=2_000_000)),
        (key_value(), window()),
    ],
)
def test_a_store_in_another_layout_is_restored_not_misread(
    before: StoreSpec, after: StoreSpec, tmp_path: Path
) -> None:
    Task(before, directory=tmp_path / "0_0").state.close()
    with pytest.raises(StateCorruptedError, match="another layout"):
        Task(after, directory=tmp_path / "0_0")
    Task(before, directory=tmp_path / "0_0").state.close()


def test_another_layout_of_a_store_without_a_changelog_is_for_people_to_decide(tmp_path: Path) -> None:
    Task(key_value(logged=False), directory=tmp_path / "0_0").state.close()
    with pytest.raises(StateError, match="another layout") as caught:
        Task(timestamped(logged=False), directory=tmp_path / "0_0")
    assert caught.value.action == "fail"
    assert "no changelog" in caught.value.hint


def test_an_unknown_kind_of_store_is_refused() -> None:
    with pytest.raises(StateError, match="mystery is not a kind of store"):
        Task(StoreSpec("s", "mystery", BYTES, BYTES))
