"""Cached key-value stores forward, log and evict as Kafka Streams' CachingKeyValueStore does (T1, T2)."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.errors import StateError
from pystreams.record import NO_HEADERS
from pystreams.serde import JsonSerde
from tests.unit.state.state_kit import Task, key_value, read_all, timestamped

CACHED = {"cached": True}


def sum_up(task: Task, records: list[tuple[str, int, int]]) -> None:
    store = task.store
    for key, value, timestamp in records:
        task.at(timestamp)
        key_bytes = store.encode_key(key)
        entry = store.read(key_bytes)
        total, time = entry or (0, timestamp)
        store.write(key_bytes, total + value, max(time, timestamp))


class Output:
    def __init__(self, task: Task, *, send_old_values: bool = True) -> None:
        self.task = task
        self.changes: list[Any] = []
        task.store.on_flush(self, send_old_values)

    def __call__(self, key: bytes, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        assert headers == self.task.cell.record[4]
        self.changes.append((self.task.store.decode_key(key), new, old, timestamp, self.task.cell.record[3]))


RECORDS = [("A", 1, 1001), ("D", 5, 1002), ("A", 20, 1003), ("A", 300, 1004)]


@pytest.mark.parametrize("persistent", [True, False])
def test_nothing_leaves_the_cache_before_the_commit_and_then_in_order_of_last_update(
    persistent: bool,
) -> None:
    with Task(timestamped(persistent=persistent, **CACHED)) as task:
        output = Output(task)
        sum_up(task, RECORDS)
        assert output.changes == []
        assert task.changelog == []
        assert task.store.get("A") == (321, 1004)
        task.commit()
        assert output.changes == [("D", 5, None, 1002, 1002), ("A", 321, None, 1004, 1004)]
        sum_up(task, [("A", 79, 1005)])
        task.commit()
        assert output.changes[2:] == [("A", 400, 321, 1005, 1005)]
        assert task.records() == [
            (b"D", (5).to_bytes(8, "big"), 1002),
            (b"A", (321).to_bytes(8, "big"), 1004),
            (b"A", (400).to_bytes(8, "big"), 1005),
        ]


def test_a_budget_of_one_entry_flushes_both_when_the_second_key_comes() -> None:
    with Task(timestamped(**CACHED), cache_bytes=64) as task:
        output = Output(task)
        sum_up(task, RECORDS)
        assert [change[:3] for change in output.changes] == [("A", 1, None), ("D", 5, None)]
        task.commit()
        assert [change[:3] for change in output.changes[2:]] == [("A", 321, 1)]


def test_a_budget_of_two_entries_flushes_nothing_before_the_commit() -> None:
    with Task(timestamped(**CACHED), cache_bytes=128) as task:
        output = Output(task)
        sum_up(task, RECORDS)
        assert task.cache.size_bytes == 128
        assert output.changes == []


def test_without_old_values_none_is_looked_up() -> None:
    with Task(timestamped(**CACHED)) as task:
        output = Output(task, send_old_values=False)
        sum_up(task, RECORDS)
        task.commit()
        sum_up(task, [("A", 79, 1005)])
        task.commit()
        assert output.changes[-1][:3] == ("A", 400, None)


def test_a_deletion_of_what_was_never_stored_is_neither_written_nor_forwarded() -> None:
    with Task(timestamped(**CACHED)) as task:
        output = Output(task)
        task.store.put("A", (1, 5))
        task.store.delete("A")
        assert task.store.get("A") is None
        task.commit()
        assert output.changes == []
        assert task.changelog == []
        assert len(task.store.cache) == 0


def test_a_deletion_of_a_stored_key_is_forwarded_with_the_record_s_own_time() -> None:
    with Task(timestamped(**CACHED)) as task:
        output = Output(task)
        task.store.put("A", (1, 5))
        task.commit()
        task.at(99)
        task.store.delete("A")
        task.at(100)
        task.commit()
        assert output.changes[-1] == ("A", None, 1, 99, 99)
        assert task.records()[-1] == (b"A", None, 99)
        assert task.cell.record[3] == 100


def test_without_a_listener_every_dirty_entry_is_written() -> None:
    with Task(key_value(cached=True)) as task:
        task.at(7)
        task.store.put("A", None)
        task.store.put("B", "b")
        task.commit()
        assert task.records() == [(b"A", None, 7), (b"B", b"b", 7)]


def test_the_context_of_each_entry_is_in_force_while_it_is_forwarded_and_restored_after() -> None:
    with Task(timestamped(**CACHED)) as task:
        seen = []
        task.store.on_flush(lambda *_: seen.append(task.cell.record), False)
        first = ("in", 0, 1, 10, (("h", b"1"),))
        second = (None, -1, -1, 20, NO_HEADERS)
        for context in (first, second):
            task.cell.record = context
            task.store.write(b"A" if context is first else b"B", 1, context[3])
        task.at(30)
        in_force = task.cell.record
        task.state.flush_caches()
        assert seen == [first, second]
        assert task.cell.record is in_force


def test_a_failing_listener_leaves_the_record_s_context_in_force() -> None:
    with Task(timestamped(**CACHED)) as task:
        task.store.on_flush(lambda *_: 1 / 0, False)
        task.store.write(b"A", 1, 1)
        task.at(30)
        with pytest.raises(ZeroDivisionError):
            task.state.flush_caches()
        assert task.cell.record[3] == 30


def test_a_read_that_misses_stays_in_the_cache_as_a_clean_entry() -> None:
    with Task(timestamped(**CACHED), cache_bytes=1000) as task:
        task.store.put("A", (1, 5))
        task.commit()
        task.state.abort()
        assert task.cache.size_bytes == 0
        assert task.store.get("A") == (1, 5)
        assert task.cache.size_bytes == 45 + 1 + 16
        assert not task.store.cache.dirty
        assert task.store.get("missing") is None
        assert task.cache.size_bytes == 45 + 1 + 16


def test_a_read_can_evict_and_so_flush() -> None:
    with Task(timestamped(**CACHED), cache_bytes=64) as task:
        task.store.put("A", (1, 5))
        task.commit()
        task.state.abort()
        task.store.put("B", (2, 6))
        assert task.records() == [(b"A", (1).to_bytes(8, "big"), 5)]
        assert task.store.get("A") == (1, 5)
        assert task.records()[1:] == [(b"B", (2).to_bytes(8, "big"), 6)]


def test_changing_a_stored_object_in_place_never_changes_state() -> None:
    for spec in (key_value, timestamped):
        for cached in (True, False):
            with Task(spec(value_serde=JsonSerde(dict), cached=cached)) as task:
                value: dict[str, Any] = {"words": ["a"]}
                task.store.put("A", (value, 1) if spec is timestamped else value)
                value["words"].append("b")
                read = task.store.get("A")
                read = read.value if spec is timestamped else read
                assert read == {"words": ["a"]}
                read["words"].clear()
                task.commit()
                again = task.store.get("A")
                assert (again.value if spec is timestamped else again) == {"words": ["a"]}


def test_zero_bytes_of_cache_mean_no_cache() -> None:
    with Task(timestamped(**CACHED), cache_bytes=0) as task:
        assert task.store.cached is False
        task.store.write(b"A", 1, 3)
        assert task.records() == [(b"A", (1).to_bytes(8, "big"), 3)]


def test_a_flush_that_dirties_an_earlier_store_is_followed_by_another() -> None:
    with Task(timestamped("first", cached=True), timestamped("second", cached=True)) as task:
        first, second = task["first"], task["second"]
        second.on_flush(lambda key, new, *_: first.write(key, new, 1), False)
        second.write(b"A", 1, 1)
        task.commit()
        assert [store for store, *_ in task.changelog] == ["second", "first"]
        assert not first.cache.dirty


def test_a_store_that_its_own_flush_writes_to_for_ever_is_an_error_that_says_so() -> None:
    with Task(timestamped(cached=True)) as task:
        store = task.store

        def count_to(last: int | None) -> None:
            def again(key: bytes, new: int, *_: Any) -> None:
                if last is None or new < last:
                    store.write(key, new + 1, 1)

            store.on_flush(again, False)

        count_to(900)
        store.write(b"A", 1, 1)
        task.commit()
        assert store.read(b"A") == (900, 1)
        count_to(None)
        store.write(b"A", 1, 1)
        with pytest.raises(StateError, match="store store is written again whenever") as caught:
            task.commit()
        assert "cached=False" in str(caught.value.hint)


def test_what_a_walk_reads_becomes_the_most_recently_used() -> None:
    with Task(key_value(cached=True, persistent=False)) as task:
        for key in "abc":
            task.store.put(key, key)
        assert read_all(task.store.range("a", "b")) == [("a", "a"), ("b", "b")]
        assert list(task.store.cache.entries) == [b"c", b"a", b"b"]
