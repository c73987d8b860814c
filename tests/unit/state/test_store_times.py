"""What a store knows of time outlives its process, also where time has moved without a write."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.stream_time import TIME_MAX
from pystreams.windowed import Windowed
from tests.unit.state.state_kit import Task, session, timestamped_window

VERSIONED = Stores.versioned_store("store", str, str, history=1_000)
EXPIRING = pytest.mark.parametrize(
    "spec", [timestamped_window(), session(), VERSIONED], ids=lambda spec: spec.kind
)


def put(task: Task, time: int) -> None:
    store = task.store
    if store.spec.kind == "session":
        store.put(Windowed("a", time, time), "x")
    elif store.spec.kind == "versioned":
        store.put("a", "x", time)
    else:
        store.put("a", (1, time), time)


def time_of(task: Task) -> int:
    """The time in force of the only store."""
    layer = task.state._parts["store"].layer
    time: int = layer.time.ms
    return time


def raise_bound(task: Task, bound_ms: int) -> None:
    task.cell.time.limit(bound_ms)
    task.cell.time.flushed(task.state.flush_caches)


@EXPIRING
def test_a_time_that_only_a_bound_has_moved_is_kept(spec: StoreSpec, tmp_path: Path) -> None:
    with Task(spec, directory=tmp_path / "0_0") as task:
        task.cell.time.limit(10)
        put(task, 5_000)
        task.commit()
        assert time_of(task) == 10
        raise_bound(task, TIME_MAX)
        task.commit()
        assert time_of(task) == 5_000
    with Task(spec, directory=tmp_path / "0_0") as task:
        assert time_of(task) == 5_000
