"""A restore that fails, hangs or takes long concerns the restoring thread alone: nobody waits for its broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pytest

from pystreams.broker.port import ANSWER_TIMEOUT_MS, CommittedOffset
from pystreams.clock import ManualClock
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    ProcessingError,
    RestoreError,
    SchemaRegistryUnavailableError,
    StateCorruptedError,
    StateError,
    StreamsError,
    TopicError,
)
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.restoring import restorer
from pystreams.runtime.restoring.group_commits import COMMITS_INTERVAL_MS
from pystreams.runtime.restoring.restorer import CHECKPOINT_INTERVAL_MS, RestoreOutcome
from pystreams.runtime.restoring.task_restores import PARTITIONS_READ_MAX, STANDBY_PAUSE_MS
from tests.live.support import TIMEOUT_S, eventually
from tests.unit.runtime.restoring.restoring_kit import Standby, Task, World


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def test_what_is_submitted_is_restored_without_any_further_call(world: World) -> None:
    world.start()
    task = Task(0, world.changelog(0, 25))
    world.restorer.submit(task)
    assert world.drained(lambda outcome: outcome.finished).finished == [TaskId(0, 0)]
    assert task.keys == [b"%d" % n for n in range(25)]
    assert task.ends == {"changelog-0": 25}


def test_a_broker_that_does_not_answer_holds_up_nobody_but_the_restore(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def end_offsets(partitions: Any, timeout_ms: float = 0) -> dict[TopicPartition, int]:
        asked.set()
        assert answer.wait(TIMEOUT_S)
        return dict.fromkeys(partitions, 25)

    monkeypatch.setattr(world.log, "end_offsets", end_offsets)
    world.start()
    task, other = Task(0, world.changelog(0, 25)), Task(1, world.changelog(1, 25))
    world.restorer.submit(task)
    assert asked.wait(TIMEOUT_S)
    # All of this returns while the broker is silent.
    world.restorer.submit(other)
    world.restorer.withdraw(task.task_id)
    assert world.restorer.drain() == RestoreOutcome()
    assert world.restorer.progress() == []
    answer.set()
    assert world.drained(lambda outcome: outcome.finished).finished == [other.task_id]
    assert task.keys == []


def test_a_task_that_comes_back_while_its_offsets_are_asked_for_begins_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = threading.Event(), threading.Event()
    ends = world.log.end_offsets

    def end_offsets(partitions: Any, timeout_ms: float = 0) -> dict[TopicPartition, int]:
        asked.set()
        assert answer.wait(TIMEOUT_S)
        return ends(partitions)

    monkeypatch.setattr(world.log, "end_offsets", end_offsets)
    world.start()
    partition = world.changelog(0, 25)
    before, after = Task(0, partition), Task(0, partition)
    world.restorer.submit(before)
    assert asked.wait(TIMEOUT_S)
    world.restorer.withdraw(before.task_id)
    world.restorer.submit(after)
    answer.set()
    world.drained(lambda outcome: outcome.finished)
    assert (before.keys, len(after.keys)) == ([], 25)


def test_whoever_withdraws_a_task_may_close_its_stores_at_once(world: World) -> None:
    writing, go_on = threading.Event(), threading.Event()
    task = Task(0, world.changelog(0, 1_000))

    def held_up() -> None:
        writing.set()
        assert go_on.wait(TIMEOUT_S)

    task.before = held_up
    world.start()
    world.restorer.submit(task)
    assert writing.wait(TIMEOUT_S)
    withdrawing = threading.Thread(target=world.restorer.withdraw, args=(task.task_id,))
    withdrawing.start()
    withdrawing.join(0.2)  # Nothing can be waited for: nothing is to happen.
    assert withdrawing.is_alive(), "the batch at work is waited for"
    go_on.set()
    withdrawing.join(TIMEOUT_S)
    count = len(task.keys)
    other = Task(1, world.changelog(1, 25))
    world.restorer.submit(other)
    world.drained(lambda outcome: outcome.finished)
    assert len(task.keys) == count


def test_what_does_not_answer_for_a_time_is_asked_again(world: World) -> None:
    world.log.faults.update({"beginning_offsets": 1, "restore assign": 1})
    task = Task(0, world.changelog(0, 25))
    world.restorer.submit(task)
    world.start()
    assert world.drained(lambda outcome: outcome.finished).failure is None
    assert len(task.keys) == 25


def test_a_broker_that_stays_away_is_reported_with_the_tasks_that_wait_for_it() -> None:
    world = World(patience_ms=300)
    world.log.faults["end_offsets"] = 10**9
    world.restorer.submit(Task(3, world.changelog(0, 25)))
    world.start()
    failure = world.drained(lambda outcome: outcome.failure).failure
    world.close()
    assert isinstance(failure, RestoreError)
    assert failure.action == "fail"
    for told in ("tasks 0_3", "end_offsets is not answered", "for 0.3 s now (task_timeout_ms)"):
        assert told in str(failure)
    assert isinstance(failure.__cause__, BrokerUnavailableError)


def test_a_batch_that_could_not_be_applied_is_not_left_out(world: World) -> None:
    task = Task(0, world.changelog(0, 25))
    away = [SchemaRegistryUnavailableError("it is away")]

    def fail_once() -> None:
        if task.keys and away:
            raise away.pop()

    task.before = fail_once
    world.restorer.submit(task)
    world.start()
    world.drained(lambda outcome: outcome.finished)
    assert not away
    assert task.keys == [b"%d" % n for n in range(25)]


@pytest.mark.parametrize("failing", [0, 1])
def test_what_was_read_together_with_a_batch_that_could_not_be_applied_is_not_left_out(
    world: World, failing: int
) -> None:
    tasks = [Task(number, world.changelog(number, 25)) for number in range(2)]
    away = [SchemaRegistryUnavailableError("it is away")]

    def fail_once() -> None:
        if tasks[failing].keys and away:
            raise away.pop()

    tasks[failing].before = fail_once
    for task in tasks:
        world.restorer.submit(task)
    world.start()
    world.drained(lambda outcome: len(outcome.finished) == len(tasks))
    assert not away
    for task in tasks:
        # A batch may be applied twice, but nothing may be missing between two of them.
        assert list(dict.fromkeys(task.keys)) == [b"%d" % n for n in range(25)]
        assert task.offsets == {p.topic: 25 for p in task.partitions}


def test_an_input_that_was_read_past_its_limit_before_a_failure_is_read_from_its_limit_on() -> None:
    clock = ManualClock()
    world = World(clock=clock)
    standbys = [Standby(number, world.changelog(number, 25)) for number in range(2)]
    away = [SchemaRegistryUnavailableError("it is away")]

    def fail_once() -> None:
        if away:
            raise away.pop()

    standbys[1].before = fail_once
    for standby in standbys:
        world.log.offsets |= dict.fromkeys(standby.partitions, CommittedOffset(5))
        world.restorer.follow(standby)
    world.thread.go_step(0)
    assert not away
    # The group goes on before the next step.
    for standby in standbys:
        world.log.offsets |= dict.fromkeys(standby.partitions, CommittedOffset(25))
    clock.advance_ms(int(STANDBY_PAUSE_MS))
    for _ in range(4):
        world.thread.go_step(0)
    for standby in standbys:
        assert list(dict.fromkeys(standby.keys)) == [b"%d" % n for n in range(25)]


def test_a_standby_whose_checkpoint_finds_it_damaged_is_handed_over_as_corrupt() -> None:
    clock = ManualClock()
    world = World(clock=clock)
    standbys = [Standby(number, world.changelog(number, 5)) for number in range(2)]

    def damaged() -> None:
        raise StateCorruptedError("a block of the database is damaged", where="task 0_0")

    standbys[0].checkpointed = damaged
    for standby in standbys:
        world.log.offsets |= dict.fromkeys(standby.partitions, CommittedOffset(5))
        world.restorer.follow(standby)
    world.thread.go_step(0)
    outcome = world.restorer.drain()
    assert list(outcome.corrupted) == [TaskId(0, 0)]
    assert outcome.failure is None
    assert world.restorer.task_ids() == [TaskId(0, 1)], "the other one is followed on"


@pytest.mark.parametrize("error", [TopicError, BrokerUnavailableError])
def test_a_standby_whose_offsets_cannot_be_asked_for_keeps_nobody_waiting_and_is_tried_again(
    error: type[BrokerError], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    world = World(patience_ms=1_000, clock=clock)
    broken, sound = (Standby(number, world.changelog(number, 25)) for number in range(2))
    task = Task(2, world.changelog(2, 25))
    asked: list[float] = []
    ends = world.log.end_offsets

    def end_offsets(partitions: Any, timeout_ms: float = 0) -> dict[TopicPartition, int]:
        if missing & set(partitions):
            asked.append(timeout_ms)
            raise error("the offsets are not told", where=str(partitions))
        return ends(partitions)

    missing = set(broken.partitions)
    monkeypatch.setattr(world.log, "end_offsets", end_offsets)
    for standby in (broken, sound):
        world.log.offsets |= dict.fromkeys(standby.partitions, CommittedOffset(25))
        world.restorer.follow(standby)
    world.restorer.submit(task)
    for _ in range(20):
        world.thread.go_step(0)
        clock.advance_ms(COMMITS_INTERVAL_MS)
    assert world.restorer.drain() == RestoreOutcome(finished=[task.task_id]), "also after task_timeout_ms"
    assert (len(task.keys), len(sound.keys), broken.keys) == (25, 25, [])
    assert len(asked) == 2, "not in every step"
    assert max(asked) < ANSWER_TIMEOUT_MS
    assert [m for m in caplog.messages if "a standby of task 0_0 is tried again" in m]
    missing.clear()
    for _ in range(20):
        world.thread.go_step(0)
        clock.advance_ms(COMMITS_INTERVAL_MS)
    assert len(broken.keys) == 25


def test_a_standby_counts_as_complete_only_while_its_ends_are_known() -> None:
    clock = ManualClock()
    world = World(clock=clock)
    standby, late = Standby(0, world.changelog(0, 25)), world.changelog(1, 25)
    world.log.offsets |= dict.fromkeys(standby.partitions, CommittedOffset(5))
    world.restorer.follow(standby)

    def step() -> bool:
        clock.advance_ms(CHECKPOINT_INTERVAL_MS)
        world.thread.go_step(0)
        return standby.complete[-1]

    assert step()
    restored = Task(1, late)
    world.restorer.submit(restored)
    world.consumer.pause([late])
    assert not step(), "while a task is restored, nobody asks how far the group is"
    world.consumer.resume([late])
    step()
    assert world.restorer.drain().finished == [restored.task_id]
    assert step()


def failing_once(error: StreamsError) -> Callable[[], None]:
    errors = [error]

    def fail_once() -> None:
        if errors:
            raise errors.pop()

    return fail_once


@pytest.mark.parametrize("where", ["before", "checkpointed"])
@pytest.mark.parametrize("error", [ProcessingError, StateError, SchemaRegistryUnavailableError])
def test_a_standby_that_fails_is_put_aside_and_ends_nothing(
    error: type[StreamsError], where: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    world = World(clock=clock)
    broken, sound = (Standby(number, world.changelog(number, 25)) for number in range(2))
    setattr(broken, where, failing_once(error("it cannot be applied")))
    for standby in (broken, sound):
        world.log.offsets |= dict.fromkeys(standby.partitions, CommittedOffset(25))
        world.restorer.follow(standby)
    for _ in range(4):
        world.thread.go_step(0)
    assert world.restorer.drain() == RestoreOutcome()
    assert sound.keys == [b"%d" % n for n in range(25)]
    told = "a standby of task 0_0 is tried again in 10 s: it cannot be applied"
    assert [text for text in caplog.messages if told in text]
    clock.advance_ms(int(STANDBY_PAUSE_MS))
    for _ in range(4):
        world.thread.go_step(0)
    assert list(dict.fromkeys(broken.keys)) == [b"%d" % n for n in range(25)]
    assert len(sound.keys) == 25


@pytest.mark.parametrize("error", [BrokerUnavailableError, BrokerError])
def test_standbys_alone_are_tried_again_for_ever(
    error: type[BrokerError], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    world = World(patience_ms=60_000, clock=clock)
    standby = Standby(0, world.changelog(0, 25))
    world.log.offsets |= dict.fromkeys(standby.partitions, CommittedOffset(25))

    def refused(*_: object, **__: object) -> Any:
        raise error("the offsets are not told")

    with monkeypatch.context() as broken:
        broken.setattr(world.log, "group_offsets", refused)
        world.restorer.follow(standby)
        for _ in range(150):
            world.thread.go_step(0)
            clock.advance_ms(1_000)
    assert len([text for text in caplog.messages if "standbys do not follow" in text]) == 3, "every minute"
    world.thread.go_step(0)
    assert len(standby.keys) == 25


def test_a_store_that_shows_to_be_damaged_when_its_restore_ends_is_corrupt(world: World) -> None:
    damaged, sound = (Task(number, world.changelog(number, 25)) for number in range(2))

    def restored(ends: Mapping[str, int]) -> None:
        raise StateCorruptedError("a block of the database is damaged", where="task 0_0")

    damaged.restored = restored  # type: ignore[method-assign]
    for task in (damaged, sound):
        world.restorer.submit(task)
    for _ in range(4):
        world.thread.go_step(0)
    outcome = world.restorer.drain()
    assert list(outcome.corrupted) == [damaged.task_id]
    assert outcome.finished == [sound.task_id]
    assert outcome.failure is None


class Raises:
    """A listener that fails."""

    def on_restore_start(self, *_: object) -> None: ...

    def on_batch_restored(self, *_: object) -> None:
        raise ZeroDivisionError("in the program's listener")

    def on_restore_end(self, *_: object) -> None: ...


def test_what_a_listener_raises_goes_to_the_owner_and_the_thread_ends() -> None:
    world = World(listener=Raises())
    world.restorer.submit(Task(0, world.changelog(0, 25)))
    world.start()
    assert isinstance(world.drained(lambda outcome: outcome.failure).failure, ZeroDivisionError)
    assert world.ended.wait(TIMEOUT_S)
    world.close()


class Withdraws:
    """A listener that has a task withdrawn by another thread, as a rebalance would, and waits for it."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.withdrawn = threading.Event()

    def on_restore_start(self, *_: object) -> None: ...

    def on_batch_restored(self, *_: object) -> None:
        assert self.world is not None
        restorer = self.world.restorer

        def withdraw() -> None:
            restorer.withdraw(TaskId(0, 0))
            self.withdrawn.set()

        threading.Thread(target=withdraw, daemon=True).start()
        assert self.withdrawn.wait(TIMEOUT_S), "the listener is called while tasks are locked"

    def on_restore_end(self, *_: object) -> None: ...


