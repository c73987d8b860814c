"""A versioned store knows what a key was at any time within its history, in whatever order that was put."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.errors import TopologyError
from pystreams.state.layers.versioned_layer import NOT_PUT, VALID_TO_UNDEFINED, segment_interval_ms
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.state.stores.versioned import VersionedRecord
from tests.unit.state.state_kit import Task, batch_of

HISTORY = 100
Put = tuple[str, str | None, int]


def spec(name: str = "store", history: int = HISTORY, segment: int | None = 10, **settings: Any) -> StoreSpec:
    return Stores.versioned_store(name, str, str, history=history, segment=segment, **settings)


@pytest.fixture(params=[True, False], ids=["on disk", "in memory"])
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Task]:
    with Task(spec(persistent=request.param), directory=tmp_path / "0_0") as task:
        yield task


def test_a_key_has_the_value_that_was_put_last_before(task: Task) -> None:
    for value, time in (("1", 10), ("3", 30), ("2", 20)):
        task.store.put("a", value, time)
    found = [task.store.get("a", as_of=time) for time in (9, 10, 19, 25, 30, 1_000)]
    assert found == [None, ("1", 10, 20), ("1", 10, 20), ("2", 20, 30), ("3", 30, None), ("3", 30, None)]
    assert task.store.get("a") == VersionedRecord("3", 30, None)
    assert task.store.get("b") is None


def test_put_says_when_the_version_ends(task: Task) -> None:
    assert task.store.put("a", "1", 10) == VALID_TO_UNDEFINED
    assert task.store.put("a", "3", 30) == VALID_TO_UNDEFINED
    assert task.store.put("a", "2", 20) == 30
    assert task.store.put("a", "2b", 20) == 30
    assert task.store.put("a", "0", 5) == 10


def test_a_deletion_is_a_version_without_a_value(task: Task) -> None:
    task.store.put("a", "1", 10)
    task.store.put("a", "4", 40)
    assert task.store.delete("a", 20) == ("1", 10, 40)
    assert task.store.get("a", as_of=25) is None
    assert task.store.get("a", as_of=15) == ("1", 10, 20)
    task.store.put("a", None, 50)
    assert task.store.get("a") is None
    assert task.store.versions("a") == [("1", 10, 20), ("4", 40, 50)]


def test_what_is_older_than_the_history_is_neither_put_nor_found(task: Task) -> None:
    task.store.put("a", "1", 10)
    task.store.put("a", "2", 20)
    task.store.put("b", "9", 121)
    assert task.store.put("a", "0", 20) == NOT_PUT
    assert task.expired == 1
    assert task.store.get("a", as_of=20) == ("2", 20, None)
    assert task.store.get("a", as_of=19) is None
    assert task.store.put("a", "3", 21) == VALID_TO_UNDEFINED
    assert task.store.delete("a", 3) is None
    # It was too late for the store, but as in Java the changelog has it.
    assert task.records()[-1] == (b"a", None, 3)


def test_segments_go_when_all_in_them_has_ended_too_long_ago(task: Task) -> None:
    for time in range(0, 300, 5):
        task.store.put("a", str(time), time)
    task.commit()
    found = task.store.versions("a")
    # The version that ends first of all that are left ends within the segment of the time 295 - 100.
    assert [found[0], found[-1]] == [("185", 185, 190), ("295", 295, None)]
    stored = dict(task.store._layer.overlay.table.scan(None, None, upper_inclusive=True, reverse=False))
    assert len(stored) == 12


def test_an_abort_takes_back_versions_and_time(task: Task) -> None:
    task.store.put("a", "1", 10)
    task.commit()
    task.store.put("a", "2", 15)
    task.store.put("b", "9", 500)
    task.state.abort()
    assert task.store.versions("a") == [("1", 10, None)]
    assert task.store.put("a", "0", 5) == 10


def test_a_reopened_store_goes_on(tmp_path: Path) -> None:
    with Task(spec(), directory=tmp_path / "0_0") as task:
        for time in (10, 30, 110):
            task.store.put("a", str(time), time)
        task.commit()
    with Task(spec(), directory=tmp_path / "0_0") as task:
        assert task.store.versions("a") == [("10", 10, 30), ("30", 30, 110), ("110", 110, None)]
        assert task.store.put("a", "late", 9) == NOT_PUT


def test_a_restored_store_is_the_one_that_was_logged(task: Task) -> None:
    for key, value, time in (("a", "1", 10), ("a", "3", 30), ("b", "1", 5), ("a", None, 20), ("b", "2", 200)):
        task.store.put(key, value, time)
    task.commit()
    for size in (1, 2, 5):
        with Task(spec(persistent=False)) as other:
            records = task.records()
            for start in range(0, len(records), size):
                other.state.restore("store", batch_of(records[start : start + size], start))
            for key in ("a", "b"):
                assert other.store.versions(key) == task.store.versions(key)
            assert other.changelog == []


puts = st.lists(
    st.tuples(st.sampled_from("ab"), st.none() | st.sampled_from("xyz"), st.integers(0, 60)), max_size=40
)


@given(puts, st.sampled_from([1, 7, 1_000]))
def test_every_order_of_puts_makes_the_same_history(done: list[Put], segment: int) -> None:
    """With a history that forgets nothing: the last value put for a time holds from then to the next time."""
    with Task(spec(history=1_000, segment=segment, persistent=False)) as task:
        known: dict[str, dict[int, str | None]] = {"a": {}, "b": {}}
        for key, value, time in done:
            if value is None and time in known[key]:
                # As in Java, a deletion in place of the latest version may be forgotten.
                continue
            # One where there is nothing is remembered.
            later = [other for other in known[key] if other > time]
            ends = task.store.put(key, value, time)
            known[key][time] = value
            assert ends == min(later, default=VALID_TO_UNDEFINED)
        for key, versions in known.items():
            for time in range(-1, 62):
                last = max((since for since in versions if since <= time), default=None)
                value = None if last is None else versions[last]
                found = task.store.get(key, as_of=time)
                assert (None if found is None else found.value) == value


@pytest.mark.parametrize(
    "history, segment",
    [(0, 2_000), (60_000, 20_000), (300_000, 60_000), (3_600_000, 300_000), (86_400_000, 3_600_000)],
)
def test_segments_are_as_long_as_in_java(history: int, segment: int) -> None:
    assert segment_interval_ms(history) == segment


@pytest.mark.parametrize("wrong", [{"history": -1}, {"segment": 0}])
def test_impossible_lengths_are_refused(wrong: Any) -> None:
    with pytest.raises(TopologyError, match="history that is not negative"):
        spec(**wrong)


def test_a_null_key_is_the_callers_mistake(task: Task) -> None:
    with pytest.raises(TypeError, match="must not be None"):
        task.store.put(None, "1", 1)
