"""A commit goes flush, broker, state; what fails before the broker has committed leaves no trace in the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.offset_metadata import OffsetMetadata, encode_committed, merge_committed
from pystreams.engine.stream_task import Position
from pystreams.errors import BrokerUnavailableError, TaskMigratedError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.committer import Committer
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.committed import CommittedStores, Offsets

IN = TopicPartition("in", 0)
EMPTY = TopicPartition("empty", 0)
CHANGELOG = TopicPartition("app-counts-changelog", 0)


class Stream:
    """A stream task as the committer sees it; writes down what is called."""

    task_id = TaskId(0, 0)

    def __init__(self, calls: list[Any]) -> None:
        self._calls = calls
        self.at = {IN: Position(5, 70), EMPTY: Position(0, -1)}
        self.waiting = 0
        self.memory: dict[str, int] = {}
        self.commit_needed = False

    def flush(self, flush_caches: Callable[[], None]) -> None:
        flush_caches()

    def start(
        self,
        committed: Mapping[TopicPartition, Position],
        operator_state: Mapping[str, int],
        stream_time: int,
    ) -> None:
        self.at, self.memory = dict(committed), dict(operator_state)

    def positions(self) -> dict[TopicPartition, Position]:
        return self.at

    def buffered(self, partition: TopicPartition) -> int:
        return self.waiting

    def operator_state(self) -> dict[str, int]:
        return self.memory

    def after_commit(self) -> None:
        self._calls.append("after_commit")


class State:
    def __init__(self, calls: list[Any]) -> None:
        self._calls = calls
        self.committed_stores = CommittedStores()

    def attach(self, cache: ThreadCache) -> None:
        """It has no stores."""

    def flush_caches(self) -> None:
        self._calls.append("flush")

    def commit(self, changelog_offsets: Mapping[str, int], input_offsets: Offsets) -> None:
        self._calls.append(("state", dict(changelog_offsets)))


class Producer:
    def __init__(self, calls: list[Any]) -> None:
        self._calls = calls
        self.error: Exception | None = None

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Any
    ) -> dict[TopicPartition, int]:
        self._calls.append(("broker", {str(p): o.offset for p, o in offsets.items()}))
        if self.error is not None:
            raise self.error
        return {CHANGELOG: 9, TopicPartition("other", 0): 1}


class Member:
    """Writes nothing down: it is asked before each commit."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def confirm(self) -> None:
        if self.error is not None:
            raise self.error


class LastCommits:
    """No other member has gone on with the task."""

    def before_first(self, tasks: Sequence[ActiveTask]) -> None: ...


class Consumer:
    def __init__(self) -> None:
        self.positions = {IN: 5, EMPTY: 0}

    def position(self, partition: TopicPartition) -> int:
        return self.positions[partition]


class World:
    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.stream = Stream(self.calls)
        self.producer = Producer(self.calls)
        self.consumer = Consumer()
        stream: Any = self.stream
        state: Any = State(self.calls)
        self.task = ActiveTask(
            TaskId(0, 0), frozenset({IN, EMPTY}), {"counts": CHANGELOG}, self.consumer.position
        )
        self.task.opened(HostedTask(stream, state))
        self.task.fresh = {EMPTY: 0}
        producer: Any = self.producer
        self.member = Member()
        member: Any = self.member
        last_commits: Any = LastCommits()
        self.committer = Committer(producer, member, last_commits, lambda task: None, nullcontext)

    def commit(self) -> list[Any]:
        self.calls.clear()
        self.committer.commit([self.task])
        return list(self.calls)


@pytest.fixture
def world() -> World:
    return World()


def test_the_broker_decides_between_flush_and_state(world: World) -> None:
    assert world.commit() == ["flush", ("broker", {"in-0": 5}), ("state", {"counts": 9}), "after_commit"]


def test_a_commit_that_fails_leaves_the_state_alone_and_can_be_tried_again(world: World) -> None:
    world.producer.error = BrokerUnavailableError("away")
    with pytest.raises(BrokerUnavailableError):
        world.commit()
    assert world.calls == ["flush", ("broker", {"in-0": 5})]
    world.producer.error = None
    assert world.commit()[1:] == [("broker", {"in-0": 5}), ("state", {"counts": 9}), "after_commit"]


def test_only_offsets_that_say_something_new_are_committed(world: World) -> None:
    world.commit()
    assert world.commit()[1] == ("broker", {})
    world.stream.at[IN] = Position(6, 70)
    assert world.commit()[1] == ("broker", {"in-0": 6})


def test_a_partition_of_which_nothing_was_read_gets_no_offset(world: World) -> None:
    world.commit()
    assert EMPTY not in world.task.last_commit
    world.stream.at[EMPTY] = Position(1, 3)
    assert world.commit()[1] == ("broker", {"empty-0": 1})


def test_what_punctuators_alone_have_written_is_committed_with_an_offset_so_that_the_group_checks_the_member(
    world: World,
) -> None:
    world.stream.at[IN], world.task.fresh[IN] = Position(5, 70), 5
    world.stream.commit_needed = True
    assert world.commit()[1] == ("broker", {"empty-0": 0}), "nothing was ever read"
    assert world.commit()[1] == ("broker", {"empty-0": 0}), "nothing was committed of the first one"
    world.stream.at[IN] = Position(6, 70)
    assert world.commit()[1] == ("broker", {"in-0": 6})
    before = dict(world.task.last_commit)
    assert world.commit()[1] == ("broker", {"empty-0": 0})
    assert world.task.last_commit == before


def test_a_hole_behind_the_last_record_is_committed_too_once_nothing_waits(world: World) -> None:
    world.consumer.positions[IN] = 12
    world.stream.waiting = 1
    assert world.commit()[1] == ("broker", {"in-0": 5})
    world.stream.waiting = 0
    assert world.commit()[1] == ("broker", {"in-0": 12})


def test_changed_operator_state_is_committed_with_all_known_partitions(world: World) -> None:
    world.commit()
    world.stream.memory = {"py/window/observed": 70}
    assert world.commit()[1] == ("broker", {"in-0": 5})
    committed = world.task.last_commit[IN]
    assert OffsetMetadata.decode(committed.metadata).entries == {"py/window/observed": 70, "py/at/in/0": 5}


def test_a_start_hands_back_what_was_committed(world: World) -> None:
    committed = encode_committed({IN: 5}, {IN: 70}, {"py/window/observed": 60}, {"javas": 1})
    world.task.last_commit = committed
    world.task.start(ThreadCache(0), {IN: 5, EMPTY: 0}, {IN: 0, EMPTY: 0})
    assert world.stream.at == {IN: Position(5, 70), EMPTY: Position(0, -1)}
    # What Kafka Streams keeps there, too, is for operators as well: how far the emission of closed windows came.
    assert world.stream.memory == {"javas": 1, "py/window/observed": 60}
    assert world.commit()[1] == ("broker", {}), "nothing is new"
    world.stream.at[IN] = Position(6, 80)
    world.commit()
    assert merge_committed(world.task.last_commit).foreign == {"javas": 1}


def test_who_was_replaced_flushes_nothing(world: World) -> None:
    world.member.error = TaskMigratedError("it was frozen for too long")
    with pytest.raises(TaskMigratedError):
        world.commit()
    assert world.calls == []
