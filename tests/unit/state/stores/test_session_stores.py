"""Session stores: what is found, in which order, retention, cache, changelog, restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.errors import StateError, TopologyError
from pystreams.state.stores.factory import Stores
from pystreams.windowed import Windowed
from tests.examples import examples
from tests.unit.state.state_kit import Task, batch_of, read_all, session, timestamped_window

VARIANTS = pytest.mark.parametrize(
    "options",
    [
        {},
        {"cached": True},
        {"by_time": True},
        {"persistent": False},
        {"persistent": False, "cached": True},
        {"on_disk": True},
        {"on_disk": True, "cached": True},
        {"on_disk": True, "by_time": True},
    ],
    ids=str,
)
MINUTE = 60_000


def open_task(options: dict[str, bool], tmp_path: Path, **more: Any) -> Task:
    given: dict[str, Any] = dict(options)
    directory = tmp_path / "0_0" if given.pop("on_disk", False) else None
    return Task(session(**given, **more), directory=directory)


def fill(task: Task, *sessions: tuple[str, int, int]) -> None:
    for key, start, end in sessions:
        task.store.put(Windowed(key, start, end), f"{key}{start}-{end}")


@VARIANTS
def test_sessions_are_set_read_and_removed(options: dict[str, bool], tmp_path: Path) -> None:
    with open_task(options, tmp_path) as task:
        store = task.store
        fill(task, ("a", 10, 20), ("a", 30, 30), ("b", 10, 20))
        assert store.fetch_session("a", 10, 20) == "a10-20"
        assert store.fetch_session("a", 10, 21) is None
        store.remove(Windowed("a", 10, 20))
        store.put(Windowed("b", 10, 20), None)
        task.commit()
        assert read_all(store.all()) == [(Windowed("a", 30, 30), "a30-30")]
        store.remove(Windowed("a", 30, 30))
        task.commit()
        assert read_all(store.all()) == []


@VARIANTS
def test_find_sessions_gives_what_a_record_between_would_merge(
    options: dict[str, bool], tmp_path: Path
) -> None:
    with open_task(options, tmp_path, retention_ms=10 * MINUTE) as task:
        store = task.store
        fill(task, ("a", 10, 20), ("a", 3 * MINUTE, 4 * MINUTE), ("aa", 10, 20), ("b", 5, 5 * MINUTE))
        task.commit()
        fill(task, ("a", 30, 40), ("a", 50, 60))
        found = [(s.start, s.end) for s, _ in read_all(store.find_sessions("a", 20, 40))]
        assert found == [(10, 20), (30, 40)]
        assert [s.start for s, _ in read_all(store.find_sessions("a", 21, 29))] == []
        assert [s.start for s, _ in read_all(store.fetch("a"))] == [10, 30, 50, 3 * MINUTE]
        assert [s.start for s, _ in read_all(store.backward_fetch("a"))] == [3 * MINUTE, 50, 30, 10]
        assert [s.start for s, _ in read_all(store.backward_find_sessions("a", 20, 40))] == [30, 10]
        range_ = {(s.key, s.start) for s, _ in read_all(store.find_sessions_range("a", "aa", 0, 10))}
        assert range_ == {("a", 10), ("aa", 10)}
        assert {s.key for s, _ in read_all(store.fetch_range("aa", None))} == {"aa", "b"}
        assert read_all(store.fetch_range("b", "a")) == []


@VARIANTS
def test_backwards_is_the_opposite_order(options: dict[str, bool], tmp_path: Path) -> None:
    with open_task(options, tmp_path, retention_ms=10 * MINUTE) as task:
        fill(task, ("a", 1, 2 * MINUTE), ("b", 1, 2), ("a", 1, 2))
        task.commit()
        fill(task, ("b", 3, 2 * MINUTE), ("ab", 7, 8))
        forwards = read_all(task.store.fetch_range(None, None))
        assert len(forwards) == 5
        assert read_all(task.store.backward_fetch_range(None, None)) == forwards[::-1]


def test_in_memory_they_are_ordered_by_end_then_key_then_the_latest_start() -> None:
    with Task(session(persistent=False)) as task:
        fill(task, ("b", 5, 9), ("a", 1, 9), ("b", 7, 9), ("c", 0, 3))
        assert [tuple(s) for s, _ in read_all(task.store.all())] == [
            ("c", 0, 3),
            ("a", 1, 9),
            ("b", 7, 9),
            ("b", 5, 9),
        ]


@VARIANTS
def test_past_their_retention_they_are_hidden_and_dropped(options: dict[str, bool], tmp_path: Path) -> None:
    with open_task(options, tmp_path, retention_ms=2 * MINUTE) as task:
        store = task.store
        fill(task, ("a", 0, 10))
        task.commit()
        fill(task, ("b", 2 * MINUTE, 2 * MINUTE + 10))
        task.commit()
        # As in Java, what is still in the cache is seen.
        cached = options.get("cached", False)
        assert store.fetch_session("a", 0, 10) == ("a0-10" if cached else None)
        assert len(read_all(store.fetch("a"))) == int(cached)
        fill(task, ("c", 10 * MINUTE, 10 * MINUTE), ("a", 5, 15))
        task.commit()
        assert task.expired == 1
        assert [key[:1] for key, *_ in store.logged()] == [b"c"]


def test_a_session_is_found_for_its_whole_retention() -> None:
    with Task(session(persistent=False, retention_ms=100)) as task:
        fill(task, ("a", 0, 10), ("b", 50, 109))
        assert task.store.fetch_session("a", 0, 10) == "a0-10"
        fill(task, ("b", 50, 110))
        assert task.store.fetch_session("a", 0, 10) is None


def test_the_changelog_has_end_before_start() -> None:
    with Task(session()) as task:
        task.at(7)
        task.store.put(Windowed("a", 10, 20), "x")
        task.at(8)
        task.store.remove(Windowed("a", 10, 20))
        key = b"a" + (20).to_bytes(8, "big") + (10).to_bytes(8, "big")
        assert task.records() == [(key, b"x", 7), (key, None, 8)]


def test_a_cache_writes_the_last_value_of_each_session_once() -> None:
    with Task(session(cached=True)) as task:
        told: list[Any] = []
        task.store.on_flush(lambda *change: told.append(change[:5]), True)
        task.store.put(Windowed("a", 1, 2), "x")
        task.store.put(Windowed("a", 1, 2), "y")
        task.store.put(Windowed("b", 1, 2), "z")
        task.store.remove(Windowed("b", 1, 2))
        task.commit()
        assert told == [(b"a", 1, 2, "y", None)]
        assert [value for _, value, _ in task.records()] == [b"y"]
        task.store.remove(Windowed("a", 1, 2))
        task.commit()
        assert told[1:] == [(b"a", 1, 2, None, "y")]


def test_by_time_they_are_found_by_their_ends() -> None:
    with Task(session(by_time=True, retention_ms=MINUTE)) as task:
        fill(task, ("b", 5, 9), ("a", 1, 9), ("c", 0, 3), ("a", 20, 70_000))
        task.commit()
        fill(task, ("d", 4, 4))
        found = [tuple(s) for s, _ in read_all(task.store.find_ended_sessions(0, 9))]
        assert found == [("c", 0, 3), ("d", 4, 4), ("a", 1, 9), ("b", 5, 9)]
        assert [s.key for s, _ in read_all(task.store.find_ended_sessions(4, 8))] == ["d"]
    with Task(session()) as task, pytest.raises(StateError, match="cannot be read by the end"):
        task.store.find_ended_sessions(0, 9)


@VARIANTS
def test_a_restored_store_is_the_same(options: dict[str, bool], tmp_path: Path) -> None:
    with open_task(options, tmp_path / "one", retention_ms=10 * MINUTE) as task:
        fill(task, ("a", 0, 10), ("b", MINUTE, 2 * MINUTE), ("b", 3 * MINUTE, 4 * MINUTE))
        task.store.remove(Windowed("b", MINUTE, 2 * MINUTE))
        task.commit()
        expected, logged = read_all(task.store.all()), list(task.store.logged())
        records = task.records()
    with open_task(options, tmp_path / "other", retention_ms=10 * MINUTE) as task:
        task.state.restore("store", batch_of(records))
        assert read_all(task.store.all()) == expected
        assert list(task.store.logged()) == logged
        if options.get("by_time"):
            assert read_all(task.store.find_ended_sessions(0, 10 * MINUTE)) == expected


@pytest.mark.parametrize("by_time", [False, True])
def test_an_abort_goes_back_to_the_commit_and_a_restart_finds_it(by_time: bool, tmp_path: Path) -> None:
    spec = session(by_time=by_time, retention_ms=2 * MINUTE)
    with Task(spec, directory=tmp_path / "0_0") as task:
        fill(task, ("a", 0, 10))
        task.commit()
        task.store.remove(Windowed("a", 0, 10))
        fill(task, ("b", 10 * MINUTE, 10 * MINUTE))
        task.state.abort()
        assert task.store.fetch_session("a", 0, 10) == "a0-10"
        fill(task, ("b", MINUTE, MINUTE))
        task.commit()
    with Task(spec, directory=tmp_path / "0_0") as task:
        assert [s.key for s, _ in read_all(task.store.all())] == ["a", "b"]
        fill(task, ("c", 20 * MINUTE, 20 * MINUTE))
        task.commit()
        assert [s.key for s, _ in read_all(task.store.all())] == ["c"]


def test_another_order_is_another_layout(tmp_path: Path) -> None:
    with Task(timestamped_window(logged=False), directory=tmp_path / "0_0"):
        pass
    with pytest.raises(StateError, match="another layout"):
        Task(timestamped_window(logged=False, by_time=True), directory=tmp_path / "0_0")


def test_stores_make_session_stores() -> None:
    spec = Stores.session_store("s", str, int, retention=50, cached=True)
    assert (spec.kind, spec.retention_ms, spec.cached, spec.persistent) == ("session", 50, True, True)
    with pytest.raises(TopologyError, match="must not be negative"):
        Stores.session_store("s", str, int, retention=-1)


KEYS = st.sampled_from(["a", "aa", "b"])
TIMES = st.integers(0, 40).map(lambda n: n * 10_000)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, TIMES, TIMES),
        st.tuples(st.just("remove"), KEYS, TIMES, TIMES),
        st.tuples(st.just("commit")),
        st.tuples(st.just("find"), KEYS, TIMES, TIMES),
    ),
    max_size=40,
)


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("cached", [True, False])
@examples(25)
@given(changes=CHANGES)
def test_it_is_a_dictionary_of_sessions(changes: list[Any], persistent: bool, cached: bool) -> None:
    """Retention is longer than all times, so nothing expires."""
    model: dict[Windowed[str], str] = {}
    with Task(session(persistent=persistent, cached=cached, retention_ms=500_000)) as task:
        for number, change in enumerate(changes):
            if change[0] == "commit":
                task.commit()
                continue
            what, key, one, other = change
            window = Windowed(key, min(one, other), max(one, other))
            if what == "put":
                model[window] = str(number)
                task.store.put(window, str(number))
            elif what == "remove":
                model.pop(window, None)
                task.store.remove(window)
            else:
                found = read_all(task.store.find_sessions(key, one, other))
                expected = [
                    (w, v) for w, v in model.items() if w.key == key and w.end >= one and w.start <= other
                ]
                assert sorted(found) == sorted(expected)
                assert [w.end for w, _ in found] == sorted(w.end for w, _ in expected)
        assert dict(read_all(task.store.all())) == model


@pytest.mark.parametrize("persistent", [True, False])
def test_through_a_cache_backwards_finds_the_same_whatever_the_bounds(persistent: bool) -> None:
    """Kafka Streams misses the session that ends after the latest start, and fails for the negative bound."""
    with Task(session(cached=True, persistent=persistent, retention_ms=10 * MINUTE)) as task:
        fill(task, ("a", 10, 2 * MINUTE), ("a", 5, 6))
        found = read_all(task.store.find_sessions("a", -2 * MINUTE, 20))
        assert [(s.start, s.end) for s, _ in found] == [(5, 6), (10, 2 * MINUTE)]
        assert read_all(task.store.backward_find_sessions("a", -2 * MINUTE, 20)) == found[::-1]


@pytest.mark.parametrize("persistent", [True, False])
def test_sessions_with_equal_ends_are_found_once_through_a_cache(persistent: bool) -> None:
    """In memory Kafka Streams gives the first one twice: its cache is in another order than its store."""
    with Task(session(cached=True, persistent=persistent)) as task:
        fill(task, ("a", 5, 9), ("a", 9, 9))
        task.commit()
        found = [(s.start, s.end) for s, _ in read_all(task.store.fetch("a"))]
        assert found == ([(5, 9), (9, 9)] if persistent else [(9, 9), (5, 9)])


def test_by_time_what_can_still_be_emitted_is_logged_past_its_retention() -> None:
    with Task(session(by_time=True, retention_ms=10)) as task:
        fill(task, ("a", 0, 5), ("b", 100, 100))
        assert read_all(task.store.fetch("a")) == []
        assert [key[:1] for key, *_ in task.store.logged()] == [b"a", b"b"]
        assert [s.key for s, _ in read_all(task.store.find_ended_sessions(0, 99))] == ["a"]
