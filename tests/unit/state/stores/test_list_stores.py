"""A list store keeps all values of a key in their order; its changelog has them as Java's list serde writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams.errors import StateCorruptedError
from pystreams.serde import INT, STR
from pystreams.serde.join_side import SideValue, SideValueSerde, WaitingKey, WaitingKeySerde
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.state.stores.list_store import elements, with_element
from tests.unit.state.state_kit import Task, batch_of, read_all


def spec(name: str = "store", **settings: Any) -> StoreSpec:
    return Stores.list_store(name, str, str, **settings)


@pytest.fixture(params=[True, False], ids=["on disk", "in memory"])
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Task]:
    with Task(spec(persistent=request.param), directory=tmp_path / "0_0") as task:
        yield task


def test_values_are_kept_in_the_order_in_which_they_were_put(task: Task) -> None:
    for key, value in (("b", "1"), ("a", "2"), ("b", "3")):
        task.store.put(key, value)
    assert task.store.get("b") == ["1", "3"]
    assert task.store.get("c") is None
    assert read_all(task.store.all()) == [("a", "2"), ("b", "1"), ("b", "3")]
    assert read_all(task.store.range("aa", "c")) == [("b", "1"), ("b", "3")]
    assert task.store.approximate_count() == 2


def test_what_is_committed_and_what_is_not_make_one_list(task: Task) -> None:
    task.store.put("a", "1")
    task.commit()
    task.store.put("a", "2")
    assert task.store.get("a") == ["1", "2"]
    task.state.abort()
    assert task.store.get("a") == ["1"]


def test_none_deletes_the_list(task: Task) -> None:
    task.store.put("a", "1")
    task.store.put("a", None)
    assert task.store.get("a") is None
    task.store.put("a", "2")
    assert task.store.delete("a") == ["2"]
    assert read_all(task.store.all()) == []


def test_a_null_key_is_the_callers_mistake(task: Task) -> None:
    with pytest.raises(TypeError, match="must not be None"):
        task.store.put(None, "1")


def test_the_changelog_has_the_whole_list_as_java_writes_it(task: Task) -> None:
    task.at(7)
    task.store.put("a", "x")
    task.store.put("a", "yz")
    task.store.put("a", None)
    assert task.records() == [
        (b"a", bytes.fromhex("01 00000001 00000001 78"), 7),
        (b"a", bytes.fromhex("01 00000002 00000001 78 00000002 797a"), 7),
        (b"a", None, 7),
    ]


def test_it_is_restored_from_its_changelog(tmp_path: Path) -> None:
    with Task(spec(), directory=tmp_path / "0_0") as task:
        for value in ("1", "2", "3"):
            task.store.put("a", value)
        task.commit()
        logged = list(task.store.logged())
    with Task(spec(), directory=tmp_path / "0_1") as restored:
        restored.state.restore("store", batch_of(logged))
        assert restored.store.get("a") == ["1", "2", "3"]
        assert list(restored.store.logged()) == logged


def test_elements_come_back_from_their_bytes() -> None:
    packed = None
    values = [b"", b"\x00\x01", b"x" * 300]
    for value in values:
        packed = with_element(packed, value)
    assert packed is not None
    assert elements(packed) == values


def test_other_bytes_are_no_list() -> None:
    with pytest.raises(StateCorruptedError, match="starts with the byte 0"):
        elements(bytes.fromhex("00 00000001 00000001 78"))


def test_waiting_records_sort_by_time_side_and_key() -> None:
    serde = WaitingKeySerde(STR)
    write, read = serde.serializer("t"), serde.deserializer("t")
    assert write(WaitingKey(5, True, "a")) == bytes.fromhex("0000000000000005 01 61")
    keys = [WaitingKey(1, False, "b"), WaitingKey(1, True, "a"), WaitingKey(2, False, "a")]
    assert sorted(map(write, keys)) == [write(key) for key in keys]
    assert [read(write(key)) for key in keys] == keys


def test_each_side_has_its_own_serde() -> None:
    serde = SideValueSerde(STR, INT)
    write, read = serde.serializer("t"), serde.deserializer("t")
    assert write(SideValue(True, "L1")) == b"\x01L1"
    assert write(SideValue(False, 7)) == bytes.fromhex("00 0000000000000007")
    assert [read(write(value)) for value in (SideValue(True, "x"), SideValue(False, 3))] == [
        (True, "x"),
        (False, 3),
    ]
