"""What is processed is deleted from internal topics now and then, without waiting for the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.clock import ManualClock
from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition
from pystreams.runtime.tasks.purge import Purge, processed

BETWEEN, IN = TopicPartition("app-by-word-repartition", 0), TopicPartition("in", 0)


class Deletion:
    def __init__(self) -> None:
        self.done = False
        self.error: BrokerError | None = None

    def wait(self) -> None:
        assert self.done, "the thread would wait"
        if self.error is not None:
            raise self.error


class Admin:
    def __init__(self) -> None:
        self.asked: list[dict[TopicPartition, int]] = []
        self.deletion = Deletion()

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> Deletion:
        self.asked.append(dict(offsets))
        self.deletion = Deletion()
        return self.deletion


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.admin = Admin()
        self.offset = 5
        admin: Any = self.admin
        self.purge = Purge(admin, "repartition topics", processed({BETWEEN.topic}), 100, self.clock)

    def later(self, milliseconds: int) -> None:
        self.clock.advance_ms(milliseconds)
        task: Any = self
        self.purge.now_and_then([task])

    @property
    def last_commit(self) -> dict[TopicPartition, CommittedOffset]:
        return {BETWEEN: CommittedOffset(self.offset), IN: CommittedOffset(7)}


@pytest.fixture
def world() -> World:
    return World()


def test_only_internal_topics_are_purged_and_only_now_and_then(world: World) -> None:
    world.later(99)
    assert world.admin.asked == []
    world.later(1)
    assert world.admin.asked == [{BETWEEN: 5}]
    world.admin.deletion.done = True
    world.offset = 9
    world.later(99)
    assert len(world.admin.asked) == 1
    world.later(1)
    assert world.admin.asked[1:] == [{BETWEEN: 9}]


def test_nothing_is_asked_while_the_log_has_not_answered(world: World) -> None:
    world.later(100)
    world.later(100)
    world.later(100)
    assert len(world.admin.asked) == 1
    world.admin.deletion.done = True
    world.later(1)
    assert len(world.admin.asked) == 2


def test_a_refusal_is_reported_once_until_it_works_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        world.later(100)
        world.admin.deletion.error = BrokerError("no")
        world.admin.deletion.done = True

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            refuse()
        world.later(100)
        assert caplog.text.count("keep what is not needed any more") == 1
        world.later(100)
        world.admin.deletion.done = True
        refuse()
        world.later(100)
        assert caplog.text.count("keep what is not needed any more") == 2
