"""Every kind of store opens, commits, and is the same again after a restore from its changelog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from pystreams.record import RecordContext
from pystreams.serde import STR
from pystreams.state.spec import StoreKind, StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.windowed import Windowed
from tests.unit.state.state_kit import (
    Task,
    batch_of,
    key_value,
    session,
    timestamped,
    timestamped_window,
    window,
)

CONTEXT: RecordContext = ("in", 0, 7, 16, ())


def put_joined(store: Any) -> None:
    for value in "12":
        store.write(b"a", 10, value)


#: How a store of each kind is made, and how something is written to it.
KINDS: dict[StoreKind, tuple[StoreSpec, Callable[[Any], object]]] = {
    "key_value": (key_value(), lambda store: store.put("a", "1")),
    "timestamped_key_value": (timestamped(), lambda store: store.put("a", (1, 5))),
    "window": (window(), lambda store: store.put("a", "1", 10)),
    "timestamped_window": (timestamped_window(), lambda store: store.put("a", (1, 5), 10)),
    "join_window": (
        StoreSpec(
            "store", "join_window", STR, STR, window_size_ms=20, retention_ms=30, retain_duplicates=True
        ),
        put_joined,
    ),
    "session": (session(), lambda store: store.put(Windowed("a", 10, 20), "1")),
    "versioned": (
        Stores.versioned_store("store", str, str, history=100),
        lambda store: [store.put("a", value, 10 * int(value)) for value in "12"],
    ),
    "list": (Stores.list_store("store", str, str), lambda store: [store.put("a", value) for value in "12"]),
    "buffer": (
        StoreSpec("store", "buffer", STR, STR, persistent=False),
        lambda store: store.put("a", 16, "new", "old", CONTEXT),
    ),
    "join_buffer": (StoreSpec("store", "join_buffer", STR, STR), lambda store: store.put("a", "1", CONTEXT)),
}


def test_every_kind_is_here() -> None:
    assert set(KINDS) == set(get_args(StoreKind))


@pytest.mark.parametrize("kind", KINDS)
def test_its_changelog_restores_it(kind: StoreKind, tmp_path: Path) -> None:
    spec, write = KINDS[kind]
    with Task(spec, directory=tmp_path / "0_0") as task:
        write(task.store)
        task.commit()
        logged = list(task.store.logged())
        changelog = task.records()
    assert logged
    assert changelog
    with Task(spec, directory=tmp_path / "0_1") as restored:
        restored.state.restore("store", batch_of(changelog))
        assert list(restored.store.logged()) == logged


@pytest.mark.parametrize("kind", KINDS)
def test_its_directory_holds_it(kind: StoreKind, tmp_path: Path) -> None:
    spec, write = KINDS[kind]
    with Task(spec, directory=tmp_path / "0_0") as task:
        write(task.store)
        task.commit()
        logged = list(task.store.logged())
        offset = task.state.changelog_offset("store")
    with Task(spec, directory=tmp_path / "0_0") as opened:
        again = opened.state.changelog_offset("store")
        if spec.persistent:
            assert list(opened.store.logged()) == logged
            assert again == offset
        else:
            assert again is None
