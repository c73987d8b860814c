"""The watch reads offsets before ends, again and again; if something goes wrong, nobody waits longer than the limit."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from pystreams import StreamsBuilder, StreamsConfig, TimeWindows
from pystreams.broker.port import CommittedOffset
from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics, names
from pystreams.runtime.catching_up import group_watch
from pystreams.runtime.catching_up.group_watch import GroupWatch, watch_of
from pystreams.stream_time import TIME_MAX
from pystreams.topology.built import BuiltTopology
from tests.live.support import eventually

IN, EMPTY, BETWEEN = (
    TopicPartition("in", 0),
    TopicPartition("in", 1),
    TopicPartition("app-windows-repartition", 0),
)
INPUTS = {TaskId(0, 0): frozenset({IN}), TaskId(0, 1): frozenset({EMPTY}), TaskId(1, 0): frozenset({BETWEEN})}
WAIT_MAX_MS = 5_000


def windows_behind_a_repartition() -> BuiltTopology:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str).group_by(lambda key, value: value)
    stream.windowed_by(TimeWindows.tumbling(1_000)).count(name="windows").to_stream().to("out")
    return builder.build().build("app")


class Admin:
    """A log with what a test writes into it."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self.beginnings = {IN: 0, EMPTY: 0, BETWEEN: 0}
        self.ends = {IN: 10, EMPTY: 0, BETWEEN: 0}
        #: Records below the ends whose transactions seem to be open.
        self.open: dict[TopicPartition, int] = {}
        self.asked: list[str] = []
        self.fails = False

    def group_offsets(self, group: str, *, stable: bool = True) -> dict[TopicPartition, CommittedOffset]:
        assert not stable, "in a large group some commit is always under way"
        if self.fails:
            raise BrokerUnavailableError("nobody answers")
        self.asked.append("offsets")
        return dict(self.committed)

    def beginning_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
        return {p: self.beginnings[p] for p in partitions}

    def stable_end_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
        self.asked.append("ends")
        return {p: self.ends[p] - self.open.get(p, 0) for p in partitions}

    def end_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
        self.asked.append("ends")
        return {p: self.ends[p] for p in partitions}


class World:
    def __init__(self, **settings: Any) -> None:
        self.admin, self.clock, self.metrics = Admin(), ManualClock(1_000), Metrics()
        config = StreamsConfig.of(application_id="app", catch_up_wait_max_ms=WAIT_MAX_MS, **settings)
        admin: Any = self.admin
        self.made = watch_of(
            windows_behind_a_repartition(),
            config,
            INPUTS,
            admin,
            self.clock,
            self.metrics,
            transactional=True,
        )

    @property
    def watch(self) -> GroupWatch:
        assert self.made is not None
        return self.made

    def bound(self) -> int | None:
        return None if self.watch.seen is None else self.watch.seen.view.bounds[1]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(group_watch, "_OFTEN_S", 0.001)
    monkeypatch.setattr(group_watch, "_SELDOM_S", 0.001)
    world = World()
    yield world
    world.watch.close()


def test_the_ends_are_read_after_the_offsets(world):
    world.watch.begin_generation(1)
    eventually(lambda: len(world.admin.asked) > 6)
    assert world.admin.asked[:6] == ["offsets", "ends", "ends"] * 2


def test_what_a_transaction_wrote_whose_end_does_not_show_yet_has_to_be_passed(world):
    world.admin.ends[BETWEEN] = world.admin.open[BETWEEN] = 7
    world.admin.committed[IN] = CommittedOffset(10)
    world.watch.begin_generation(1)
    eventually(lambda: world.watch.seen is not None)
    assert world.watch.ends_to_pass([IN, BETWEEN], world.watch.seen.view) == {BETWEEN: 7}


def test_who_lags_is_reported_and_counted(world):
    world.watch.begin_generation(1)
    eventually(lambda: world.bound() == -1)
    assert world.metrics.total(names.LAGGING_TASKS) == 1
    world.admin.committed[IN] = CommittedOffset(10)
    eventually(lambda: world.bound() == TIME_MAX)
    eventually(lambda: world.metrics.total(names.LAGGING_TASKS) == 0)


def test_a_reading_of_an_earlier_generation_is_not_taken_for_one_of_the_new(world):
    world.watch.begin_generation(4)
    eventually(lambda: world.watch.seen is not None)
    assert world.watch.seen.generation == 4
    world.watch.begin_generation(5)
    eventually(lambda: world.watch.seen.generation == 5)
    world.watch.begin_generation(4)
    assert world.watch.seen.generation == 5


def test_only_topics_in_between_have_to_be_passed(world):
    world.watch.begin_generation(1)
    eventually(lambda: world.watch.seen is not None)
    view = world.watch.seen.view
    assert world.watch.ends_to_pass([IN, BETWEEN], view) == {BETWEEN: 0}


def test_a_broker_that_does_not_answer_is_asked_again_and_said_once(world, caplog):
    world.admin.fails = True
    with caplog.at_level(logging.WARNING):
        world.watch.begin_generation(1)
        eventually(lambda: caplog.messages)
        world.admin.fails = False
        eventually(lambda: world.bound() == -1)
    assert len(caplog.messages) == 1
    assert "nobody answers" in caplog.text


def test_a_broker_that_does_not_answer_for_too_long_holds_nobody_back(world):
    world.admin.fails = True
    world.watch.begin_generation(1)
    eventually(lambda: world.watch._failing_ms is not None)
    assert world.bound() is None
    world.clock.advance_ms(WAIT_MAX_MS)
    eventually(lambda: world.bound() == TIME_MAX)
    assert world.watch.ends_to_pass([BETWEEN], world.watch.seen.view) == {}
    world.admin.fails = False
    eventually(lambda: world.bound() == -1)


def test_a_task_that_does_not_move_is_named_once_with_its_partition(world, caplog):
    world.watch.begin_generation(1)
    eventually(lambda: world.bound() == -1)
    with caplog.at_level(logging.WARNING):
        world.clock.advance_ms(WAIT_MAX_MS)
        eventually(lambda: world.bound() == TIME_MAX)
        asked = len(world.admin.asked)
        eventually(lambda: len(world.admin.asked) > asked + 10)
    (message,) = caplog.messages
    assert "task 0_0" in message
    assert "in-0 at offset 0" in message
    assert "catch_up_wait_max_ms" in message
    assert world.metrics.total(names.LAGGING_TASKS_GIVEN_UP) == 1
    assert world.metrics.total(names.LAGGING_TASKS) == 0
    world.admin.committed[IN] = CommittedOffset(3)
    eventually(lambda: world.bound() == -1)
    eventually(lambda: world.metrics.total(names.LAGGING_TASKS_GIVEN_UP) == 0)


def test_nothing_is_watched_if_the_setting_says_so_or_nothing_depends_on_it():
    assert World(stream_time="java").made is None
    builder = StreamsBuilder()
    windows = builder.stream("in", key=str, value=str).group_by_key().windowed_by(TimeWindows.tumbling(1_000))
    windows.count().to_stream().to("out")
    config = StreamsConfig.of(application_id="app")
    admin: Any = Admin()
    built = builder.build().build("app")
    assert watch_of(built, config, {}, admin, ManualClock(), Metrics(), transactional=True) is None


def test_closing_does_not_wait_for_an_answer_that_does_not_come(world):
    world.watch.close()
    world.watch.begin_generation(1)
    assert world.watch._thread is None
