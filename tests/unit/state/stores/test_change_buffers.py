"""A buffer holds the last change of each key in the place of the first, and logs it as Java does, with each commit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.errors import StateCorruptedError
from pystreams.record import RecordContext
from pystreams.serde import STR
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.buffer_value import BufferedChange, unpacked
from pystreams.state.stores.change_buffer import NEVER
from pystreams.state.stores.java_bytes import BytesSet
from tests.unit.state.state_kit import Task, batch_of

CONTEXT: RecordContext = ("in", 3, 7, 16, (("h", b"x"), ("n", None)))

numbers = st.integers(-(1 << 63), (1 << 63) - 1)
values = st.none() | st.binary(max_size=20)
contexts = st.tuples(
    st.none() | st.text("abc", min_size=1),
    st.integers(-1, 1000),
    numbers,
    numbers,
    st.lists(st.tuples(st.text(max_size=5), values), max_size=3).map(tuple),
)


def spec(name: str = "store") -> StoreSpec:
    return StoreSpec(name, "buffer", STR, STR, persistent=False)


@pytest.fixture
def task() -> Iterator[Task]:
    with Task(spec()) as task:
        yield task


def held(task: Task) -> list[tuple[str, int, str | None, str | None]]:
    """Key, place, prior and new value of all, in their order, which takes them out."""
    found = []
    while len(task.store):
        key, entry = task.store.first()
        decoded = task.store.decoded
        found.append((task.store.decode_key(key), entry.time, decoded(entry.prior), decoded(entry.new)))
        task.store.remove(key)
    assert task.store.first_time == NEVER
    assert task.store.size_bytes == 0
    return found


def content(task: Task) -> dict[str, Any]:
    return {key: task.state.as_logged("store", key.encode(), 0) for key in "abcdef"}


def logged(task: Task) -> list[tuple[bytes, bytes | None]]:
    task.changelog.clear()
    task.state.flush_caches()
    return [(key, value) for _, key, value, _ in task.changelog]


def test_the_bytes_are_those_of_kafka_streams() -> None:
    packed = BufferedChange(5, b"p", b"p", None, CONTEXT).packed()
    assert packed == bytes.fromhex(
        "0000000000000010 0000000000000007 00000002 696e 00000003 00000002"
        "00000001 68 00000001 78 00000001 6e ffffffff"
        "00000001 70 fffffffe ffffffff 0000000000000005"
    )


@given(numbers, values, values, values, contexts)
def test_every_entry_is_read_as_it_was_written(
    time: int, prior: bytes | None, old: bytes | None, new: bytes | None, context: RecordContext
) -> None:
    entry = BufferedChange(time, prior, old, new, context)
    assert unpacked(entry.packed()) == entry


@pytest.mark.parametrize("cut, more", [(-1, b""), (None, b"x"), (0, b""), (40, b"")])
def test_damaged_entries_are_reported(cut: int | None, more: bytes) -> None:
    packed = BufferedChange(5, b"p", None, b"n", CONTEXT).packed()
    with pytest.raises(StateCorruptedError, match="cannot be read"):
        unpacked(packed[:cut] + more)


def test_changes_are_ordered_by_time_and_then_by_key(task: Task) -> None:
    for key, time in (("b", 5), ("c", 1), ("a", 5)):
        task.store.put(key, time, "new", None, CONTEXT)
    assert task.store.first_time == 1
    assert [key for key, *_ in held(task)] == ["c", "a", "b"]


def test_a_later_change_takes_the_place_of_the_one_that_is_held(task: Task) -> None:
    task.store.put("a", 5, "1", "0", CONTEXT)
    task.store.put("a", 9, "2", "1", CONTEXT)
    assert held(task) == [("a", 5, "0", "2")]


def test_what_came_and_went_between_two_commits_is_logged_once(task: Task) -> None:
    for number in range(3):
        task.store.put("a", 5, str(number), None, CONTEXT)
    task.store.put("b", 5, "x", None, CONTEXT)
    task.store.remove(b"b")
    assert task.changelog == []
    found = dict(logged(task))
    assert found[b"b"] is None
    assert found[b"a"] == BufferedChange(5, None, None, b"2", CONTEXT).packed()
    assert logged(task) == []


def test_an_abort_takes_back_what_was_not_committed() -> None:
    chance = random.Random(5)
    with Task(spec()) as task:
        for _ in range(200):
            before = content(task)
            size = task.store.size_bytes
            for _ in range(chance.randrange(8)):
                key = chance.choice("abcdef")
                if chance.random() < 0.6:
                    task.store.put(key, chance.randrange(9), "v" * chance.randrange(5), None, CONTEXT)
                else:
                    task.store.remove(key.encode())
            if chance.random() < 0.5:
                task.commit()
                continue
            task.state.abort()
            assert content(task) == before
            assert task.store.size_bytes == size
            assert logged(task) == []
        keys = [(time, key) for key, time, *_ in held(task)]
        assert keys == sorted(keys)


def test_a_restored_buffer_is_the_one_that_was_logged(task: Task) -> None:
    task.store.put("a", 5, "1", "0", CONTEXT)
    task.store.put("b", 3, "2", None, CONTEXT)
    task.store.put("gone", 1, "3", None, CONTEXT)
    first = logged(task)
    task.store.remove(b"gone")
    with Task(spec()) as other:
        for entries in (first, logged(task)):
            other.state.restore("store", batch_of([(key, value, 0) for key, value in entries]))
        assert list(other.store.logged()) == list(task.store.logged())
        assert other.store.size_bytes == task.store.size_bytes
        assert logged(other) == []
        assert held(other) == [("b", 3, None, "2"), ("a", 5, "0", "1")]


def test_who_was_let_go_and_is_held_back_anew_has_its_new_place_after_a_restart(task: Task) -> None:
    """Between two commits: the changelog has nothing of the deletion. In Java it stands in its former place."""
    task.store.put("a", 5, "1", None, CONTEXT)
    task.store.put("b", 7, "2", None, CONTEXT)
    first = logged(task)
    task.store.remove(b"a")
    task.store.put("a", 9, "3", "1", CONTEXT)
    with Task(spec()) as other:
        for entries in (first, logged(task)):
            other.state.restore("store", batch_of([(key, value, 0) for key, value in entries]))
        assert held(other) == held(task) == [("b", 7, None, "2"), ("a", 9, "1", "3")]


def test_keys_are_logged_in_the_order_of_a_java_set() -> None:
    """Recorded from a ``HashSet`` of byte arrays, before and after 40 more made its table grow."""
    few = ["ff", "", "7a7a", "61", "62", "6b31", "6b65792d3137", "8000"]
    keys = BytesSet()
    for key in few:
        keys.add(bytes.fromhex(key))
    assert " ".join(key.hex() for key in keys.in_java_order()) == "61  7a7a 62 6b65792d3137 6b31 ff 8000"
    for number in range(40):
        keys.add(b"k%d" % number)
    keys.clear()
    for key in few:
        keys.add(bytes.fromhex(key))
    assert " ".join(key.hex() for key in keys.in_java_order()) == "61  7a7a 62 6b65792d3137 ff 6b31 8000"
