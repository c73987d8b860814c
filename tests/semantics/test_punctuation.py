"""Punctuators fire on a grid of stream time or with the wall clock, once for all points that were passed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from pystreams import StreamsBuilder
from pystreams.errors import ProcessingError
from pystreams.processor import Processor, ProcessorContext, PunctuationType
from pystreams.record import Record
from pystreams.testing import TopologyTestDriver


class Ticker(Processor[str, str, str, str]):
    """Forwards records, and a tick with the time of each punctuation."""

    type = PunctuationType.STREAM_TIME

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        self.schedule = context.schedule(10, self.type, self.tick)

    def tick(self, timestamp: int) -> None:
        metadata = self.context.record_metadata()
        self.context.forward(Record("tick", str(metadata), timestamp))

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)


class WallTicker(Ticker):
    type = PunctuationType.WALL_CLOCK_TIME


class OneTick(Ticker):
    def tick(self, timestamp: int) -> None:
        super().tick(timestamp)
        self.schedule.cancel()


def builder_with(processor: type[Ticker]) -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).process(processor, key=str, value=str).to("out")
    return builder


def keys_and_times(processor: type[Ticker], timestamps: list[int]) -> list[tuple[str, int]]:
    with TopologyTestDriver(builder_with(processor)) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for timestamp in timestamps:
            topic.pipe_input("a", "x", timestamp=timestamp)
        records = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.timestamp) for record in records]


def test_stream_time_fires_after_the_record_that_passes_a_point_of_the_grid() -> None:
    assert keys_and_times(Ticker, [5, 9, 12, 20]) == [
        ("a", 5), ("tick", 5), ("a", 9), ("a", 12), ("tick", 12), ("a", 20), ("tick", 20),
    ]  # fmt: skip


def test_points_that_are_passed_at_once_give_one_call() -> None:
    assert keys_and_times(Ticker, [5, 47, 49, 50]) == [
        ("a", 5), ("tick", 5), ("a", 47), ("tick", 47), ("a", 49), ("a", 50), ("tick", 50),
    ]  # fmt: skip


def test_a_cancelled_punctuator_never_fires_again() -> None:
    assert keys_and_times(OneTick, [5, 15, 25]) == [("a", 5), ("tick", 5), ("a", 15), ("a", 25)]


def test_the_wall_clock_fires_first_after_one_interval_and_gives_the_time_of_now() -> None:
    with TopologyTestDriver(builder_with(WallTicker), initial_wall_clock=1000) as driver:
        out = driver.create_output_topic("out", key=str, value=str)
        driver.advance_wall_clock_time(9)
        assert out.is_empty
        driver.advance_wall_clock_time(26)
        assert [(record.key, record.timestamp) for record in out.read_records()] == [("tick", 1035)]
        driver.advance_wall_clock_time(5)
        assert [record.timestamp for record in out.read_records()] == [1040]


def test_a_punctuator_has_no_record() -> None:
    with TopologyTestDriver(builder_with(WallTicker)) as driver:
        driver.advance_wall_clock_time(10)
        assert driver.create_output_topic("out", key=str, value=str).read_value() == "None"


#: Random schedules, and when Java 4.3.1's test driver called their punctuators: after each record ("r", its timestamp)
#: and each step of the wall clock ("w", milliseconds). ``when``: scheduled in ``init`` or by the first record.
JAVA = json.loads((Path(__file__).parent / "java" / "anchored_punctuation.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", JAVA, ids=[str(number) for number in range(len(JAVA))])
def test_anchored_schedules_fire_when_javas_do(case: dict[str, Any]) -> None:
    calls: list[int] = []

    class Anchored(Processor[str, str, str, str]):
        def init(self, context: ProcessorContext[Any, Any]) -> None:
            super().init(context)
            self.scheduled = False
            if case["when"] == "init":
                self.schedule()

        def schedule(self) -> None:
            kind = (
                PunctuationType.STREAM_TIME if case["type"] == "stream" else PunctuationType.WALL_CLOCK_TIME
            )
            self.context.schedule(case["interval"], kind, calls.append, start_time=case["start"])
            self.scheduled = True

        def process(self, record: Record[str, str]) -> None:
            if not self.scheduled:
                self.schedule()

    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).process(Anchored)
    found = []
    with TopologyTestDriver(builder, initial_wall_clock=case["wall"]) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for kind, time in case["drive"]:
            if kind == "r":
                topic.pipe_input("k", "v", timestamp=time)
            else:
                driver.advance_wall_clock_time(time)
            found.append(calls.copy())
            calls.clear()
    assert found == case["calls"]


class Hourly(Ticker):
    """Anchored at noon in a zone two hours ahead of UTC."""

    start: Any = datetime(2024, 3, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        Processor.init(self, context)
        hour = timedelta(hours=1)
        context.schedule(hour, PunctuationType.WALL_CLOCK_TIME, self.tick, start_time=self.start)


def test_a_schedule_is_anchored_at_a_datetime_with_a_time_zone() -> None:
    ten, minute = 1_709_287_200_000, 60_000
    with TopologyTestDriver(builder_with(Hourly), initial_wall_clock=ten - 90 * minute) as driver:
        out = driver.create_output_topic("out", key=str, value=str)
        driver.advance_wall_clock_time(89 * minute)
        assert out.is_empty
        driver.advance_wall_clock_time(minute)
        driver.advance_wall_clock_time(59 * minute)
        driver.advance_wall_clock_time(minute)
        assert [record.timestamp - ten for record in out.read_records()] == [0, 60 * minute]


@pytest.mark.parametrize(
    "start",
    [
        -1,
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime(2024, 1, 1),  # noqa: DTZ001
        "noon",
        1.5,
    ],
)
def test_a_start_that_is_no_time_since_1970_is_refused(start: Any) -> None:
    class Wrong(Hourly):
        pass

    Wrong.start = start
    with pytest.raises(ProcessingError, match="not before 1970"):
        TopologyTestDriver(builder_with(Wrong))
