"""A global store is read by every thread while its own writes it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from pystreams.runtime.global_state import GlobalStoreView
from pystreams.state.stores import Stores
from tests.unit.state.state_kit import Task


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
        for n in range(1_500):
            with lock:
                task.store.put(f"k{n % (2 * size)}", str(n))
                with task.store.all() as rows:
                    kept = len(list(rows))
                assert kept == min(n + 1, size)
        ended.set()
        for reader in readers:
            reader.join()
        assert failures == []
