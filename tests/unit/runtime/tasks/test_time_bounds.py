"""A task goes only as far as is known about those before it, in this generation, and once it has passed their ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.catching_up.group_lag import GroupView
from pystreams.runtime.catching_up.group_watch import Seen
from pystreams.runtime.tasks.time_bounds import TimeBounds
from pystreams.stream_time import NO_TIME, TIME_MAX

BETWEEN = TopicPartition("between", 0)


class Stream:
    """A stream task that has processed its input up to ``at``, with some records waiting, or none."""

    def __init__(self) -> None:
        self.at = self.waiting = 0
        self.limits: list[int] = []

    def limit_time(self, bound_ms: int) -> None:
        self.limits.append(bound_ms)

    def positions(self) -> dict[TopicPartition, Any]:
        return {BETWEEN: SimpleNamespace(offset=self.at)}

    def buffered(self, partition: TopicPartition) -> int:
        return self.waiting


class Watch:
    """The tasks of sub-topology 1 wait."""

    def __init__(self) -> None:
        self.seen: Seen | None = None
        self.generations: list[int] = []

    def waits(self, task: TaskId) -> bool:
        return task.subtopology == 1

    def begin_generation(self, generation: int) -> None:
        self.generations.append(generation)

    def ends_to_pass(self, inputs: Any, view: GroupView) -> dict[TopicPartition, int]:
        return dict(view.ends)


class World:
    def __init__(self) -> None:
        self.watch = Watch()
        #: Of the consumer.
        self.position = 0
        watch: Any = self.watch
        consumer: Any = SimpleNamespace(position=lambda partition: self.position)
        self.bounds = TimeBounds(watch, consumer)
        self.tasks: list[Any] = [
            SimpleNamespace(task_id=TaskId(sub, 0), inputs=frozenset({BETWEEN}), stream=Stream())
            for sub in (0, 1)
        ]
        self.bounds.begin_generation(1, [])
        for task in self.tasks:
            self.bounds.starts(task)
        self.blamed: list[Any] = []

    @property
    def first(self) -> Stream:
        return self.tasks[0].stream  # type: ignore[no-any-return]

    @property
    def second(self) -> Stream:
        return self.tasks[1].stream  # type: ignore[no-any-return]

    def see(self, bound: int, end: int, *, generation: int = 1, commit_often: bool = False) -> None:
        view = GroupView(0.0, {1: bound}, {BETWEEN: end}, (), (), commit_often)
        self.watch.seen = Seen(generation, view)
        self.apply()

    def apply(self) -> None:
        self.bounds.apply(self.tasks, self.blamed.append)


@pytest.fixture
def world() -> World:
    return World()


def test_a_task_that_starts_stays_where_it_was_and_one_without_tasks_before_it_has_no_bound(world):
    assert world.second.limits == [NO_TIME]
    assert world.first.limits == []


def test_a_bound_is_in_force_when_the_ends_are_passed(world):
    world.position = 9
    world.see(500, end=10)
    assert world.second.limits == [NO_TIME]
    world.position = 10
    world.apply()
    assert world.second.limits == [NO_TIME, 500]
    assert world.first.limits == []
    assert world.blamed == [world.tasks[1], None]


def test_records_that_wait_are_not_passed(world):
    world.position, world.second.at, world.second.waiting = 10, 7, 3
    world.see(500, end=10)
    assert world.second.limits == [NO_TIME]
    world.second.at, world.second.waiting = 10, 0
    world.apply()
    assert world.second.limits == [NO_TIME, 500]


def test_what_is_in_force_is_not_set_again(world):
    for end in (0, 0, 5):
        world.see(TIME_MAX, end)
    assert world.second.limits == [NO_TIME, TIME_MAX]
    assert not world.bounds.commit_often


def test_in_a_new_generation_stream_time_stays_until_the_group_was_read_again(world):
    world.see(500, end=10)
    world.bounds.begin_generation(2, world.tasks)
    assert world.second.limits == [NO_TIME, NO_TIME]
    assert world.watch.generations == [1, 2]
    world.position = 10
    world.apply()
    world.see(TIME_MAX, end=10, generation=1)
    assert world.second.limits == [NO_TIME, NO_TIME]
    world.see(600, end=10, generation=2)
    assert world.second.limits == [NO_TIME, NO_TIME, 600]


def test_the_same_generation_again_changes_nothing(world):
    world.see(500, end=0)
    world.bounds.begin_generation(1, world.tasks)
    assert world.second.limits == [NO_TIME, 500]


def test_a_task_that_starts_later_gets_what_was_seen_before(world):
    world.see(500, end=0)
    late = SimpleNamespace(task_id=TaskId(1, 1), inputs=frozenset({BETWEEN}), stream=Stream())
    world.bounds.starts(late)
    world.tasks.append(late)
    world.apply()
    assert late.stream.limits == [NO_TIME, 500]
    assert world.second.limits == [NO_TIME, 500]


def test_a_task_that_starts_again_begins_without_what_it_knew(world):
    world.see(500, end=0)
    world.bounds.ends(TaskId(1, 0))
    world.bounds.starts(world.tasks[1])
    assert world.second.limits == [NO_TIME, 500, NO_TIME]
    world.apply()
    assert world.second.limits == [NO_TIME, 500, NO_TIME, 500]


def test_commits_come_often_while_others_or_a_bound_wait_for_them(world):
    world.see(500, end=0, commit_often=True)
    assert world.bounds.commit_often
    world.see(500, end=0)
    assert not world.bounds.commit_often
    world.see(600, end=10)
    assert world.bounds.commit_often


def test_without_a_watch_nothing_happens():
    consumer: Any = None
    bounds = TimeBounds(None, consumer)
    task: Any = SimpleNamespace(task_id=TaskId(1, 0), stream=Stream())
    bounds.begin_generation(1, [task])
    bounds.starts(task)
    bounds.apply([task], lambda task: None)
    assert task.stream.limits == []
    assert not bounds.commit_often