def test_a_listener_that_takes_its_time_holds_up_no_rebalance() -> None:
    listener = Withdraws()
    world = listener.world = World(listener=listener)
    world.restorer.submit(Task(0, world.changelog(0, 25)))
    world.start()
    assert listener.withdrawn.wait(TIMEOUT_S)
    world.restorer.submit(Task(1))
    assert world.drained(lambda outcome: outcome.finished).finished == [TaskId(0, 1)]
    world.close()
    assert world.ended.is_set()


def test_the_tasks_with_the_fewest_records_are_complete_first(world: World) -> None:
    # More than can be read at the same time, the largest first.
    sizes = [20 * (n + 1) for n in reversed(range(3 * PARTITIONS_READ_MAX))]
    for number, size in enumerate(sizes):
        world.restorer.submit(Task(number, world.changelog(number, size)))
    finished: list[TaskId] = []
    while len(finished) < len(sizes):
        world.restorer.step(0, 0)
        finished += world.restorer.drain().finished
        assert len(world.consumer.positions) <= PARTITIONS_READ_MAX
    assert [task_id.partition for task_id in finished] == list(reversed(range(len(sizes))))


def test_a_small_task_does_not_wait_for_large_ones(world: World) -> None:
    large = [Task(n, world.changelog(n, 100)) for n in range(2 * PARTITIONS_READ_MAX)]
    for task in large:
        world.restorer.submit(task)
    world.restorer.step(0, 0)
    small = Task(100, world.changelog(100, 10))
    world.restorer.submit(small)
    world.restorer.step(0, 0)
    assert world.restorer.drain().finished == [small.task_id]
    assert len(world.consumer.positions) == PARTITIONS_READ_MAX


