"""All hosts commit by one function: flush, log, stores, and nothing of a store before the log has committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.engine.commit import commit
from pystreams.engine.hosted_task import HostedTask
from pystreams.errors import BrokerUnavailableError, ProcessingError
from pystreams.ids import TopicPartition

IN, LOG = TopicPartition("in", 0), TopicPartition("log", 0)


class Task:
    """Writes down what is asked of it."""

    def __init__(self, name: str, calls: list[Any]) -> None:
        self._name = name
        self._calls = calls
        self.error: Exception | None = None

    def flush(self) -> None:
        if self.error is not None:
            raise self.error
        self._calls.append(f"flush {self._name}")

    def offsets_to_commit(self) -> dict[TopicPartition, CommittedOffset]:
        return {TopicPartition(self._name, 0): CommittedOffset(3)}

    def after_commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], end_offsets: Mapping[TopicPartition, int]
    ) -> None:
        self._calls.append((f"keep {self._name}", [*offsets], dict(end_offsets)))


class Producer:
    def __init__(self, calls: list[Any]) -> None:
        self._calls = calls
        self.error: Exception | None = None

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Any
    ) -> dict[TopicPartition, int]:
        self._calls.append(("log", sorted(str(p) for p in offsets), member))
        if self.error is not None:
            raise self.error
        return {LOG: 9}


class World:
    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.tasks = [Task("a", self.calls), Task("b", self.calls)]
        self.producer: Any = Producer(self.calls)
        self.working: list[Any] = []


@pytest.fixture
def world() -> World:
    return World()


def test_tasks_of_one_producer_are_flushed_all_and_then_committed_at_once(world: World) -> None:
    member: Any = "member"
    assert commit(world.tasks, world.producer, member) == {LOG: 9}
    assert world.calls == [
        "flush a",
        "flush b",
        ("log", ["a-0", "b-0"], "member"),
        ("keep a", [TopicPartition("a", 0)], {LOG: 9}),
        ("keep b", [TopicPartition("b", 0)], {LOG: 9}),
    ]


def test_what_the_log_does_not_commit_no_store_keeps(world: World) -> None:
    world.producer.error = BrokerUnavailableError("away")
    with pytest.raises(BrokerUnavailableError):
        commit(world.tasks, world.producer)
    assert [call for call in world.calls if call[0].startswith("keep")] == []


def test_what_cannot_be_flushed_is_not_committed_and_the_task_is_known(world: World) -> None:
    world.tasks[1].error = ProcessingError("no")
    with pytest.raises(ProcessingError):
        commit(world.tasks, world.producer, working=world.working.append)
    assert world.calls == ["flush a"]
    assert world.working == world.tasks


def test_offsets_may_be_committed_once_more_without_a_task(world: World) -> None:
    none: list[Task] = []
    commit(none, world.producer, again={IN: CommittedOffset(1)})
    assert world.calls == [("log", ["in-0"], None)]


def test_a_host_without_a_group_keeps_the_ends_of_its_changelogs_and_what_it_wants() -> None:
    class State:
        kept: Any = None

        def flush_caches(self) -> None: ...

        def commit(self, offsets: Mapping[str, int], metadata: Mapping[str, int]) -> None:
            self.kept = dict(offsets), dict(metadata)

    class Stream:
        told = 0

        def flush(self, flush_caches: Callable[[], None]) -> None: ...

        def after_commit(self) -> None:
            self.told += 1

    state: Any = State()
    stream: Any = Stream()
    changelogs = {"counts": LOG, "idle": TopicPartition("idle", 0)}
    producer: Any = Producer([])
    commit([HostedTask(stream, state, changelogs, lambda: {"position": 7})], producer)
    assert state.kept == ({"counts": 9}, {"position": 7})
    assert stream.told == 1
