"""A store whose values are to keep headers from now on, or no longer, keeps what it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pystreams.errors import StateCorruptedError
from pystreams.record import NO_HEADERS
from pystreams.state import conversion
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.formats import AggregationWithHeaders
from pystreams.state.spec import StoreSpec
from pystreams.windowed import Windowed
from tests.unit.state.state_kit import Task, batch_of, read_all, session, timestamped, timestamped_window

HEADERS = (("h", b"1"), ("n", None))


def _fill_keys(store: Any, with_headers: bool) -> None:
    for number in range(25):
        item = (number, 100 + number)
        store.put(f"k{number:02}", (*item, HEADERS) if with_headers else item)


def _fill_windows(store: Any, with_headers: bool) -> None:
    for number in range(25):
        item = (number, 100 + number)
        store.put(f"k{number % 3}", (*item, HEADERS) if with_headers else item, 10 * number)


def _fill_sessions(store: Any, with_headers: bool) -> None:
    for number in range(25):
        value = str(number)
        item = AggregationWithHeaders(value, HEADERS) if with_headers else value
        store.put(Windowed(f"k{number % 3}", 10 * number, 10 * number + 5), item)


KINDS: list[tuple[StoreSpec, Callable[[Any, bool], None]]] = [
    (timestamped(), _fill_keys),
    (timestamped_window(), _fill_windows),
    (timestamped_window(by_time=True), _fill_windows),
    (session(), _fill_sessions),
    (session(by_time=True), _fill_sessions),
]
BY_KIND = pytest.mark.parametrize(
    ("spec", "fill"), KINDS, ids=["keys", "windows", "windows by time", "sessions", "sessions by time"]
)


def content(store: Any) -> list[Any]:
    return read_all(store.without_headers().all())


def headers_in(store: Any) -> set[Any]:
    return {value.headers for _, value in read_all(store.all())}


def stored(directory: Path, spec: StoreSpec, fill: Callable[[Any, bool], None]) -> list[Any]:
    with Task(spec, directory=directory) as task:
        fill(task.store, spec.headers)
        task.commit()
        return content(task.store)


@BY_KIND
def test_values_that_had_no_headers_are_there_with_none(
    spec: StoreSpec, fill: Callable[[Any, bool], None], tmp_path: Path
) -> None:
    before = stored(tmp_path / "0_0", spec, fill)
    with Task(replace(spec, headers=True), directory=tmp_path / "0_0") as task:
        assert content(task.store) == before
        assert headers_in(task.store) == {NO_HEADERS}
        fill(task.store, True)
        task.commit()
    with Task(replace(spec, headers=True), directory=tmp_path / "0_0") as task:
        assert content(task.store) == before
        assert headers_in(task.store) == {HEADERS}


@BY_KIND
def test_values_that_had_headers_are_there_without(
    spec: StoreSpec, fill: Callable[[Any, bool], None], tmp_path: Path
) -> None:
    before = stored(tmp_path / "0_0", replace(spec, headers=True), fill)
    for _ in range(2):
        with Task(spec, directory=tmp_path / "0_0") as task:
            assert read_all(task.store.all()) == before


@BY_KIND
@pytest.mark.parametrize("killed_at", [1, 2, 3, 4])
@pytest.mark.parametrize("wanted_then", [True, False])
def test_who_is_killed_in_between_goes_on_from_there(
    spec: StoreSpec,
    fill: Callable[[Any, bool], None],
    killed_at: int,
    wanted_then: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = stored(tmp_path / "0_0", spec, fill)
    monkeypatch.setattr(conversion, "_ENTRIES", 10)
    writes = 0
    write = RocksDatabase.write

    def killing(self: RocksDatabase, *arguments: Any, **named: Any) -> None:
        nonlocal writes
        if named.get("metadata", {}).get(b"converting/store") is not None:
            writes += 1
            if writes == killed_at:
                raise KeyboardInterrupt
        write(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(RocksDatabase, "write", killing)
        with pytest.raises(KeyboardInterrupt):
            Task(replace(spec, headers=True), directory=tmp_path / "0_0")
    with Task(replace(spec, headers=wanted_then), directory=tmp_path / "0_0") as task:
        assert content(task.store) == before


def test_a_changelog_restores_both_forms(tmp_path: Path) -> None:
    records = [(b"a", (1).to_bytes(8, "big"), 5), (b"b", (2).to_bytes(8, "big"), 6), (b"a", None, 7)]
    batch = batch_of(records)
    batch.headers = [HEADERS, HEADERS, HEADERS]
    for headers, expected in ((True, [("b", (2, 6, HEADERS))]), (False, [("b", (2, 6))])):
        with Task(timestamped(headers=headers), directory=tmp_path / str(headers)) as task:
            task.state.restore("store", batch)
            assert read_all(task.store.all()) == expected


def test_a_store_that_has_its_topic_for_a_changelog_is_restored_as_it_was_filled(tmp_path: Path) -> None:
    # What fills it leaves headers out: the same rows before and after a restart.
    spec = timestamped(headers=True, logged=False, source_topic="in")
    batch = batch_of([(b"a", (1).to_bytes(8, "big"), 5)])
    batch.headers = [HEADERS]
    with Task(spec, directory=tmp_path / "0_0") as task:
        task.state.restore("store", batch)
        assert task.store.get("a") == (1, 5, NO_HEADERS)


def test_another_kind_of_store_is_not_converted(tmp_path: Path) -> None:
    stored(tmp_path / "0_0", timestamped(), _fill_keys)
    with pytest.raises(StateCorruptedError, match="another layout"):
        Task(session(headers=True), directory=tmp_path / "0_0")