def test_what_nobody_wants_any_more_is_not_read_on(world: World) -> None:
    world.start()
    task = Task(0, world.changelog(0, 10_000))
    task.before = lambda: time.sleep(0.001)
    world.restorer.submit(task)
    eventually(lambda: world.consumer.positions, "it is read")
    world.restorer.withdraw(task.task_id)
    eventually(lambda: not world.consumer.positions, "it is not read any more")


def test_a_task_runs_when_what_filled_its_large_stores_is_settled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restorer, "FILL_OFFSETS_MIN", 25)
    large, small = (Task(0, world.changelog(0, 25), world.changelog(1, 24)), Task(1, world.changelog(2, 24)))
    large.is_settled = False
    for task in (large, small):
        world.restorer.submit(task)
    for _ in range(6):
        world.thread.go_step(0)
    assert (large.filled, small.filled) == ({"changelog-0"}, set())
    assert (len(large.keys), large.ends) == (49, None)
    assert world.restorer.drain().finished == [small.task_id]
    large.is_settled = True
    world.thread.go_step(0)
    assert world.restorer.drain().finished == [large.task_id]
    assert large.ends == {"changelog-0": 25, "changelog-1": 24}


def test_a_store_that_cannot_be_filled_is_corrupt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restorer, "FILL_OFFSETS_MIN", 25)
    damaged, sound = (Task(number, world.changelog(number, 25)) for number in range(2))

    def fill(stores: Collection[str]) -> None:
        raise StateCorruptedError("the files are damaged", where="task 0_0")

    damaged.fill = fill  # type: ignore[method-assign]
    for task in (damaged, sound):
        world.restorer.submit(task)
    for _ in range(4):
        world.thread.go_step(0)
    outcome = world.restorer.drain()
    assert list(outcome.corrupted) == [damaged.task_id]
    assert (outcome.finished, outcome.failure) == ([sound.task_id], None)
