"""A global store is read by every thread while its own writes it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from pystreams.engine.global_state import GlobalStoreView
from pystreams.errors import StateError
from pystreams.state.spec import StoreKind, StoreSpec
from pystreams.state.store import READS
from pystreams.state.stores.factory import Stores
from tests.unit.state.state_kit import Task, key_value, window
from tests.unit.state.test_every_kind_of_store import KINDS


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_readers_do_not_upset_which_entries_a_bounded_store_keeps(hurried: None) -> None:
    """To read there is to write: which entry was used last."""
    lock, size = threading.RLock(), 8
    with Task(Stores.lru_map("rows", key=str, value=str, max_entries=size)) as task:
        view = GlobalStoreView(task.store, lock)
        ended = threading.Event()
        failures: list[Exception] = []

        def read() -> None:
            keys = [view.encode_key(f"k{n}") for n in range(2 * size)]
            try:
                while not ended.is_set():
                    for key in keys:
                        view.read(key)
            except Exception as error:  # noqa: BLE001 - told below
                failures.append(error)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        try:
            for n in range(1_500):
                with lock:
                    task.store.put(f"k{n % (2 * size)}", str(n))
                    with task.store.all() as rows:
                        kept = len(list(rows))
                    assert kept == min(n + 1, size)
        finally:
            ended.set()
            for reader in readers:
                reader.join()
        assert failures == []


@pytest.mark.parametrize(
    "spec", [key_value(persistent=False), window(persistent=False)], ids=lambda spec: spec.kind
)
def test_an_iterator_gives_what_was_there(spec: StoreSpec) -> None:
    with Task(spec) as task:
        put = (
            task.store.put if spec.kind == "key_value" else lambda key, value: task.store.put(key, value, 10)
        )
        view = GlobalStoreView(task.store, threading.RLock())
        for key in "abc":
            put(key, "x")
        before, after = view.all(), view.all()
        next(before)
        put("b", None)
        put("d", "x")
        assert len(list(before)) == 2
        assert len(list(after)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_what_programs_read_can_be_read_and_nothing_can_be_written(kind: StoreKind) -> None:
    with Task(KINDS[kind][0]) as task:
        view = GlobalStoreView(task.store, threading.RLock())
        for name in READS:
            if hasattr(task.store, name):
                assert callable(getattr(view, name))
        for name in ("put", "write", "put_if_absent", "delete"):
            if hasattr(task.store, name):
                with pytest.raises(StateError, match="can only be read"):
                    getattr(view, name)


def test_the_versions_of_a_key_can_be_read() -> None:
    with Task(KINDS["versioned"][0]) as task:
        KINDS["versioned"][1](task.store)
        found = GlobalStoreView(task.store, threading.RLock()).versions("a")
        assert [(version.value, version.timestamp) for version in found] == [("1", 10), ("2", 20)]
