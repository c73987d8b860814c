"""A changelog to which somebody else has written ends with what its task's store holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError, TaskMigratedError, TopicError
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import Headers, RecordBatch
from pystreams.runtime.tasks.changelog_guard import CHECK_INTERVAL_MS, ChangelogGuard, Undone

LOG = TopicPartition("app-counts-changelog", 0)

Record = tuple[bytes, bytes | None, int]


class Changelog:
    """Changelogs, their consumer and their admin in one. ``records`` are those of ``LOG``."""

    def __init__(self) -> None:
        self.partitions: defaultdict[TopicPartition, list[Record]] = defaultdict(list)
        self.records = self.partitions[LOG]
        self.reads = 0
        self.away = False
        self.deleted: TopicPartition | None = None
        self.beginning = 0
        self._positions: dict[TopicPartition, int] = {}

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        if self.away:
            raise BrokerUnavailableError("not now")
        self.reads += 1
        self._positions = dict(positions)
        assert all(position >= self.beginning for position in positions.values()), "out of range"

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            del self._positions[partition]

    def position(self, partition: TopicPartition) -> int:
        return self._positions[partition]

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        if self.deleted in self._positions:
            raise TopicError("deleted")
        return [self._read(partition) for partition in self._positions]

    def _read(self, partition: TopicPartition) -> RecordBatch:
        start, end = self._positions[partition], len(self.partitions[partition])
        self._positions[partition] = end
        keys, values, times = zip(*self.partitions[partition][start:], strict=True)
        return RecordBatch(*partition, [*keys], [*values], [*times], range(start, end), None, end)

    def close(self) -> None:
        pass

    def beginning_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.beginning)

    def end_offsets(self, partitions: Any, timeout_ms: float = 0) -> dict[TopicPartition, int]:
        if self.away:
            raise BrokerUnavailableError("not now")
        return {partition: len(self.partitions[partition]) for partition in partitions}


class Task:
    """A task with one timestamped store; with ``versions``, one of versions, each at one time."""

    def __init__(self, log: Changelog, partition: int = 0) -> None:
        self.task_id = TaskId(0, partition)
        self._records = log.partitions[TopicPartition(LOG.topic, partition)]
        self.state = self
        self.versions = False
        self.store: dict[Any, tuple[bytes, int]] = {}
        #: What the store held at the last commit.
        self.before: dict[Any, tuple[bytes, int]] = {}
        self.changelogs = {"counts": TopicPartition(LOG.topic, partition)}
        self.logged = {"counts": 0}
        self.log_ends = {"counts": 0}
        self.last_commit = {TopicPartition("in", 0): CommittedOffset(1)}
        self.log_changes = {"counts": self.append}

    def append(self, key: bytes, value: bytes | None, timestamp: int | None, headers: Any) -> None:
        self.logged["counts"] += 1
        self._records.append((key, value, 99 if timestamp is None else timestamp))

    def put(self, key: bytes, value: bytes, timestamp: int) -> None:
        self.store[self._place(key, timestamp)] = value, timestamp
        self.append(key, value, timestamp, ())

    def _place(self, key: bytes, time: int) -> Any:
        return (key, time) if self.versions else key

    def as_logged(self, store: str, key: bytes, time: int) -> tuple[bytes | None, int | None, Headers | None]:
        return *self.store.get(self._place(key, time), (None, time if self.versions else None)), None

    def keeps_versions(self, store: str) -> bool:
        return self.versions

    def abort(self) -> None:
        self.store = dict(self.before)


class World:
    def __init__(self) -> None:
        self.log = Changelog()
        self.task = Task(self.log)
        self.clock = ManualClock()
        self.replaced = False
        log: Any = self.log
        self.guard = ChangelogGuard(lambda: log, log, self.confirm, self.clock)

    def check(self) -> int:
        task: Any = self.task
        task.before = dict(task.store)
        return self.guard.check([task], {LOG: len(self.log.records)})

    def confirm(self, task: Any) -> None:
        if self.replaced:
            raise TaskMigratedError("somebody else has it")


@pytest.fixture
def world() -> World:
    return World()


def test_nothing_is_read_while_nobody_else_writes(world: World) -> None:
    for number in range(3):
        world.task.put(b"k", b"%d" % number, number)
        assert world.check() == 0
    assert world.log.reads == 0


def test_an_old_value_behind_the_tasks_own_is_followed_by_the_tasks_own(world: World) -> None:
    world.task.put(b"k", b"73", 2)
    world.log.records.append((b"k", b"31", 1))
    assert world.check() == 1
    assert world.log.records[-1] == (b"k", b"73", 2)
    # What was logged once more is the task's own.
    assert world.check() == 0
    assert world.log.reads == 1


def test_an_old_value_before_the_tasks_own_needs_nothing(world: World) -> None:
    world.log.records.append((b"k", b"31", 1))
    world.task.put(b"k", b"73", 2)
    assert world.check() == 0
    assert len(world.log.records) == 2


def test_a_key_that_the_store_has_not_is_deleted_again(world: World) -> None:
    world.log.records.append((b"gone", b"31", 1))
    assert world.check() == 1
    assert world.log.records[-1][:2] == (b"gone", None)


def test_the_same_value_with_another_timestamp_is_another_value(world: World) -> None:
    world.task.put(b"k", b"1", 2)
    world.log.records.append((b"k", b"1", 1))
    assert world.check() == 1


def test_what_cannot_be_read_now_is_read_at_the_next_commit(world: World) -> None:
    world.task.put(b"k", b"73", 2)
    world.log.records.append((b"k", b"31", 1))
    world.log.away = True
    assert world.check() == 0
    world.log.away = False
    world.task.put(b"other", b"1", 3)
    assert world.check() == 1
    assert world.log.records[-1] == (b"k", b"73", 2)


def test_changelogs_that_lie_still_are_looked_at_when_it_is_asked_for(world: World) -> None:
    task: Any = world.task
    world.log.records.append((b"k", b"31", 1))
    assert world.guard.check_all([task]) == 1
    assert world.guard.check_all([]) == 0


def test_who_was_replaced_takes_its_successors_values_for_nobodys_mistake(world: World) -> None:
    world.task.put(b"k", b"73", 2)
    world.check()
    # It was frozen, and does not know it yet.
    world.replaced = True
    world.log.records.append((b"k", b"74", 3))
    with pytest.raises(TaskMigratedError):
        world.check()
    assert world.log.records[-1] == (b"k", b"74", 3)


def test_without_a_commit_nobody_can_say_whose_the_task_is(world: World) -> None:
    committed, world.task.last_commit = world.task.last_commit, {}
    world.log.records.append((b"k", b"31", 1))
    assert world.check() == 0
    assert len(world.log.records) == 1
    world.task.last_commit = committed
    assert world.check() == 1


def test_what_retention_has_taken_meanwhile_is_not_asked_for(world: World) -> None:
    world.log.records += [(b"old", b"1", 1), (b"k", b"31", 1)]
    world.log.beginning = 1
    assert world.check() == 1
    assert world.log.records[2:] == [(b"k", None, 99)]


def test_a_log_that_is_away_when_it_is_time_to_look_is_asked_the_next_time(world: World) -> None:
    task: Any = world.task
    world.log.records.append((b"k", b"31", 1))
    world.log.away = True
    world.clock.advance_ms(int(CHECK_INTERVAL_MS))
    world.guard.now_and_then([task])
    world.log.away = False
    world.guard.now_and_then([task])
    assert len(world.log.records) == 1, "not before the interval is over"
    world.clock.advance_ms(int(CHECK_INTERVAL_MS))
    world.guard.now_and_then([task])
    assert world.log.records[1:] == [(b"k", None, 99)]


def test_what_is_taken_back_is_followed_by_what_the_store_held_at_the_last_commit(world: World) -> None:
    task: Any = world.task
    world.guard.take_back([task])
    assert world.log.reads == 0
    world.task.put(b"k", b"1", 1)
    world.check()
    world.task.put(b"k", b"2", 2)
    world.task.put(b"new", b"1", 2)
    assert world.guard.take_back([task]) == []
    assert world.log.records[-2:] == [(b"k", b"1", 1), (b"new", None, 99)]


def test_what_many_tasks_take_back_is_read_at_once(world: World) -> None:
    tasks: Any = [Task(world.log, partition) for partition in range(100)]
    for number, task in enumerate(tasks[1:]):
        task.put(b"k", b"%d" % number, 1)
    world.guard.take_back(tasks)
    assert world.log.reads == 1
    assert [len(world.log.partitions[task.changelogs["counts"]]) for task in tasks] == [0, *[2] * 99]
    assert all(world.log.partitions[task.changelogs["counts"]][-1] == (b"k", None, 99) for task in tasks[1:])


def test_a_changelog_that_was_deleted_does_not_keep_others_from_being_taken_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    tasks: Any = [Task(world.log, partition) for partition in range(3)]
    for task in tasks:
        task.put(b"k", b"1", 1)
    world.log.deleted = tasks[1].changelogs["counts"]
    world.guard.take_back(tasks)
    assert [len(world.log.partitions[task.changelogs["counts"]]) for task in tasks] == [2, 1, 2]
    (message,) = caplog.messages
    assert "task 0_1: its changelogs could not be corrected" in message


def test_versions_that_are_taken_back_are_named_so_that_they_are_left_out(world: World) -> None:
    task: Any = world.task
    task.versions = True
    world.task.put(b"k", b"1", 1)
    world.check()
    for value, time in ((b"2", 1), (b"3", 7), (b"4", 5)):
        world.task.put(b"k", value, time)
    assert world.guard.take_back([task]) == [Undone(LOG, 1, 4)]
    assert len(world.log.records) == 4, (
        "what was logged at their times would stand behind what comes at them again"
    )


def test_a_stretch_with_versions_of_somebody_else_is_not_left_out(world: World) -> None:
    task: Any = world.task
    task.versions = True
    world.check()
    world.task.put(b"k", b"2", 2)
    world.log.records.append((b"k", b"9", 3))
    assert world.guard.take_back([task]) == []


def test_what_cannot_be_taken_back_is_reported(world: World) -> None:
    task: Any = world.task
    world.task.put(b"k", b"1", 1)
    world.log.away = True
    with pytest.raises(BrokerUnavailableError):
        world.guard.take_back([task])
