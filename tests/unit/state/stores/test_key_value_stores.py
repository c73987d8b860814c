"""Key-value stores as programs see them: values, ranges, prefixes, iterators, changelog."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.errors import StateError
from pystreams.serde import BYTES, INT
from pystreams.state.formats import ValueAndTimestamp
from pystreams.state.iterators import StoreIterator
from tests.unit.state.state_kit import VARIANTS, Task, key_value, read_all, timestamped


def open_task(settings: dict[str, bool], tmp_path: Path, make: object = key_value, **more: object) -> Task:
    settings = dict(settings)
    directory = tmp_path / "0_0" if settings.pop("on_disk", False) else None
    return Task(make(**settings, **more), directory=directory)  # type: ignore[operator]


@VARIANTS
def test_values_are_set_read_and_deleted(settings: dict[str, bool], tmp_path: Path) -> None:
    with open_task(settings, tmp_path) as task:
        store = task.store
        assert store.get("a") is None
        assert store.put_if_absent("a", "1") is None
        assert store.put_if_absent("a", "2") == "1"
        store.put_all([("b", "2"), ("c", "3")])
        assert store.delete("b") == "2"
        assert store.delete("b") is None
        store.put("c", None)
        assert [store.get(key) for key in "abc"] == ["1", None, None]
        task.commit()
        assert [store.get(key) for key in "abc"] == ["1", None, None]


@VARIANTS
def test_timestamped_values_come_with_their_time(settings: dict[str, bool], tmp_path: Path) -> None:
    with open_task(settings, tmp_path, timestamped) as task:
        store = task.store
        store.put("a", ValueAndTimestamp(1, 5))
        store.put("b", (2, 6))
        assert store.get("a").value == 1
        assert store.get("b").timestamp == 6
        assert store.put_if_absent("a", (7, 7)) == (1, 5)
        store.put("b", (None, 9))
        assert store.get("b") is None
        task.commit()
        assert store.delete("a") == (1, 5)
        task.commit()
        assert read_all(store.all()) == []


@VARIANTS
def test_ranges_merge_cache_changes_and_committed_entries(settings: dict[str, bool], tmp_path: Path) -> None:
    with open_task(settings, tmp_path) as task:
        store = task.store
        for key in ("a", "b", "c", "d", "ba"):
            store.put(key, key)
        task.commit()
        store.put("b", "new b")
        store.put("c", None)
        store.put("bb", "bb")
        everything = [("a", "a"), ("b", "new b"), ("ba", "ba"), ("bb", "bb"), ("d", "d")]
        assert read_all(store.all()) == everything
        assert read_all(store.range("b", "bb")) == everything[1:4]
        assert read_all(store.range(None, "b")) == everything[:2]
        assert read_all(store.range("bb", None)) == everything[3:]
        assert read_all(store.prefix_scan("b")) == everything[1:4]
        assert read_all(store.prefix_scan("x")) == []
        assert read_all(store.range("d", "a")) == []
        store.flush_cache()
        assert read_all(store.reverse_all()) == everything[::-1]
        assert read_all(store.reverse_range("b", "bb")) == everything[3:0:-1]
        assert read_all(store.reverse_range(None, "b")) == everything[1::-1]
        task.commit()
        assert read_all(store.all()) == everything


@VARIANTS
def test_a_prefix_of_the_greatest_bytes_is_scanned_to_the_end(
    settings: dict[str, bool], tmp_path: Path
) -> None:
    with open_task(settings, tmp_path, key_serde=BYTES) as task:
        for key in (b"\xfe", b"\xff", b"\xff\xff", b"\xff\xff\x01", b"a"):
            task.store.put(key, "v")
        assert [key for key, _ in read_all(task.store.prefix_scan(b"\xff\xff"))] == [
            b"\xff\xff",
            b"\xff\xff\x01",
        ]
        assert len(read_all(task.store.prefix_scan(b"\xfe"))) == 1
        assert len(read_all(task.store.prefix_scan(b""))) == 5


def test_a_reverse_scan_treats_tombstones_in_the_cache_as_kafka_streams_does() -> None:
    with Task(key_value(cached=True)) as task:
        store = task.store
        for key in "abc":
            store.put(key, key)
        task.commit()
        task.state.abort()
        store.put("b", None)
        # The tombstone sorts before c, which comes first: it is skipped, and b is seen again.
        assert read_all(store.reverse_all()) == [("c", "c"), ("b", "b"), ("a", "a")]
        assert read_all(store.all()) == [("a", "a"), ("c", "c")]
        store.put("d", None)
        assert read_all(store.reverse_all())[0] == ("d", None)


def test_negative_ints_sort_behind_the_positive_ones(caplog: pytest.LogCaptureFixture) -> None:
    with Task(key_value(key_serde=INT)) as task:
        for key in (-1, 0, 1):
            task.store.put(key, str(key))
        assert [key for key, _ in read_all(task.store.all())] == [0, 1, -1]
        assert read_all(task.store.range(-1, 1)) == []
        assert "negative numbers" in caplog.text


def test_the_changelog_has_plain_values_and_the_value_s_time() -> None:
    with Task(timestamped("ts"), key_value("kv")) as task:
        task.at(100)
        task["ts"].put("a", (1, 5))
        task["ts"].put("a", None)
        task["kv"].put("a", "x")
        task["kv"].delete("a")
        assert task.records("ts") == [(b"a", (1).to_bytes(8, "big"), 5), (b"a", None, 100)]
        assert task.records("kv") == [(b"a", b"x", 100), (b"a", None, 100)]


def test_a_store_without_a_changelog_logs_nothing() -> None:
    with Task(key_value(logged=False)) as task:
        task.store.put("a", "1")
        assert task.changelog == []
        assert task.store.get("a") == "1"


@VARIANTS
def test_entries_may_be_deleted_while_they_are_scanned(settings: dict[str, bool], tmp_path: Path) -> None:
    with open_task(settings, tmp_path) as task:
        for number in range(100):
            task.store.put(f"{number:03}", "v")
            if number == 50:
                task.commit()
        with task.store.all() as entries:
            for key, _ in entries:
                task.store.delete(key)
        assert read_all(task.store.all()) == []


def test_an_iterator_shows_the_store_as_it_was_when_it_was_made(tmp_path: Path) -> None:
    for directory in (None, tmp_path / "0_0"):
        with Task(key_value(), directory=directory) as task:
            task.store.put("a", "1")
            task.commit()
            task.store.put("b", "1")
            with task.store.all() as entries:
                task.store.put("a", "2")
                task.store.put("b", "2")
                task.store.put("c", "2")
                task.commit()
                assert list(entries) == [("a", "1"), ("b", "1")]


def test_an_iterator_peeks_and_closes() -> None:
    with Task(key_value()) as task:
        task.store.put_all([("a", "1"), ("b", "2")])
        iterator: StoreIterator[str, str] = task.store.all()
        assert iterator.peek_key() == "a"
        assert next(iterator) == ("a", "1")
        assert iterator.peek_key() == iterator.peek_key() == "b"
        assert list(iterator) == [("b", "2")]
        assert iterator.peek_key() is None
        iterator.close()
        with pytest.raises(StateError, match="closed"):
            next(iterator)


def test_a_null_key_is_refused() -> None:
    with Task(key_value()) as task, pytest.raises(TypeError, match="must not be None"):
        task.store.put(None, "x")


def test_a_closed_store_is_refused(tmp_path: Path) -> None:
    for directory in (None, tmp_path / "0_0"):
        with Task(key_value(), directory=directory) as task:
            store = task.store
            store.put("a", "1")
            task.commit()
        with pytest.raises(StateError, match="closed"):
            store.get("a")


@pytest.mark.parametrize("persistent", [True, False])
def test_the_count_follows_changes_and_commits(persistent: bool) -> None:
    with Task(key_value(persistent=persistent)) as task:
        task.store.put_all([("a", "1"), ("b", "2")])
        assert task.store.approximate_count() == 2
        task.commit()
        task.store.put_all([("a", "3"), ("b", None), ("c", "4"), ("d", None)])
        assert task.store.approximate_count() == 2
        task.commit()
        assert task.store.approximate_count() == 2
