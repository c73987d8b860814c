"""Window stores: fetches, order, retention, duplicates, cache, changelog."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.serde import BYTES
from pystreams.windowed import Windowed
from tests.unit.state.state_kit import VARIANTS, Task, batch_of, read_all, timestamped_window, window

MINUTE = 60_000
DAY = 86_400_000


def open_task(settings: dict[str, bool], tmp_path: Path, **more: object) -> Task:
    settings = dict(settings)
    directory = tmp_path / "0_0" if settings.pop("on_disk", False) else None
    return Task(window(**settings, **more), directory=directory)


@VARIANTS
def test_windows_are_set_read_and_deleted(settings: dict[str, bool], tmp_path: Path) -> None:
    with open_task(settings, tmp_path) as task:
        store = task.store
        store.put("a", "1", 10)
        store.put("a", "2", 20)
        store.put("b", "3", 10)
        assert store.fetch("a", 10) == "1"
        assert store.fetch("a", 11) is None
        store.put("a", None, 10)
        assert store.fetch("a", 10) is None
        task.commit()
        assert store.fetch("a", 20) == "2"
        assert read_all(store.all()) == [(Windowed("b", 10, 20), "3"), (Windowed("a", 20, 30), "2")] or (
            store.persistent
            and read_all(store.all()) == [(Windowed("a", 20, 30), "2"), (Windowed("b", 10, 20), "3")]
        )


@VARIANTS
def test_a_fetch_of_a_span_merges_all_layers_in_time_order(settings: dict[str, bool], tmp_path: Path) -> None:
    with open_task(settings, tmp_path, retention_ms=DAY) as task:
        store = task.store
        # Keys that are prefixes of each other, windows in several segments.
        for key in ("a", "aa", "ab"):
            for start in (0, 5, 13 * 3_600_000, 20 * 3_600_000):
                store.put(key, f"{key}{start}", start)
        task.commit()
        store.put("a", "new", 5)
        store.put("a", "late", 7)
        store.put("a", None, 13 * 3_600_000)
        found = [(0, "a0"), (5, "new"), (7, "late"), (20 * 3_600_000, f"a{20 * 3_600_000}")]
        assert read_all(store.fetch("a", 0, DAY)) == found
        assert read_all(store.fetch("a", 5, 7)) == found[1:3]
        assert read_all(store.fetch("a", 8, 100)) == []
        assert read_all(store.fetch("a", 7, 5)) == []
        assert read_all(store.fetch("nobody", 0, DAY)) == []
        store.flush_cache()
        assert read_all(store.backward_fetch("a", 0, DAY)) == found[::-1]
        task.commit()
        assert read_all(store.fetch("a", 0, DAY)) == found
        assert read_all(store.backward_fetch("a", 5, 7)) == found[2:0:-1]


@VARIANTS
def test_a_range_of_keys_is_ordered_as_in_kafka_streams(settings: dict[str, bool], tmp_path: Path) -> None:
    with open_task(settings, tmp_path, retention_ms=2 * MINUTE) as task:
        store = task.store
        entries = [("b", 1), ("a", 2), ("a", MINUTE), ("b", MINUTE + 1), ("c", 2)]
        for key, start in entries[:3]:
            store.put(key, "v", start)
        task.commit()
        for key, start in entries[3:]:
            store.put(key, "v", start)
        if store.persistent:  # segments of a minute; in each by key, then time
            order = [("a", 2), ("b", 1), ("c", 2), ("a", MINUTE), ("b", MINUTE + 1)]
        else:  # by time, then key
            order = [("b", 1), ("a", 2), ("c", 2), ("a", MINUTE), ("b", MINUTE + 1)]

        def keys(iterator: object) -> list[tuple[str, int]]:
            return [(windowed.key, windowed.start) for windowed, _ in read_all(iterator)]

        assert keys(store.all()) == order
        assert keys(store.backward_all()) == order[::-1]
        assert keys(store.fetch_all(2, MINUTE)) == [entry for entry in order if 2 <= entry[1] <= MINUTE]
        assert keys(store.fetch_range("a", "b", 0, DAY)) == [entry for entry in order if entry[0] != "c"]
        assert keys(store.fetch_range(None, "a", 0, DAY)) == [entry for entry in order if entry[0] == "a"]
        assert keys(store.fetch_range("b", None, 0, 2)) == [("b", 1), ("c", 2)]
        assert keys(store.fetch_range("b", "b", 0, DAY)) == [("b", 1), ("b", MINUTE + 1)]
        assert keys(store.backward_fetch_range("a", "b", 0, 2)) == [
            entry for entry in order[::-1] if entry[0] != "c" and entry[1] <= 2
        ]
        assert keys(store.backward_fetch_all(0, 2)) == [entry for entry in order[::-1] if entry[1] <= 2]
        assert keys(store.fetch_range("b", "a", 0, DAY)) == []


@pytest.mark.parametrize("persistent", [True, False])
def test_a_fetch_hides_what_is_past_retention(persistent: bool) -> None:
    with Task(window(persistent=persistent, retention_ms=100)) as task:
        store = task.store
        store.put("a", "old", 0)
        store.put("a", "edge", 1)
        store.put("b", "now", 100)
        assert store.fetch("a", 0) is None
        assert store.fetch("a", 1) == "edge"
        assert read_all(store.fetch("a", 0, 1000)) == [(1, "edge")]
        assert len(read_all(store.all())) == 2
        assert len(read_all(store.fetch_all(0, 0))) == 0


def test_a_persistent_store_drops_a_write_whose_whole_segment_has_expired_and_logs_it_all_the_same() -> None:
    with Task(window(retention_ms=2 * MINUTE)) as task:
        task.store.put("a", "now", 10 * MINUTE)
        task.store.put("a", "in a live segment", 8 * MINUTE)
        assert task.expired == 0
        task.store.put("a", "too late", 8 * MINUTE - 1)
        assert task.expired == 1
        assert len(task.changelog) == 3


def test_a_store_in_memory_drops_a_write_that_is_past_retention_itself() -> None:
    with Task(window(retention_ms=100, persistent=False)) as task:
        task.store.put("a", "now", 200)
        task.store.put("a", "edge", 101)
        assert task.expired == 0
        task.store.put("a", "too late", 100)
        assert task.expired == 1
        assert len(task.changelog) == 3
        assert read_all(task.store.fetch("a", 0, 200)) == [(101, "edge"), (200, "now")]


@VARIANTS
def test_a_commit_deletes_what_has_expired(settings: dict[str, bool], tmp_path: Path) -> None:
    with open_task(settings, tmp_path, retention_ms=2 * MINUTE) as task:
        for minute in range(20):
            for key in "ab":
                task.store.put(key, "v", minute * MINUTE)
            task.commit()
        table = task.store.layer.overlay.table
        left = list(table.scan(None, None, upper_inclusive=True, reverse=False))
        assert len(left) == 2 * (3 if task.store.persistent else 2)
        assert len(read_all(task.store.fetch_all(18 * MINUTE, 20 * MINUTE))) == 4


def test_cached_windows_are_seen_past_retention_until_they_leave_the_cache() -> None:
    with Task(window(retention_ms=100, cached=True)) as task:
        task.store.put("a", "old", 0)
        task.store.put("b", "now", 1000)
        task.commit()
        assert task.store.fetch("a", 0) == "old"
        task.state.abort()
        assert task.store.fetch("a", 0) is None


@pytest.mark.parametrize("persistent", [True, False])
def test_duplicates_are_all_kept_in_the_order_they_came(persistent: bool, tmp_path: Path) -> None:
    directory = tmp_path / "0_0" if persistent else None
    with Task(
        window(persistent=persistent, retain_duplicates=True, cached=True), directory=directory
    ) as task:
        store = task.store
        assert store.cached is False
        for value in ("1", "2"):
            store.put("a", value, 10)
        task.commit()
        store.put("a", None, 10)
        store.put("a", "3", 10)
        store.put("a", "0", 5)
        assert read_all(store.fetch("a", 0, 10)) == [(5, "0"), (10, "1"), (10, "2"), (10, "3")]
        assert read_all(store.backward_fetch("a", 0, 10)) == [(10, "3"), (10, "2"), (10, "1"), (5, "0")]
        keys = [key for key, _, _ in task.records()]
        assert keys[0] == b"a" + (10).to_bytes(8, "big") + (1).to_bytes(4, "big")
        assert [int.from_bytes(key[-4:], "big") for key in keys] == [1, 2, 3, 4, 5]
        records = task.records()
    with Task(window(persistent=persistent, retain_duplicates=True)) as restored:
        restored.state.restore("store", batch_of(records))
        found = [(5, "0"), (10, "1"), (10, "2"), (10, "3")]
        assert read_all(restored.store.fetch("a", 0, 10)) == found
        restored.store.put("a", "4", 10)
        assert read_all(restored.store.fetch("a", 10, 10))[-1] == (10, "4")


@pytest.mark.parametrize("persistent", [True, False])
def test_a_null_among_duplicates_moves_stream_time_in_memory_only(persistent: bool) -> None:
    spec = window(persistent=persistent, retain_duplicates=True, retention_ms=MINUTE)
    with Task(spec) as task:
        task.store.put("a", "1", MINUTE)
        task.store.put("a", None, 10 * MINUTE)
        task.store.put("a", None, 0)
        assert read_all(task.store.fetch("a", 0, DAY)) == ([(MINUTE, "1")] if persistent else [])
        assert task.expired == (0 if persistent else 1)
        assert len(task.changelog) == 3
        with Task(spec) as restored:
            restored.state.restore("store", batch_of(task.records()))
            assert restored.store.layer.time.ms == task.store.layer.time.ms
            assert read_all(restored.store.all()) == read_all(task.store.all())


def test_the_sequence_of_duplicates_and_stream_time_survive_a_restart(tmp_path: Path) -> None:
    spec = window(retain_duplicates=True, retention_ms=2 * MINUTE)
    with Task(spec, directory=tmp_path / "0_0") as task:
        task.store.put("a", "1", 10 * MINUTE)
        task.commit()
    with Task(spec, directory=tmp_path / "0_0") as task:
        task.store.put("a", "2", 10 * MINUTE)
        assert read_all(task.store.fetch("a", 0, DAY)) == [(10 * MINUTE, "1"), (10 * MINUTE, "2")]
        task.store.put("a", "too late", 0)
        assert task.expired == 1
        task.state.abort()
        task.store.put("a", "2 again", 10 * MINUTE)
        assert [value for _, value in read_all(task.store.fetch("a", 0, DAY))] == ["1", "2 again"]


def test_timestamped_windows_log_the_plain_value_with_its_time() -> None:
    for cached in (False, True):
        with Task(timestamped_window(cached=cached)) as task:
            task.at(50)
            store = task.store
            key = b"a" + (10).to_bytes(8, "big") + bytes(4)
            store.write(b"a", 10, 7, 33)
            assert store.read(b"a", 10) == (7, 33)
            assert store.fetch("a", 10).value == 7
            task.commit()
            store.write(b"a", 10, None, 34)
            assert store.read(b"a", 10) is None
            task.commit()
            assert task.records() == [(key, (7).to_bytes(8, "big"), 33), (key, None, 50)]
            store.put("a", (8, 40), 20)
            assert read_all(store.fetch("a", 0, 50)) == [(20, (8, 40))]


def test_a_flush_gives_window_new_old_and_time_and_reads_add_nothing_to_the_cache() -> None:
    with Task(timestamped_window(cached=True)) as task:
        store, told = task.store, []
        store.on_flush(lambda *change: told.append(change[:5]), True)
        for value in (1, 2):
            task.at(value)
            store.write(b"a", 10, value, value)
        assert task.cache.size_bytes == 45 + 8 + 1 + 12 + 16 + 2
        store.write(b"b", 10, None, 0)
        task.commit()
        assert told == [(b"a", 10, 2, None, 2)]
        task.at(9)
        store.write(b"a", 10, None, 3)
        task.commit()
        assert told[1:] == [(b"a", 10, None, 2, 9)]
        store.write(b"c", 10, 5, 5)
        task.commit()
        task.state.abort()
        assert store.read(b"c", 10) == (5, 5)
        assert len(store.cache) == 0


def test_the_eviction_of_a_window_flushes_the_whole_store() -> None:
    size = 45 + 8 + 1 + 12 + 16 + 2
    with Task(timestamped_window(cached=True), cache_bytes=2 * size) as task:
        told: list[object] = []
        task.store.on_flush(lambda key, start, *_: told.append((key, start)), False)
        for start in (10, 20, 10, 30):
            task.store.write(b"a", start, 1, 1)
        assert told == [(b"a", 20), (b"a", 10), (b"a", 30)]
        assert list(task.store.cache.entries) == [(b"a", 10), (b"a", 30)]


def test_a_store_in_memory_deletes_what_has_expired_now_and_then_and_hides_it_until_then() -> None:
    """Each deletion goes through the whole store, so a commit must not bring one about each time."""
    retention = 800
    with Task(timestamped_window(persistent=False, retention_ms=retention)) as task:
        store, held, deletions = task.store, 0, 0
        for start in range(0, 10 * retention, 5):
            store.write(b"a", start, 1, start)
            before = store.layer.overlay.table.approximate_count()
            task.commit()
            now = store.layer.overlay.table.approximate_count()
            deletions += now < before
            held = max(held, now)
            assert store.read(b"a", start - retention) is None
        assert held <= (retention + retention // 8) // 5 + 1
        assert deletions <= 10 * 8
        assert len(read_all(store.all())) == retention // 5


@pytest.mark.parametrize("persistent", [True, False])
def test_a_fetch_in_memory_makes_all_windows_of_its_span_recently_used(persistent: bool) -> None:
    with Task(window(persistent=persistent, cached=True)) as task:
        for key, start in (("b", 10), ("a", 5), ("c", 99), ("a", 20)):
            task.store.put(key, "v", start)
        assert read_all(task.store.fetch("a", 0, 50)) == [(5, "v"), (20, "v")]
        order = [(b"b", 10), (b"c", 99), (b"a", 5), (b"a", 20)]
        touched = [(b"c", 99), (b"a", 5), (b"b", 10), (b"a", 20)]
        assert list(task.store.cache.entries) == (order if persistent else touched)


def test_looking_for_sliding_windows_in_memory_comes_by_all_that_are_cached() -> None:
    with Task(timestamped_window(persistent=False, cached=True)) as task:
        for key, start in ((b"b", 10), (b"a", 5), (b"c", 15), (b"a", 20), (b"a", 70), (b"b", 30)):
            task.store.write(key, start, start + 1, start)
        walked = [(b"b", 30), (b"a", 20), (b"c", 15), (b"b", 10), (b"a", 5)]
        assert list(task.store.windows_of(b"a", 0, 50, reverse=True)) == [(20, (21, 20)), (5, (6, 5))]
        assert list(task.store.cache.entries) == [(b"a", 70), *walked]


def test_keys_that_hold_zero_bytes_are_distinguished(tmp_path: Path) -> None:
    for settings in ({}, {"on_disk": True}, {"persistent": False}):
        with open_task(settings, tmp_path, key_serde=BYTES, retention_ms=DAY) as task:
            keys = [b"", b"\x00", b"\x00" * 8, b"\x00" * 20, b"a", b"a\x00"]
            for key in keys:
                task.store.put(key, key.hex(), 5)
            task.commit()
            for key in keys:
                assert read_all(task.store.fetch(key, 0, 10)) == [(5, key.hex())]
            assert {windowed.key for windowed, _ in read_all(task.store.all())} == set(keys)


def test_records_of_the_changelog_restore_windows_and_stream_time() -> None:
    for persistent in (True, False):
        with Task(timestamped_window(retention_ms=2 * MINUTE, persistent=persistent)) as task:
            for minute in range(10):
                task.store.write(b"a", minute * MINUTE, minute, minute)
            task.store.write(b"a", 9 * MINUTE, None, 0)
            task.commit()
            with Task(timestamped_window(retention_ms=2 * MINUTE, persistent=persistent)) as restored:
                restored.state.restore("store", batch_of(task.records()))
                assert restored.store.layer.time.ms == 9 * MINUTE
                assert read_all(restored.store.all()) == read_all(task.store.all())
                assert restored.changelog == []


def test_a_restore_keeps_the_windows_that_records_processed_again_will_need(tmp_path: Path) -> None:
    """The changelog may have run ahead of the last commit, by more than the retention."""
    for settings in ({}, {"on_disk": True}, {"persistent": False}):
        with open_task(settings, tmp_path / "killed", retention_ms=2 * MINUTE) as killed:
            for minute in range(10):
                killed.store.put("a", str(minute), minute * MINUTE)
            records = killed.records()
        with open_task(settings, tmp_path / "next", retention_ms=2 * MINUTE) as next_:
            next_.state.limit_time(4 * MINUTE, 4 * MINUTE)
            next_.state.restore("store", batch_of(records))
            assert next_.store.layer.time.ms == 4 * MINUTE
            assert next_.store.fetch("a", 3 * MINUTE) == "3"
            assert next_.store.fetch("a", 2 * MINUTE) is None
            next_.at(3 * MINUTE)
            next_.store.put("a", "3 again", 3 * MINUTE)
            next_.at(9 * MINUTE)
            next_.store.put("a", "9 again", 9 * MINUTE)
            next_.commit()
            assert next_.store.fetch("a", 7 * MINUTE) is None
            assert read_all(next_.store.fetch("a", 0, DAY)) == [(8 * MINUTE, "8"), (9 * MINUTE, "9 again")]
