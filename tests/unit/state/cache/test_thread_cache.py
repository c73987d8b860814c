"""T3: the cache accounts, evicts and flushes as Kafka Streams' NamedCache and ThreadCache do."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.record import NO_HEADERS
from pystreams.state.cache.thread_cache import CLEAN_CONTEXT, NamedCache, ThreadCache, entry_bytes

CONTEXT = ("", 0, 0, 0, NO_HEADERS)
ENTRY_BYTES = 56


class Listener:
    """Keeps the keys of every flush."""

    def __init__(self) -> None:
        self.flushes: list[list[Any]] = []

    def __call__(self, batch: list[Any]) -> None:
        self.flushes.append([key for key, _, _ in batch])


def named(owner: ThreadCache, name: str = "0_0-s") -> tuple[NamedCache, Listener]:
    cache, listener = owner.named(name), Listener()
    cache.listener = listener
    return cache, listener


def put(cache: NamedCache, *keys: str, item: Any = "value", dirty: bool = True) -> None:
    for key in keys:
        cache.put(key, item, CONTEXT, ENTRY_BYTES, dirty=dirty)


def test_an_entry_weighs_45_bytes_and_its_key_value_topic_and_headers() -> None:
    assert entry_bytes(1, 16, ("in", 0, 0, 0, NO_HEADERS)) == 64
    assert entry_bytes(1, 16, ("in", 0, 0, 0, (("h", b"12"), ("null", None)))) == 64 + 3 + 4
    assert entry_bytes(0, 0, (None, -1, -1, -1, NO_HEADERS)) == 45
    assert entry_bytes(3, 8, CLEAN_CONTEXT) == 56


def test_eviction_of_a_dirty_entry_flushes_it_first_and_then_the_others_by_their_last_update() -> None:
    cache, listener = named(ThreadCache(3 * ENTRY_BYTES))
    put(cache, "a", "b", "c")
    assert cache.get("a") is not None
    put(cache, "d")
    assert listener.flushes == [["b", "a", "c", "d"]]
    assert cache.get("b") is None
    assert not cache.dirty
    assert set(cache.entries) == {"a", "c", "d"}


def test_eviction_of_a_clean_entry_flushes_nothing() -> None:
    cache, listener = named(ThreadCache(3 * ENTRY_BYTES))
    put(cache, "a", "b", "c", dirty=False)
    put(cache, "d")
    assert listener.flushes == []
    assert list(cache.entries) == ["b", "c", "d"]
    cache.flush()
    assert listener.flushes == [["d"]]


def test_a_tombstone_is_seen_until_the_flush_and_gone_after_it() -> None:
    owner = ThreadCache(10 * ENTRY_BYTES)
    cache, listener = named(owner)
    put(cache, "a", "b")
    put(cache, "a", item=None)
    entry = cache.get("a")
    assert entry is not None
    assert entry.item is None
    cache.flush()
    assert listener.flushes == [["b", "a"]]
    assert cache.get("a") is None
    assert list(cache.entries) == ["b"]
    assert not cache.dirty
    assert cache.size_bytes == owner.size_bytes == ENTRY_BYTES


def test_only_the_store_that_overflows_the_budget_pays_for_it() -> None:
    owner = ThreadCache(3 * ENTRY_BYTES)
    first, first_listener = named(owner, "0_0-s")
    second, second_listener = named(owner, "0_0-t")
    put(first, "a", "b", "c")
    put(second, "x")
    assert second_listener.flushes == [["x"]]
    assert first_listener.flushes == []
    assert len(second) == 0
    assert len(first) == 3
    assert owner.size_bytes == 3 * ENTRY_BYTES


def test_the_dirty_set_is_cleared_before_the_listener_runs_which_may_write_again() -> None:
    cache, _ = named(ThreadCache(10 * ENTRY_BYTES))
    flushed = []

    def listener(batch: list[Any]) -> None:
        assert not cache.dirty
        flushed.append([(key, item) for key, item, _ in batch])
        if len(flushed) == 1:
            put(cache, "b", item="again")
            put(cache, "z")

    cache.listener = listener
    put(cache, "a", "b")
    cache.flush()
    assert flushed == [[("a", "value"), ("b", "value")]]
    assert cache.dirty
    cache.flush()
    assert flushed[1] == [("b", "again"), ("z", "value")]


def test_a_tombstone_that_the_listener_overwrites_keeps_the_new_value() -> None:
    cache, _ = named(ThreadCache(10 * ENTRY_BYTES))
    cache.listener = lambda batch: put(cache, "a", item="new") if batch[0][1] is None else None
    put(cache, "a", item=None)
    cache.flush()
    entry = cache.get("a")
    assert entry is not None
    assert entry.item == "new"
    cache.listener = listener = Listener()
    cache.flush()
    assert listener.flushes == [["a"]]


def test_an_update_moves_a_dirty_entry_to_the_end_of_the_flush() -> None:
    cache, listener = named(ThreadCache(10 * ENTRY_BYTES))
    put(cache, "a", "b", "c", "a")
    cache.flush()
    assert listener.flushes == [["b", "c", "a"]]


def test_a_flush_of_nothing_calls_nobody() -> None:
    cache, listener = named(ThreadCache(10 * ENTRY_BYTES))
    put(cache, "a", dirty=False)
    cache.flush()
    assert listener.flushes == []


def test_a_flush_that_fills_another_store_leaves_the_sizes_right() -> None:
    owner = ThreadCache(2 * ENTRY_BYTES)
    first, _ = named(owner, "0_0-first")
    second, second_listener = named(owner, "0_0-second")
    first.listener = lambda batch: put(second, *[f"from {key}" for key, _, _ in batch])
    put(first, "a", "b", "c")
    # The budget still held the entry being evicted while the second store was filled: it kept nothing.
    assert second_listener.flushes == [["from a"], ["from b"], ["from c"]]
    assert owner.size_bytes == first.size_bytes + second.size_bytes
    assert list(first.entries) == ["b", "c"]


def test_a_clean_entry_must_not_replace_a_dirty_one() -> None:
    cache, _ = named(ThreadCache(10 * ENTRY_BYTES))
    put(cache, "a")
    with pytest.raises(ValueError, match="clean entry"):
        put(cache, "a", dirty=False)


def test_a_smaller_budget_evicts_from_the_stores_in_turn() -> None:
    owner = ThreadCache(10 * ENTRY_BYTES)
    first, first_listener = named(owner, "0_0-first")
    second, second_listener = named(owner, "0_0-second")
    put(first, "a", "b")
    put(second, "x", "y", "z")
    owner.resize(2 * ENTRY_BYTES)
    assert owner.size_bytes == 2 * ENTRY_BYTES
    assert list(first.entries) == []
    assert list(second.entries) == ["y", "z"]
    assert first_listener.flushes == [["a", "b"]]
    assert second_listener.flushes == [["x", "y", "z"]]
    owner.resize(0)
    assert owner.size_bytes == 0
    owner.resize(10 * ENTRY_BYTES)
    put(second, "x")
    assert len(second) == 1


def test_an_entry_larger_than_the_budget_is_flushed_at_once() -> None:
    cache, listener = named(ThreadCache(ENTRY_BYTES - 1))
    put(cache, "a")
    assert listener.flushes == [["a"]]
    assert len(cache) == 0


def test_clearing_forgets_dirty_entries_and_closing_gives_the_bytes_back() -> None:
    owner = ThreadCache(10 * ENTRY_BYTES)
    cache, listener = named(owner)
    put(cache, "a", "b")
    cache.clear()
    cache.flush()
    assert listener.flushes == []
    put(cache, "c")
    cache.close()
    assert owner.size_bytes == 0
    assert named(owner)[0] is not cache
