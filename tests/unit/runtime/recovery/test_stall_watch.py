"""A partition from which nothing arrives, although the log has more, is assigned again where it was; no other is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TopicPartition
from pystreams.runtime.recovery.stall_watch import StallWatch

P0, P1 = TopicPartition("in", 0), TopicPartition("in", 1)
TIMEOUT_MS = 1_000


class Log:
    """Consumer and admin of a log: partitions are read at positions, and have ends."""

    def __init__(self) -> None:
        self.positions = {P0: 5, P1: 5}
        self.ends = {P0: 5, P1: 5}
        self.assigned: list[Mapping[TopicPartition, int]] = []
        self.away = False
        self.asked = 0
        #: So many records are written to each partition just before its end is asked for.
        self.arrives_when_asked = 0

    def position(self, partition: TopicPartition) -> int:
        return self.positions[partition]

    def read_anew(self, positions: Mapping[TopicPartition, int]) -> None:
        self.assigned.append(dict(positions))

    def stable_end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float
    ) -> dict[TopicPartition, int]:
        assert timeout_ms <= 2_000, "the thread waits for the answer"
        self.asked += 1
        if self.away:
            raise BrokerUnavailableError("no answer")
        self.ends = {partition: end + self.arrives_when_asked for partition, end in self.ends.items()}
        return {partition: self.ends[partition] for partition in partitions}


class Scene:
    def __init__(self, timeout_ms: int = TIMEOUT_MS) -> None:
        self.log = Log()
        self.clock = ManualClock()
        log: Any = self.log
        self.watch = StallWatch(log, log, self.clock, timeout_ms, "thread")
        self.reads: set[TopicPartition] = {P0, P1}

    def poll_for(self, duration_ms: int, every_ms: int = 50) -> None:
        for _ in range(duration_ms // every_ms):
            self.clock.advance_ms(every_ms)
            self.watch.polled(lambda: self.reads)


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.poll_for(100)
    return scene


def test_a_partition_that_stops_is_assigned_again_where_it_was_and_named(scene: Scene, caplog):
    scene.log.ends[P0] = 12
    scene.poll_for(2 * TIMEOUT_MS)
    assert scene.log.assigned[0] == {P0: 5}
    assert "nothing has been read from in-0" in caplog.text
    assert "7 more records, from offset 5 on" in caplog.text


def test_it_is_tried_once_per_timeout(scene: Scene):
    scene.log.ends[P0] = 12
    scene.poll_for(5 * TIMEOUT_MS)
    assert 2 <= len(scene.log.assigned) <= 5


def test_one_that_goes_on_is_left_alone(scene: Scene):
    scene.log.ends[P0] = 1_000
    for _ in range(50):
        scene.log.positions[P0] += 1
        scene.poll_for(TIMEOUT_MS // 5)
    assert scene.log.assigned == []


def test_one_that_has_been_read_to_its_end_is_left_alone(scene: Scene):
    scene.poll_for(5 * TIMEOUT_MS)
    assert scene.log.assigned == []


def test_one_whose_record_arrives_just_before_the_log_is_asked_is_left_alone(scene: Scene):
    """It has had no chance to be read: the next poll returns it."""
    scene.log.arrives_when_asked = 1
    for _ in range(5 * TIMEOUT_MS // 50):
        scene.poll_for(50)
        scene.log.positions = dict(scene.log.ends)
    assert scene.log.asked >= 3
    assert scene.log.assigned == []


def test_one_that_is_paused_is_left_alone(scene: Scene):
    scene.log.ends[P0] = 12
    scene.reads = {P1}
    scene.poll_for(5 * TIMEOUT_MS)
    assert scene.log.assigned == []
    # What follows the pause has a time of its own.
    scene.reads = {P0, P1}
    scene.poll_for(TIMEOUT_MS // 2)
    assert scene.log.assigned == []


def test_while_the_broker_is_away_nothing_is_assigned(scene: Scene):
    scene.log.ends[P0] = 12
    scene.log.away = True
    scene.poll_for(5 * TIMEOUT_MS)
    assert scene.log.assigned == []
    assert 1 <= scene.log.asked <= 5, "once per timeout"


def test_a_thread_that_hardly_polls_has_no_stall(scene: Scene):
    scene.log.ends[P0] = 12
    scene.poll_for(5 * TIMEOUT_MS, every_ms=TIMEOUT_MS)
    assert scene.log.assigned == []


def test_0_switches_it_off():
    scene = Scene(timeout_ms=0)
    scene.log.ends[P0] = 12
    scene.poll_for(10 * TIMEOUT_MS)
    assert scene.log.assigned == []
