"""Stores without a cache: RocksDB and memory, commit and restore."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pystreams.record import RecordBatch
from pystreams.serde import INT, STR
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores
from tests.benchmarks.micro.measure import Case
from tests.benchmarks.micro.rig import NOON_MS, opened

N = 10_000
DIRTY = 1_000
PLAIN = StoreSpec("counts", "timestamped_key_value", STR, INT)
WINDOWED = StoreSpec(
    "counts", "timestamped_window", STR, INT, window_size_ms=86_400_000, retention_ms=30 * 86_400_000
)


def increments(state: TaskStores, keys: list[bytes]) -> Callable[[], None]:
    store: Any = state.stores["counts"]
    read, write = store.read, store.write

    def run() -> None:
        for key in keys:
            found = read(key)
            write(key, 1 if found is None else found[0] + 1, NOON_MS)

    return run


def windowed_increments(state: TaskStores, keys: list[bytes]) -> Callable[[], None]:
    store: Any = state.stores["counts"]
    read, write = store.read, store.write

    def run() -> None:
        for key in keys:
            found = read(key, NOON_MS)
            write(key, NOON_MS, 1 if found is None else found[0] + 1, NOON_MS)

    return run


def committed(state: TaskStores, fill: Callable[[], None]) -> Callable[[], None]:
    """Everything ``fill`` writes lies in the table; what is written from now on can be forgotten."""
    fill()
    state.commit({"counts": N})
    return state.abort


@contextmanager
def cases() -> Iterator[list[Case]]:
    """Budgets: 2.5 µs for an aggregate that RocksDB has to be asked for, 2 µs to restore a record, 3 ms to commit 1,000
    entries."""
    keys = [f"key-{i}".encode() for i in range(N)]
    batch = RecordBatch(
        "changelog",
        0,
        list(keys),
        [INT.serializer("")(i) for i in range(N)],
        [NOON_MS] * N,
        range(N),
        None,
        N,
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def state(spec: StoreSpec, name: str | None) -> TaskStores:
            return stack.enter_context(opened(spec, folder / name if name else None))

        rocks, rocks_windows, memory = state(PLAIN, "kv"), state(WINDOWED, "windows"), state(PLAIN, None)
        restored, written = state(PLAIN, "restored"), state(PLAIN, "written")
        run, run_windows, run_memory = (
            increments(rocks, keys),
            windowed_increments(rocks_windows, keys),
            increments(memory, keys),
        )
        write_some = increments(written, keys[:DIRTY])
        yield [
            Case("read and write, RocksDB", run, N, 2_500, before=committed(rocks, run)),
            Case("the same, windows", run_windows, N, before=committed(rocks_windows, run_windows)),
            Case("read and write, memory", run_memory, N, before=committed(memory, run_memory)),
            Case("restore a record, RocksDB", lambda: restored.restore("counts", batch), N, 2_000),
            Case(
                "commit 1,000 entries, RocksDB", lambda: written.commit({}), 1, 3_000_000, before=write_some
            ),
        ]
