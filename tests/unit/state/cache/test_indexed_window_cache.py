"""A cached window of a store that is read by time and keeps headers has two places in the cache, and leaves it once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.state.cache.indexed_window_cache import IndexedWindowCache
from tests.unit.state.state_kit import Task, read_all, timestamped_window

SPEC = timestamped_window(by_time=True, headers=True, cached=True)
#: Of a window with a key of one letter: 45, segment and prefix 9, window 12, topic 2; headers 1, time 8, value 8.
WINDOW_BYTES = 45 + 9 + 1 + 12 + 2 + 17
INDEX_BYTES = 45 + 9 + 1 + 12


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Task]:
    with Task(SPEC, directory=tmp_path / "0_0", cache_bytes=2 * (WINDOW_BYTES + INDEX_BYTES)) as task:
        yield task


def put(task: Task, key: str, start: int) -> None:
    task.at(start)
    task.store.put(key, (start, start), start)


def logged(task: Task) -> list[tuple[bytes, int | None]]:
    return [(key[:1], timestamp) for key, _, timestamp in task.records()]


def test_each_window_takes_two_places(task: Task) -> None:
    assert isinstance(task.store.cache, IndexedWindowCache)
    put(task, "a", 1)
    assert task.cache.size_bytes == WINDOW_BYTES + INDEX_BYTES
    put(task, "b", 2)
    assert task.cache.size_bytes == task.cache.max_bytes
    assert logged(task) == []


def test_whichever_place_is_evicted_first_the_window_is_logged(task: Task) -> None:
    put(task, "a", 1)
    put(task, "b", 2)
    # Its place in the index is now the one that was not used for longest.
    assert task.store.fetch("a", 1) == (1, 1, ())
    put(task, "c", 3)
    assert sorted(logged(task)) == [(b"a", 1), (b"b", 2), (b"c", 3)]
    task.commit()
    # As in Java a window that was flushed between its two places is flushed with the second once more.
    assert sorted(logged(task)) == [(b"a", 1), (b"b", 2), (b"c", 3), (b"c", 3)]


def test_a_flush_hands_on_windows_alone_and_reads_see_them_alone(task: Task) -> None:
    put(task, "b", 2)
    put(task, "a", 1)
    found = [(window.key, window.start) for window, _ in read_all(task.store.all())]
    assert found == [("a", 1), ("b", 2)]
    ranged = [(window.key, window.start) for window, _ in read_all(task.store.fetch_range("a", "b", 0, 9))]
    assert ranged == [("a", 1), ("b", 2)]
    assert [start for start, _ in read_all(task.store.fetch("a", 0, 9))] == [1]
    task.commit()
    assert logged(task) == [(b"b", 2), (b"a", 1)]


def test_a_deleted_window_leaves_the_cache(task: Task) -> None:
    put(task, "a", 1)
    task.commit()
    task.store.put("a", None, 1)
    task.commit()
    assert task.store.fetch("a", 1) is None
    assert read_all(task.store.all()) == []
    assert task.records()[-1][1] is None
