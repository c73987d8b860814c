"""A task whose snapshot is on its way is not opened, and keeps nobody else from working."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pystreams.errors import StateCorruptedError
from pystreams.ids import TaskId
from pystreams.runtime.tasks.abstract_task import AbstractTask
from pystreams.runtime.tasks.task import TaskStatus
from tests.unit.runtime.tasks.manager_kit import COUNTS_0, COUNTS_1, PLAIN, World


class Fetcher:
    """Has the snapshots of all tasks but those that are on their way."""

    def __init__(self) -> None:
        self.on_the_way: set[TaskId] = set()
        self.from_snapshots: set[TaskId] = set()
        self.told: list[tuple[str, TaskId]] = []

    def is_here(self, task_id: TaskId) -> bool:
        return task_id not in self.on_the_way

    def comes_from_snapshot(self, task_id: TaskId) -> bool:
        return task_id in self.from_snapshots

    def opened(self, task_id: TaskId) -> None:
        self.told.append(("opened", task_id))

    def spoilt(self, task_id: TaskId) -> None:
        self.from_snapshots.discard(task_id)
        self.told.append(("spoilt", task_id))

    def give_up(self, task_id: TaskId) -> None:
        self.told.append(("given up", task_id))


@pytest.fixture
def fetcher() -> Fetcher:
    return Fetcher()


@pytest.fixture
def world(tmp_path: Path, fetcher: Fetcher) -> Iterator[World]:
    world = World(tmp_path)
    object.__setattr__(world._context, "snapshots", SimpleNamespace(fetcher=fetcher))
    yield world
    world.manager.close(commit=False)


def rounds(world: World, count: int = 3) -> None:
    for _ in range(count):
        world.round()
        world.check()


def test_the_other_tasks_run_meanwhile(world: World, fetcher: Fetcher) -> None:
    fetcher.on_the_way.add(COUNTS_0)
    world.assign(COUNTS_0, COUNTS_1, PLAIN)
    rounds(world)
    assert world.status(COUNTS_0) is TaskStatus.CREATED
    assert world.status(COUNTS_1) is world.status(PLAIN) is TaskStatus.RUNNING
    assert ("opened", COUNTS_0) not in fetcher.told
    fetcher.on_the_way.clear()
    rounds(world)
    assert world.status(COUNTS_0) is TaskStatus.RUNNING
    assert ("opened", COUNTS_0) in fetcher.told


def test_a_standby_waits_as_well(world: World, fetcher: Fetcher) -> None:
    fetcher.on_the_way.add(COUNTS_0)
    world.keep(COUNTS_0)
    world.assign(PLAIN)
    rounds(world)
    assert world.standbys()[COUNTS_0].status is TaskStatus.CREATED
    fetcher.on_the_way.clear()
    rounds(world)
    assert world.standbys()[COUNTS_0].status is TaskStatus.STANDBY


def test_nobody_waits_for_a_task_that_has_gone(world: World, fetcher: Fetcher) -> None:
    fetcher.on_the_way.update((COUNTS_0, COUNTS_1))
    world.keep(COUNTS_1)
    world.assign(COUNTS_0)
    rounds(world)
    world.keep()
    world.assign(PLAIN)
    rounds(world)
    assert fetcher.told.count(("given up", COUNTS_0)) == 1
    assert fetcher.told.count(("given up", COUNTS_1)) == 1


def test_who_deletes_state_says_so(world: World, fetcher: Fetcher) -> None:
    world.assign(COUNTS_0)
    world.break_restore(COUNTS_0)
    world.feed(COUNTS_0, 3)
    rounds(world)
    world.spoil(COUNTS_0)
    assert ("spoilt", COUNTS_0) in fetcher.told
    rounds(world)
    assert world.status(COUNTS_0) is TaskStatus.RUNNING


@pytest.mark.parametrize("standby", [False, True])
def test_state_that_was_deleted_may_be_deleted_again_if_a_snapshot_has_replaced_it(
    world: World, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, *, standby: bool
) -> None:
    opener, left = world.manager._opener, 3
    really_open = opener.open

    def damaged(task: AbstractTask) -> None:
        nonlocal left
        if task.task_id == COUNTS_0 and left:
            left -= 1
            fetcher.from_snapshots.add(task.task_id)
            raise StateCorruptedError("a block of the database is damaged", where=str(task.task_id))
        really_open(task)

    monkeypatch.setattr(opener, "open", damaged)
    if standby:
        world.keep(COUNTS_0)
        world.assign(PLAIN)
    else:
        world.assign(COUNTS_0)
    rounds(world, 5)
    assert fetcher.told.count(("spoilt", COUNTS_0)) == 3
    task = world.standbys()[COUNTS_0] if standby else world.tasks()[COUNTS_0]
    assert task.status is (TaskStatus.STANDBY if standby else TaskStatus.RUNNING)
