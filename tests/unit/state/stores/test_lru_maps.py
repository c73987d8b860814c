"""A map of bounded size forgets what was not used for longest, and its changelog with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pystreams.errors import TopologyError
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from tests.unit.state.state_kit import Task, batch_of, read_all


def spec(name: str = "store", most: int = 3, **settings: Any) -> StoreSpec:
    return Stores.lru_map(name, str, str, max_entries=most, **settings)


@pytest.fixture
def task() -> Iterator[Task]:
    with Task(spec()) as task:
        yield task


def put(task: Task, *keys: str) -> None:
    for key in keys:
        task.store.put(key, key.upper())


def keys(task: Task) -> list[str]:
    return [key for key, _ in read_all(task.store.all())]


def test_what_was_not_read_or_written_for_longest_goes(task: Task) -> None:
    task.at(7)
    put(task, "a", "b", "c")
    assert task.store.get("a") == "A"
    put(task, "b", "d")
    assert keys(task) == ["a", "b", "d"]
    assert task.store.get("c") is None
    # As in Java the one that goes is logged before the one that comes.
    assert task.records()[-2:] == [(b"c", None, 7), (b"d", b"D", 7)]


def test_what_is_deleted_makes_room(task: Task) -> None:
    put(task, "a", "b", "c")
    task.store.delete("b")
    put(task, "d")
    assert keys(task) == ["a", "c", "d"]


def test_the_bound_holds_over_commits_and_aborts(task: Task) -> None:
    put(task, "a", "b", "c")
    task.commit()
    put(task, "d", "e")
    task.state.abort()
    assert keys(task) == ["a", "b", "c"]
    put(task, "d")
    task.commit()
    assert len(keys(task)) == 3
    assert "d" in keys(task)


def test_a_restored_map_holds_what_was_written_last(task: Task) -> None:
    put(task, "a", "b", "c", "d", "a")
    # A changelog that was compacted may still hold more than the bound.
    records = [(b"z", b"Z", 0), *task.records()]
    with Task(spec()) as other:
        other.state.restore("store", batch_of(records))
        assert keys(other) == keys(task) == ["a", "c", "d"]
        assert other.changelog == []
        put(other, "e")
        assert keys(other) == ["a", "d", "e"]


def test_a_cache_before_it_may_show_more_as_in_java() -> None:
    with Task(spec(cached=True)) as task:
        put(task, "a", "b", "c", "d")
        task.commit()
        assert [key for key, _, _ in task.store.logged()] == [b"b", b"c", b"d"]
        assert task.store.get("a") == "A"


def test_a_map_that_keeps_nothing() -> None:
    with Task(spec(most=0)) as task:
        put(task, "a")
        assert keys(task) == []


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(TopologyError, match="max_entries=-1 is not a number of entries"):
        spec(most=-1)


def test_several_at_once_are_logged_so_that_the_changelog_ends_as_the_map(task: Task) -> None:
    # Java logs what goes for them before all of them.
    task.at(5)
    task.store.put_all([("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")])
    assert task.records() == [
        (b"a", b"A", 5), (b"b", b"B", 5), (b"c", b"C", 5), (b"a", None, 5), (b"d", b"D", 5),
    ]  # fmt: skip
    assert keys(task) == ["b", "c", "d"]
