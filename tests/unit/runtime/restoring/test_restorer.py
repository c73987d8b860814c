"""Restoring ends by position, goes in slices, notices what lies outside of its changelog, and says how far it is."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.clock import ManualClock
from pystreams.engine.hosted_task import HostedTask
from pystreams.errors import BrokerUnavailableError, OffsetOutOfRangeError, StateCorruptedError
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.recovery.hang_watch import WatchedRounds
from pystreams.runtime.recovery.stall_watch import StallWatch
from pystreams.runtime.restoring.group_commits import GroupCommits
from pystreams.runtime.restoring.restorer import RestoreOutcome, Restorer
from pystreams.runtime.tasks.active_task import ActiveTask

#: A round that takes this long is reported. A request takes half of it when brokers are slow.
HANG_MS = 60_000
A, B = TopicPartition("a-changelog", 0), TopicPartition("b-changelog", 0)


def batch(partition: TopicPartition, count: int, next_offset: int) -> RecordBatch:
    return RecordBatch(
        *partition, [b"k"] * count, [b"v"] * count, [0] * count, range(count), None, next_offset
    )


class Consumer:
    """Gives what ``script`` holds, one entry a poll: batches, or an error; each poll takes 10 ms."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.script: deque[list[RecordBatch] | Exception] = deque()
        self.positions: dict[TopicPartition, int] = {}

    def assign(self, positions: dict[TopicPartition, int]) -> None:
        self.positions |= positions

    def unassign(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            del self.positions[partition]

    def position(self, partition: TopicPartition) -> int:
        return self.positions[partition]

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        self._clock.advance_ms(10)
        entry = self.script.popleft() if self.script else []
        if isinstance(entry, Exception):
            raise entry
        for given in entry:
            self.positions[TopicPartition(given.topic, given.partition)] = given.next_offset
        return entry


class Admin:
    def __init__(self) -> None:
        self.bounds = {A: (0, 100), B: (0, 100)}
        self.away = False
        #: Called at each request.
        self.asked: Callable[[], None] = lambda: None

    def beginning_offsets(
        self, partitions: list[TopicPartition], timeout_ms: float = 0
    ) -> dict[TopicPartition, int]:
        self.asked()
        if self.away:
            raise BrokerUnavailableError("not now")
        return {p: self.bounds[p][0] for p in partitions}

    def end_offsets(
        self, partitions: list[TopicPartition], timeout_ms: float = 0
    ) -> dict[TopicPartition, int]:
        self.asked()
        return {p: self.bounds[p][1] for p in partitions}


class State:
    def __init__(self, offsets: dict[str, int]) -> None:
        self.offsets = offsets
        self.applied: list[tuple[str, int]] = []

    def changelog_offset(self, store: str) -> int | None:
        return self.offsets.get(store)

    def restore(self, store: str, given: RecordBatch) -> None:
        self.applied.append((store, len(given)))

    def settled(self) -> bool:
        return True

    def complete(self) -> None:
        """There is nothing on a disk."""

    def restore_checkpoint(self) -> None:
        self.applied.append(("checkpoint", 0))

    def expires(self, store: str) -> bool:
        return store == "windows"


class Stream:
    def __init__(self, task_id: TaskId) -> None:
        self.task_id = task_id


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.consumer = Consumer(self.clock)
        self.admin = Admin()
        self.rounds = WatchedRounds("restore", HANG_MS)
        consumer: Any = self.consumer
        admin: Any = self.admin
        self.restorer = Restorer(
            consumer,
            admin,
            self.clock,
            None,
            GroupCommits(admin, "group", self.clock),
            StallWatch(consumer, admin, self.clock, 0, "restore"),
            self.rounds,
        )

    def add(
        self, number: int, changelogs: dict[str, TopicPartition], *, new: bool = False, **offsets: int
    ) -> State:
        state = State(offsets)
        task_id = TaskId(0, number)
        hosted = HostedTask(Stream(task_id), state)  # type: ignore[arg-type]
        task = ActiveTask(task_id, frozenset(), changelogs, self.consumer.position)
        task.opened(hosted)
        task.last_commit = {} if new else {TopicPartition("in", number): CommittedOffset(7)}
        self.restorer.submit(task)
        return state

    def step(self, budget_ms: float, wait_ms: float) -> RestoreOutcome:
        """A slice, and what it has brought about."""
        self.restorer.step(budget_ms, wait_ms)
        return self.restorer.drain()

    @property
    def at_work(self) -> bool:
        return bool(self.restorer.progress())


@pytest.fixture
def world() -> World:
    return World()


def test_a_task_without_stores_is_ready_at_once(world: World) -> None:
    world.add(0, {})
    assert world.step(20, 0).finished == [TaskId(0, 0)]
    assert not world.at_work


def test_the_end_is_a_position_not_a_record(world: World) -> None:
    state = world.add(0, {"a": A}, a=60)
    world.consumer.script.append([batch(A, 2, 90)])
    assert world.step(20, 0).finished == []
    # Nothing stands between 90 and 100 any more: the position jumps, no record comes.
    world.consumer.positions[A] = 100
    assert world.step(20, 0).finished == [TaskId(0, 0)]
    assert state.applied == [("a", 2), ("checkpoint", 0)]
    assert world.consumer.positions == {}


def test_a_task_is_ready_when_all_its_stores_are(world: World) -> None:
    world.add(0, {"a": A, "b": B})
    world.consumer.script.append([batch(A, 1, 100)])
    assert world.step(20, 0).finished == []
    world.consumer.script.append([batch(B, 1, 100)])
    assert world.step(20, 0).finished == [TaskId(0, 0)]


def test_a_step_whose_requests_are_all_slow_is_not_taken_for_one_that_hangs(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    requests: list[float] = []

    def slow() -> None:
        for _ in range(0, HANG_MS // 2, 2_000):
            world.clock.advance_ms(2_000)
            world.rounds.look(world.clock.monotonic_ms())
        requests.append(world.clock.monotonic_ms())

    world.add(0, {"a": A})
    world.admin.asked = slow
    world.step(20, 0)
    assert len(requests) == 3, (
        "the changelog's beginning, its end, and its end again because nothing has come"
    )
    assert not caplog.messages
    world.rounds.look(world.clock.monotonic_ms() + HANG_MS - 1_000)
    assert not caplog.messages, "the thread rests after the step"


def test_a_request_that_hangs_is_reported(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def hang() -> None:
        for _ in range(0, HANG_MS, 2_000):
            world.clock.advance_ms(2_000)
            world.rounds.look(world.clock.monotonic_ms())

    world.add(0, {"a": A})
    world.admin.asked = hang
    world.step(20, 0)
    assert "[restore] the thread has been in the same round of its work for 60 s" in caplog.text
    assert "in beginning_offsets" in caplog.text


def test_a_slice_ends_in_time(world: World) -> None:
    world.add(0, {"a": A})
    world.consumer.script.extend([[batch(A, 1, i)] for i in range(1, 50)])
    world.step(25, 0)
    assert world.consumer.positions[A] == 3, "three polls of 10 ms"


@pytest.mark.parametrize("offset", [101, 9])
def test_a_store_outside_of_its_changelog_is_corrupt(world: World, offset: int) -> None:
    world.admin.bounds[A] = (10, 100)
    world.add(0, {"a": A}, a=offset)
    outcome = world.step(20, 0)
    with pytest.raises(StateCorruptedError, match=r"store a lies outside .*\n.*task 0_0, a-changelog-0"):
        raise outcome.corrupted.pop(TaskId(0, 0))
    assert outcome == RestoreOutcome()
    assert not world.at_work


def test_records_deleted_meanwhile_corrupt_that_task_only(world: World) -> None:
    world.add(0, {"a": A})
    world.add(1, {"b": B})
    world.step(5, 0)
    world.admin.bounds[A] = (50, 100)
    world.consumer.script.append(OffsetOutOfRangeError("gone"))
    outcome = world.step(20, 0)
    assert list(outcome.corrupted) == [TaskId(0, 0)]
    world.restorer.withdraw(TaskId(0, 0))
    world.restorer.adjust_reading()
    assert list(world.consumer.positions) == [B]


def test_progress_is_logged_every_ten_seconds_with_rate_and_time_to_go(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pystreams")
    world.add(0, {"a": A})
    world.clock.advance_ms(9_900)
    world.consumer.script.append([batch(A, 50, 50)])
    world.step(5, 0)
    assert caplog.messages == []
    world.clock.advance_ms(80)
    world.step(5, 0)
    assert caplog.messages == [
        "restoring 1 stores of 1 tasks: 50 records restored, 50 offsets to go, 5 records/s, ETA 10 s"
    ]


def test_what_was_read_for_a_task_that_left_is_ignored(world: World) -> None:
    state = world.add(0, {"a": A})
    world.add(1, {"b": B})
    world.restorer.withdraw(TaskId(0, 0))
    world.consumer.positions[A] = 0
    world.consumer.script.append([batch(A, 1, 100)])
    world.step(5, 0)
    assert state.applied == []


def test_stretches_that_were_undone_are_passed_over(world: World) -> None:
    for start, end in ((2, 4), (10, 20), (20, 40)):
        world.restorer.leave_out(A, start, end)
    state = world.add(0, {"a": A})
    after = RecordBatch(*A, [b"k"] * 2, [b"v"] * 2, [0] * 2, [39, 40], None, 100)
    world.consumer.script += [[batch(A, 30, 30)], [after]]
    world.step(50, 0)
    assert state.applied == [("a", 8), ("a", 1), ("checkpoint", 0)]


def test_a_stretch_that_others_may_write_to_is_passed_over_no_more(world: World) -> None:
    world.restorer.leave_out(A, 10, 20)
    world.restorer.know_nothing_of([A, B])
    state = world.add(0, {"a": A})
    world.consumer.script += [[batch(A, 30, 100)]]
    world.step(50, 0)
    assert state.applied == [("a", 30), ("checkpoint", 0)]


def test_a_changelog_that_lost_its_end_is_not_waited_for(world: World) -> None:
    world.add(0, {"a": A})
    world.add(1, {"b": B})
    world.consumer.script += [[batch(A, 50, 50)]]
    world.step(5, 0)
    world.admin.bounds[A] = (0, 50)
    outcome = world.step(5, 0)
    assert outcome.corrupted == {}, "it may only be slow"
    world.clock.advance_ms(5_000)
    outcome = world.step(5, 0)
    (error,) = outcome.corrupted.values()
    assert list(outcome.corrupted) == [TaskId(0, 0)]
    for told in ("store a", "a-changelog-0", "at offset 100", "at 50 now", "unclean leader election"):
        assert told in str(error), error
    world.restorer.withdraw(TaskId(0, 0))
    state = world.add(0, {"a": A})
    world.consumer.script += [[batch(A, 50, 50)]]
    assert world.step(5, 0).finished == [TaskId(0, 0)]
    assert state.applied == [("a", 50), ("checkpoint", 0)]


def test_the_ends_of_changelogs_are_asked_for_anew_now_and_then_while_nothing_comes(world: World) -> None:
    world.add(0, {"a": A})
    world.step(5, 0)
    asked = []
    world.admin.end_offsets = lambda partitions: asked.append(partitions) or {A: 100}  # type: ignore[method-assign]
    for _ in range(90):
        world.clock.advance_ms(90)
        assert world.step(5, 0).corrupted == {}
    assert asked == [[A]]


@pytest.mark.parametrize(
    ("store", "bounds", "new", "given", "told"),
    [
        ("windows", (100, 100), False, {}, True),
        ("windows", (0, 0), False, {}, False),
        ("windows", (90, 100), False, {}, False),
        ("windows", (100, 100), True, {}, False),
        ("windows", (100, 100), False, {"windows": 100}, False),
        ("rows", (100, 100), False, {}, False),
    ],
)
def test_windows_that_retention_has_deleted_are_reported(
    world: World,
    caplog: pytest.LogCaptureFixture,
    store: str,
    bounds: tuple[int, int],
    new: bool,
    given: dict[str, int],
    told: bool,
) -> None:
    world.admin.bounds[A] = bounds
    world.add(0, {store: A}, new=new, **given)
    world.step(5, 0)
    assert any("store windows starts empty" in message for message in caplog.messages) == told


def test_offsets_of_all_tasks_that_were_submitted_are_asked_for_at_once(world: World) -> None:
    asked: list[list[TopicPartition]] = []
    ends = world.admin.end_offsets
    world.admin.end_offsets = lambda partitions, _: asked.append(partitions) or ends(partitions)  # type: ignore[method-assign]
    world.add(0, {"a": A})
    world.add(1, {"b": B})
    world.add(2, {})
    world.consumer.script += [[batch(A, 1, 100), batch(B, 1, 100)]]
    assert sorted(world.step(5, 0).finished) == [TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)]
    assert asked == [[A, B]]


def test_tasks_wait_for_a_broker_that_gives_no_offsets(world: World) -> None:
    state = world.add(0, {"a": A})
    world.admin.away = True
    with pytest.raises(BrokerUnavailableError):
        world.step(5, 0)
    world.admin.away = False
    world.consumer.script += [[batch(A, 1, 100)]]
    assert world.step(5, 0).finished == [TaskId(0, 0)]
    assert state.applied == [("a", 1), ("checkpoint", 0)]


def test_a_task_whose_changelogs_cannot_be_read_yet_is_begun_with_in_the_next_step(world: World) -> None:
    assign = world.consumer.assign

    def refuse(positions: dict[TopicPartition, int]) -> None:
        raise BrokerUnavailableError("not now")

    state = world.add(0, {"a": A})
    world.add(1, {"b": B})
    world.consumer.assign = refuse  # type: ignore[method-assign]
    with pytest.raises(BrokerUnavailableError):
        world.step(5, 0)
    world.consumer.assign = assign  # type: ignore[method-assign]
    world.restorer.withdraw(TaskId(0, 1))
    world.consumer.script += [[batch(A, 1, 100)]]
    assert world.step(5, 0).finished == [TaskId(0, 0)]
    assert state.applied == [("a", 1), ("checkpoint", 0)]


def test_what_is_withdrawn_is_not_drained(world: World) -> None:
    world.add(0, {})
    world.add(1, {"b": B}, b=101)
    world.add(2, {"a": A})
    world.restorer.step(5, 0)
    for number in range(3):
        world.restorer.withdraw(TaskId(0, number))
    world.restorer.adjust_reading()
    assert world.restorer.drain() == RestoreOutcome()
    assert world.consumer.positions == {}


def test_what_is_drained_is_not_drained_again(world: World) -> None:
    world.add(0, {})
    assert world.step(5, 0).finished == [TaskId(0, 0)]
    assert world.step(5, 0) == RestoreOutcome()
