"""The group's commits are asked for once for all standbys, and a coordinator that does not answer holds up nothing
else."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TopicPartition
from pystreams.runtime.restoring.group_commits import (
    COMMITS_INTERVAL_MS,
    STANDBY_ANSWER_TIMEOUT_MS,
    GroupCommits,
)
from pystreams.runtime.restoring.restorer import CHECKPOINT_INTERVAL_MS, RestoreOutcome
from pystreams.runtime.restoring.task_restores import STANDBY_PAUSE_MS
from tests.live.support import TIMEOUT_S
from tests.unit.runtime.restoring.restoring_kit import Standby, Task, Windowed, World
from tests.unit.runtime.tasks.log_kit import MemoryLog


def test_the_group_is_asked_once_for_the_standbys_of_all_threads() -> None:
    clock = ManualClock()
    log = MemoryLog(transactional=True)
    admin: Any = log
    commits = GroupCommits(admin, "group", clock)
    for _ in range(3):
        log.offsets[TopicPartition("in", 0)] = CommittedOffset(clock.now_ms())
        for _thread in range(4):
            assert commits.read() == {TopicPartition("in", 0): CommittedOffset(clock.now_ms())}
        clock.advance_ms(COMMITS_INTERVAL_MS)
    assert log.calls["group_offsets"] == 3


def test_whoever_asks_for_the_commits_of_the_group_keeps_no_other_thread_waiting() -> None:
    log = MemoryLog(transactional=True)
    log.offsets[TopicPartition("in", 0)] = CommittedOffset(5)
    asked, answer = threading.Event(), threading.Event()
    timeouts: list[float] = []

    def group_offsets(
        group: str, *, stable: bool, timeout_ms: float
    ) -> dict[TopicPartition, CommittedOffset]:
        timeouts.append(timeout_ms)
        asked.set()
        assert answer.wait(TIMEOUT_S)
        return dict(log.offsets)

    log.group_offsets = group_offsets  # type: ignore[assignment, method-assign]
    admin: Any = log
    commits = GroupCommits(admin, "group", ManualClock())
    asking = threading.Thread(target=commits.read, daemon=True)
    asking.start()
    assert asked.wait(TIMEOUT_S)
    assert commits.read() is None, "nothing is known yet"
    answer.set()
    asking.join(TIMEOUT_S)
    assert commits.read() == log.offsets
    assert timeouts == [STANDBY_ANSWER_TIMEOUT_MS]


def test_a_coordinator_that_does_not_answer_holds_up_no_task_and_no_other_standby(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    world = World(clock=clock)
    bound, free = (Standby(number, world.changelog(number, 25)) for number in range(2))
    free.needs_commits = False
    free.limits = {partition.topic: 25 for partition in free.partitions}
    world.log.offsets |= {
        partition: CommittedOffset(25) for partition in (*bound.partitions, *free.partitions)
    }
    timeouts: list[float] = []

    def silent(*_: object, timeout_ms: float, **__: object) -> Any:
        timeouts.append(timeout_ms)
        clock.advance_ms(int(timeout_ms))
        raise BrokerUnavailableError("the coordinator does not answer")

    with monkeypatch.context() as frozen:
        frozen.setattr(world.log, "group_offsets", silent)
        for standby in (bound, free):
            world.restorer.follow(standby)
        for _ in range(4):
            world.thread.go_step(0)
        assert (len(free.keys), bound.keys) == (25, [])
        assert timeouts == [STANDBY_ANSWER_TIMEOUT_MS], "and not in every step"
        clock.advance_ms(CHECKPOINT_INTERVAL_MS)
        world.thread.go_step(0)
        assert not free.complete[-1], "how far the group is, is not known"
        task = Task(2, world.changelog(2, 25))
        world.restorer.submit(task)
        for _ in range(4):
            world.thread.go_step(0)
        assert world.restorer.drain() == RestoreOutcome(finished=[task.task_id])
    clock.advance_ms(int(STANDBY_PAUSE_MS))
    for _ in range(4):
        world.thread.go_step(0)
    assert len(bound.keys) == 25


def test_standbys_that_are_followed_go_on_when_another_one_comes_while_the_coordinator_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    world = World(clock=clock)
    # Its changelog is read to the end, but the group's commits bound what is kept.
    windowed, late = (Windowed(number, world.changelog(number, 25)) for number in range(2))
    world.restorer.follow(windowed)
    for _ in range(4):
        world.thread.go_step(0)
    assert len(windowed.keys) == 25

    def silent(*_: object, **__: object) -> Any:
        raise BrokerUnavailableError("the coordinator does not answer")

    with monkeypatch.context() as frozen:
        frozen.setattr(world.log, "group_offsets", silent)
        clock.advance_ms(COMMITS_INTERVAL_MS)
        world.restorer.follow(late)
        world.changelog(0, 5)
        for _ in range(4):
            world.thread.go_step(0)
        assert (len(windowed.keys), late.keys) == (30, [])
    clock.advance_ms(int(STANDBY_PAUSE_MS))
    for _ in range(4):
        world.thread.go_step(0)
    assert len(late.keys) == 25


def test_the_trouble_of_standbys_does_not_count_against_a_task_that_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    world = World(patience_ms=60_000, clock=clock)
    standby, task = Standby(0, world.changelog(0, 25)), Task(1, world.changelog(1, 25))
    world.log.offsets |= dict.fromkeys(standby.partitions, CommittedOffset(25))

    def silent(*_: object, **__: object) -> Any:
        raise BrokerUnavailableError("nobody answers")

    for method in ("group_offsets", "end_offsets"):
        monkeypatch.setattr(world.log, method, silent)
    world.restorer.follow(standby)
    world.thread.go_step(0)
    clock.advance_ms(59_000)
    world.restorer.submit(task)
    for _ in range(3):
        world.thread.go_step(0)
        clock.advance_ms(1_000)
