"""Stores that are built out of sorted files are those that a changelog would have restored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pystreams.errors import StateCorruptedError
from pystreams.record import ContextCell, RecordBatch
from pystreams.state import sorted_files
from pystreams.state.formats import pack_window_suffix
from pystreams.state.layers.session_layer import session_key
from pystreams.state.sorted_files import SortedFiles, TableFormat, build_stores, install_stores
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores
from tests.examples import examples
from tests.unit.state.state_kit import key_value, session, timestamped, timestamped_window, window

Entries = list[tuple[bytes, bytes, int]]


def opened(directory: Path, spec: StoreSpec, origin: str | None = "") -> TaskStores:
    return TaskStores.open(directory, [spec], cell=ContextCell(), log_of=lambda _: None, origin=origin)


def built(directory: Path, spec: StoreSpec, entries: Entries) -> None:
    directory.mkdir(parents=True)
    files = SortedFiles(directory, "table")
    format = TableFormat.of(spec)
    for entry in entries:
        for one in format.to_table(*entry):
            files.add(*one)
    latest = [max(entries, key=lambda entry: format.time_of(entry[0]))] if spec.retention_ms else []
    build_stores(directory, [spec], {"store": files.finish()}, {"store": latest} if latest else {}, {})


def restored(directory: Path, spec: StoreSpec, entries: Entries) -> None:
    state = opened(directory, spec)
    keys, values, timestamps = (list(column) for column in zip(*entries, strict=True))
    batch = RecordBatch("t", 0, keys, values, timestamps, list(range(len(keys))), None, len(keys))
    state.restore("store", batch)
    state.close()


def logged(directory: Path, spec: StoreSpec) -> list[Any]:
    state = opened(directory, spec)
    try:
        return list(state.stores["store"].logged())
    finally:
        state.close()


def entries_of(spec: StoreSpec, keys: dict[bytes, tuple[bytes, int]]) -> Entries:
    if not spec.retention_ms:
        return [(key, value, time) for key, (value, time) in keys.items()]
    times = {key: time % 900 // 10 * 10 for key, (_, time) in keys.items()}
    if spec.kind == "session":
        return [
            (session_key(key, times[key], times[key] + 7), value, time) for key, (value, time) in keys.items()
        ]
    return [(key + pack_window_suffix(times[key], 0), value, time) for key, (value, time) in keys.items()]


@pytest.mark.parametrize(
    "spec",
    [
        key_value(),
        timestamped(),
        window(),
        timestamped_window(),
        timestamped_window(by_time=True),
        session(),
        session(by_time=True),
    ],
    ids=lambda s: f"{s.kind}{' by time' if s.by_time else ''}",
)
@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.dictionaries(
        st.binary(min_size=1, max_size=6), st.tuples(st.binary(max_size=9), st.integers(0, 10**6)), min_size=1
    )
)
def test_it_is_as_if_restored(spec: StoreSpec, keys: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("stores")
    entries = entries_of(spec, keys)
    built(folder / "built", spec, entries)
    restored(folder / "restored", spec, entries)
    assert logged(folder / "built", spec) == logged(folder / "restored", spec)


def test_several_files_in_any_order_make_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_files, "SORTED_BYTES", 100)
    spec = timestamped()
    entries = [(b"%03d" % (i * 37 % 500), b"%08d" % i, i) for i in range(500)]
    built(tmp_path / "built", spec, entries)
    restored(tmp_path / "restored", spec, entries)
    assert logged(tmp_path / "built", spec) == logged(tmp_path / "restored", spec)


def test_installed_they_are_gone_on_with_from_their_offsets(tmp_path: Path) -> None:
    spec = timestamped()
    built(tmp_path / "built", spec, [(b"a", b"12345678", 5)])
    restored(tmp_path / "0_0", spec, [(b"old", b"12345678", 5)])
    for _ in range(2):
        install_stores(tmp_path / "built", tmp_path / "0_0", {"store": 17}, "log attempt")
    with pytest.raises(StateCorruptedError, match="before a backfill's hand-over"):
        opened(tmp_path / "0_0", spec, "log next")
    with pytest.raises(StateCorruptedError, match="belongs to another log"):
        opened(tmp_path / "0_0", spec, "other attempt")
    state = opened(tmp_path / "0_0", spec, "log attempt")
    try:
        assert state.changelog_offset("store") == 17
        assert [key for key, *_ in state.stores["store"].logged()] == [b"a"]
    finally:
        state.close()


def test_small_entries_are_not_taken_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits to be sorted is bounded by the memory that it needs, not by its bytes alone."""
    monkeypatch.setattr(sorted_files, "SORTED_BYTES", 10_000)
    files = SortedFiles(tmp_path, "table")
    for number in range(100):
        files.add(b"%d" % number, b"")
    assert len(files.finish()) == 2
