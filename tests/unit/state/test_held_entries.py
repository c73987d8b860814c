"""What an operator has not emitted yet is kept, though it has expired."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pystreams.state.spec import StoreSpec
from pystreams.windowed import Windowed
from tests.unit.state.state_kit import Task, batch_of, read_all, session, timestamped_window

MINUTE = 60_000
Opener = Callable[[], Task]


def spec_of(kind: str, persistent: bool) -> StoreSpec:
    settings: dict[str, Any] = {"retention_ms": 2 * MINUTE, "by_time": True, "persistent": persistent}
    return session(**settings) if kind == "session" else timestamped_window(**settings)


@pytest.fixture(params=["window", "session"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=[True, False], ids=["on disk", "in memory"])
def spec(request: pytest.FixtureRequest, kind: str) -> StoreSpec:
    return spec_of(kind, request.param)


def put(task: Task, *minutes: int) -> None:
    for minute in minutes:
        time = minute * MINUTE
        if task.store.spec.kind == "session":
            task.store.put(Windowed("a", time, time), "x")
        else:
            task.store.put("a", (1, time), time)


def minutes(entries: Any) -> list[int]:
    return [window.start // MINUTE for window, _ in read_all(entries)]


def shown(task: Task) -> list[int]:
    return minutes(task.store.all())


def held(task: Task) -> list[int]:
    store = task.store
    find = store.find_held if store.spec.kind == "session" else store.fetch_held
    return minutes(find(0, 10_000 * MINUTE))


def test_what_is_held_is_hidden_but_there_until_it_is_let_go(spec: StoreSpec, tmp_path: Path) -> None:
    with Task(spec, directory=tmp_path / "0_0") as task:
        task.store.hold(3 * MINUTE)
        put(task, 0, 3, 5)
        task.commit()
        put(task, 100, 1_000)
        task.commit()
        assert shown(task) == [1_000]
        assert held(task) == [3, 5, 100, 1_000]
        task.store.hold(100 * MINUTE)
        put(task, 2_000)
        task.commit()
        assert held(task) == [100, 1_000, 2_000]


def test_it_is_part_of_what_the_store_holds_for_its_changelog(spec: StoreSpec, tmp_path: Path) -> None:
    with Task(spec, directory=tmp_path / "0_0") as task:
        task.store.hold(3 * MINUTE)
        put(task, 1, 3, 1_000)
        task.commit()
        logged = [key for key, *_ in task.store.logged()]
        assert logged == [key for key, *_ in task.records()[1:]]
        assert task.state.as_logged("store", task.records()[0][0], 0) is None
        value = task.state.as_logged("store", task.records()[1][0], 0)
        assert value is not None
        assert value[0] == task.records()[1][1]


def test_it_survives_a_restart_on_disk(kind: str, tmp_path: Path) -> None:
    with Task(spec_of(kind, True), directory=tmp_path / "0_0") as task:
        task.store.hold(3 * MINUTE)
        put(task, 3, 1_000)
        task.commit()
    with Task(spec_of(kind, True), directory=tmp_path / "0_0") as task:
        assert held(task) == [3, 1_000]


@pytest.mark.parametrize("limit", [4, 500, 1_000])
def test_it_is_restored_whatever_time_the_changelog_has_come_to(
    spec: StoreSpec, tmp_path: Path, limit: int
) -> None:
    with Task(spec, directory=tmp_path / "killed") as killed:
        put(killed, 1, 3, 4, 1_000)
        records = killed.records()
    with Task(spec, directory=tmp_path / "next") as task:
        # Windows that had ended by then are emitted.
        closed_ms = 3 * MINUTE + spec.window_size_ms
        task.state.hold({"store": closed_ms, "another": 7})
        task.state.limit_time(limit * MINUTE, limit * MINUTE)
        task.state.restore("store", batch_of(records))
        assert task.store.layer.time.ms == limit * MINUTE
        assert held(task)[-3:] == [3, 4, 1_000]


def test_nothing_is_held_of_stores_that_nobody_emits_from(tmp_path: Path) -> None:
    """Kafka Streams keeps numbers under any name with the offsets."""
    with Task(timestamped_window(retention_ms=2 * MINUTE, persistent=False)) as task:
        task.state.hold({"store": 0})
        put(task, 1, 1_000)
        task.commit()
        assert held(task) == [1_000]
