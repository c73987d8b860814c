"""Other threads read a task's stores as of its last commit: whole commits, with every method that reads, until the task
closes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.state.disk.rocksdb import SLICE_ENTRIES
from pystreams.state.disk.rocksdb_snapshot import RocksSnapshot
from pystreams.state.iterators import read_to_end
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.windowed import Windowed
from tests.unit.state.state_kit import Task, key_value, session, timestamped, timestamped_window, window

KEYS = ("a", "b", "ba", "c")
INPUT = TopicPartition("in", 0)

Reads = dict[str, Callable[[Any], Any]]

OF_KEYS: Reads = {
    "get": lambda store: [store.get(key) for key in KEYS],
    "range": lambda store: store.range("a", "b"),
    "all": lambda store: store.all(),
    "approximate_count": lambda store: store.approximate_count(),
}
OF_KEY_VALUES: Reads = {
    **OF_KEYS,
    "reverse_range": lambda store: store.reverse_range("b", None),
    "reverse_all": lambda store: store.reverse_all(),
    "prefix_scan": lambda store: store.prefix_scan("b"),
}
OF_WINDOWS: Reads = {
    "fetch": lambda store: [store.fetch(key, 10) for key in KEYS],
    "fetch_span": lambda store: store.fetch("a", 0, 1_500),
    "backward_fetch": lambda store: store.backward_fetch("a", 0, 1_500),
    "fetch_range": lambda store: store.fetch_range("a", "b", 0, 1_500),
    "backward_fetch_range": lambda store: store.backward_fetch_range(None, "b", 0, 1_500),
    "fetch_all": lambda store: store.fetch_all(5, 1_500),
    "backward_fetch_all": lambda store: store.backward_fetch_all(5, 1_500),
    "all": lambda store: store.all(),
    "backward_all": lambda store: store.backward_all(),
}
OF_SESSIONS: Reads = {
    "fetch": lambda store: store.fetch("a"),
    "backward_fetch": lambda store: store.backward_fetch("a"),
    "fetch_session": lambda store: store.fetch_session("a", 10, 20),
    "find_sessions": lambda store: store.find_sessions("a", 0, 1_500),
    "backward_find_sessions": lambda store: store.backward_find_sessions("a", 0, 1_500),
    "find_sessions_range": lambda store: store.find_sessions_range("a", "b", 0, 1_500),
    "all": lambda store: store.all(),
}
OF_VERSIONS: Reads = {
    "get": lambda store: [store.get(key) for key in KEYS],
    "as_of": lambda store: [store.get("a", time) for time in (0, 12, 1_400)],
    "versions": lambda store: store.versions("a"),
}


def put_windows(store: Any, value: Any, time_ms: int) -> None:
    for key in KEYS[:3]:
        store.put(key, value, time_ms)


def put_keys(store: Any, value: Any, _: int) -> None:
    for key in KEYS[:3]:
        store.put(key, value)


def put_sessions(store: Any, value: Any, time_ms: int) -> None:
    for key in KEYS[:3]:
        store.put(Windowed(key, time_ms, time_ms + 10), value)


#: The spec of a store of each kind, how two values are written at a time, and the reads that it has.
KINDS: dict[str, tuple[StoreSpec, Callable[[Any, Any, int], None], tuple[Any, Any], Reads]] = {
    "key-value": (key_value(), put_keys, ("1", "2"), OF_KEY_VALUES),
    "cached": (key_value(cached=True), put_keys, ("1", "2"), OF_KEY_VALUES),
    "timestamped": (timestamped(cached=True), put_keys, ((1, 5), (2, 6)), OF_KEY_VALUES),
    "in memory": (key_value(persistent=False), put_keys, ("1", "2"), OF_KEY_VALUES),
    "least recently used": (key_value(persistent=False, max_entries=5), put_keys, ("1", "2"), OF_KEY_VALUES),
    "windows": (window(), put_windows, ("1", "2"), OF_WINDOWS),
    "windows by time": (timestamped_window(by_time=True), put_windows, ((1, 5), (2, 6)), OF_WINDOWS),
    "windows in memory": (timestamped_window(persistent=False), put_windows, ((1, 5), (2, 6)), OF_WINDOWS),
    "sessions": (session(), put_sessions, ("1", "2"), OF_SESSIONS),
    "sessions in memory": (session(persistent=False), put_sessions, ("1", "2"), OF_SESSIONS),
    "versions": (
        Stores.versioned_store("store", str, str, history=1_000),
        put_windows,
        ("1", "2"),
        OF_VERSIONS,
    ),
    "lists": (Stores.list_store("store", str, str), put_keys, ("1", "2"), OF_KEYS),
}


def own(task: Task, reads: Reads) -> dict[str, Any]:
    return {name: read_to_end(read(task.store)) for name, read in reads.items()}


def committed(task: Task, reads: Reads) -> dict[str, Any]:
    found = {}
    for name, read in reads.items():
        answer = task.state.committed_stores.read("store", read)
        assert answer is not None
        found[name] = answer.result
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_sees_the_last_commit_and_nothing_after_it(kind: str, tmp_path: Path) -> None:
    spec, put, (first, second), reads = KINDS[kind]
    with Task(spec, directory=tmp_path / "0_0") as task:
        task.state.committed_stores.open()
        put(task.store, first, 10)
        task.commit()
        after_one = own(task, reads)
        assert any(after_one.values())
        assert committed(task, reads) == after_one
        # Far enough that the first windows expire.
        put(task.store, second, 1_200)
        assert committed(task, reads) == after_one
        task.commit()
        after_two = own(task, reads)
        assert after_two != after_one
        assert committed(task, reads) == after_two


def test_what_is_given_up_was_never_seen(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        task.state.committed_stores.open()
        task.store.put("a", "1")
        task.commit()
        task.store.put("a", "2")
        task.state.abort()
        assert committed(task, OF_KEYS)["get"] == ["1", None, None, None]


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        task.state.committed_stores.open()
        with pytest.raises(StateError, match="store store can only be read here"):
            task.state.committed_stores.read("store", lambda store: store.put("a", "1"))


def test_before_it_is_opened_and_after_it_is_closed_nobody_reads(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        assert task.state.committed_stores.read("store", lambda store: store.get("a")) is None
        task.state.committed_stores.open()
        assert task.state.committed_stores.read("store", lambda store: store.get("a")) is not None
    assert task.state.committed_stores.read("store", lambda store: store.get("a")) is None


def test_an_answer_has_the_offsets_of_its_commit(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        task.state.committed_stores.open({INPUT: 3})
        for offset in (4, 5, 9):
            task.store.put("a", str(offset))
            task.state.commit({}, input_offsets={INPUT: offset})
            answer = task.state.committed_stores.read("store", lambda store: store.get("a"))
            assert answer == (str(offset), {INPUT: offset})


@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_a_reader_never_sees_half_of_a_commit(tmp_path: Path, persistent: bool) -> None:
    # More entries than one write of a commit has.
    count = 2 * SLICE_ENTRIES + 10
    keys = [f"k{number:05}" for number in range(count)]
    with Task(key_value(persistent=persistent), directory=tmp_path / "0_0") as task:
        stores, stop, failures = task.state.committed_stores, threading.Event(), []
        stores.open({INPUT: 0})
        seen: set[str] = set()

        def ends(store: Any) -> list[Any]:
            return [store.get(keys[0]), store.get(keys[-1]), store.get(keys[count // 2])]

        def read() -> None:
            try:
                while not stop.is_set():
                    some, everything = stores.read("store", ends), stores.read("store", lambda s: s.all())
                    assert some is not None
                    assert everything is not None
                    assert len({*some.result}) == 1, some
                    assert some.result[0] in (None, str(some.offsets[INPUT])), some
                    values = {value for _, value in everything.result}
                    assert len(values) <= 1, values
                    assert len(everything.result) in (0, count)
                    seen.update(values)
            except BaseException as error:  # noqa: BLE001 - it is raised below
                failures.append(error)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        rounds = 0
        while (len(seen) < 5 or rounds < 10) and not failures and rounds < 2_000:
            rounds += 1
            for key in keys:
                task.store.put(key, str(rounds))
            task.state.commit({}, input_offsets={INPUT: rounds})
        stop.set()
        for reader in readers:
            reader.join(120)
        if failures:
            raise failures[0]
        assert len(seen) >= 5


@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_a_task_closes_under_readers_and_leaves_nothing_locked(tmp_path: Path, persistent: bool) -> None:
    for _ in range(20):
        with Task(key_value(persistent=persistent), directory=tmp_path / "0_0") as task:
            stores = task.state.committed_stores
            stores.open()
            for number in range(3_000):
                task.store.put(f"k{number}", "value")
            task.commit()
            begun, failures = threading.Semaphore(0), []

            def read(stores: Any = stores, begun: Any = begun, failures: Any = failures) -> None:
                try:
                    while stores.read("store", lambda store: store.all()) is not None:
                        begun.release()
                except StateError as error:
                    if "was closed while it was read" not in str(error):
                        failures.append(error)
                except BaseException as error:  # noqa: BLE001 - it is raised below
                    failures.append(error)

            readers = [threading.Thread(target=read) for _ in range(3)]
            for reader in readers:
                reader.start()
            assert begun.acquire(timeout=120)
            task.state.close()
            for reader in readers:
                reader.join(120)
                assert not reader.is_alive()
            assert not failures
        # The next iteration opens the same directory: no reader has kept the lock of the database.


def test_a_long_read_does_not_keep_a_task_from_committing(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        stores = task.state.committed_stores
        stores.open()
        task.store.put("a", "1")
        task.commit()

        def read(store: Any) -> list[Any]:
            before = store.get("a")
            for value in "23":
                task.store.put("a", value)
                task.commit()
            return [before, store.get("a")]

        answer = stores.read("store", read)
        assert answer is not None
        assert answer.result == ["1", "1"]
        assert committed(task, OF_KEYS)["get"][0] == "3"


@pytest.mark.parametrize(("persistent", "during"), [(True, "1"), (False, None)], ids=["on disk", "in memory"])
def test_a_reader_that_does_not_wait_gets_no_answer_if_it_would_have_to(
    tmp_path: Path, persistent: bool, during: str | None
) -> None:
    with Task(key_value(persistent=persistent), directory=tmp_path / "0_0") as task:
        stores = task.state.committed_stores

        def at_once() -> str | None:
            """What another thread gets."""
            with ThreadPoolExecutor(1) as other:
                answer = other.submit(stores.read_at_once, "store", lambda store: store.get("a")).result(120)
            return None if answer is None else answer.result

        task.store.put("a", "1")
        task.commit()
        assert at_once() is None
        stores.open()
        with stores.changing():
            assert at_once() is None
        assert at_once() == "1"
        with stores.changing():
            # On disk the first reader has left a view of the last commit, which nothing changes.
            assert at_once() == during
        assert at_once() == "1"


def test_who_does_not_wait_does_not_keep_a_task_from_committing_either(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task, ThreadPoolExecutor(1) as others:
        task.store.put("a", "1")
        task.commit()
        task.state.committed_stores.open()

        def write() -> None:
            task.store.put("a", "2")
            task.commit()

        def read(store: Any) -> list[Any]:
            before = store.get("a")
            others.submit(write).result(60)
            return [before, store.get("a")]

        answer = task.state.committed_stores.read_at_once("store", read)
        assert answer is not None
        assert answer.result == ["1", "1"]


def test_a_mark_is_the_same_as_long_as_readers_read_the_same(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        stores, marks = task.state.committed_stores, []

        def another() -> bool:
            marks.append(stores.mark)
            return all(mark is not stores.mark for mark in marks[:-1])

        assert another()
        stores.open({INPUT: 0})
        assert another()
        task.store.put("a", "1")
        assert committed(task, OF_KEYS)["get"][0] is None
        assert not another()
        task.state.abort()
        assert not another()
        task.store.put("a", "2")
        task.commit()
        assert another()
        with stores.closed():
            assert another()
        assert another()
        with pytest.raises(ValueError, match="disk"), stores.changing():
            raise ValueError("disk")
        assert another()


def test_who_follows_a_changelog_and_then_runs_answers_with_offsets(tmp_path: Path) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        stores = task.state.committed_stores
        for offsets in ({}, {INPUT: 7}):
            stores.open(offsets)
            answer = stores.read("store", lambda store: store.get("a"))
            assert answer is not None
            assert answer.offsets == offsets


def test_nobody_reads_a_commit_that_could_not_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Task(key_value(), directory=tmp_path / "0_0") as task:
        task.state.committed_stores.open()
        assert committed(task, OF_KEYS)["get"][0] is None

        def fail(*_: Any) -> None:
            raise OSError("no snapshot")

        monkeypatch.setattr(RocksSnapshot, "__init__", fail)
        task.store.put("a", "1")
        with pytest.raises(OSError, match="no snapshot"):
            task.commit()
        monkeypatch.undo()
        assert task.state.committed_stores.read("store", lambda store: store.get("a")) is None


changes = st.lists(
    st.dictionaries(st.sampled_from(KEYS), st.none() | st.sampled_from("123"), max_size=4), max_size=6
)


@given(commits=changes, reads=st.lists(st.booleans(), min_size=6, max_size=6))
def test_a_table_in_memory_has_the_order_of_its_keys_whenever_it_is_read(
    commits: list[dict[str, str | None]], reads: list[bool]
) -> None:
    expected: dict[str, str] = {}
    with Task(key_value(persistent=False)) as task:
        task.state.committed_stores.open()
        for commit, is_read in zip(commits, reads, strict=False):
            for key, value in commit.items():
                task.store.put(key, value)
                expected.pop(key, None)
                if value is not None:
                    expected[key] = value
            task.commit()
            if is_read:
                assert committed(task, {"all": lambda store: store.all()})["all"] == sorted(expected.items())
        assert committed(task, {"all": lambda store: store.all()})["all"] == sorted(expected.items())
