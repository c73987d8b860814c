"""Records that steps drop go to the dead-letter topic if that is wanted: as they came, and with the reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pystreams import (
    FixedKeyProcessor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    TimeWindows,
)
from pystreams.config import StreamsConfig
from pystreams.errors import ConfigError
from pystreams.testing import ProducedRecord, TopologyTestDriver

TO_DEAD = {"errors_dead_letter_queue_topic_name": "dead", "dead_letter_dropped_records": True}


def told(record: ProducedRecord) -> dict[str, str]:
    return {
        name.removeprefix("__streams.errors."): (value or b"").decode()
        for name, value in record.headers
        if name.startswith("__streams.errors.")
    }


def letters(
    builder: StreamsBuilder, *records: tuple[str | None, str | None, int], **settings: Any
) -> tuple[list[ProducedRecord], int]:
    """The dead letters of (key, value, timestamp), and how many drops were counted."""
    with TopologyTestDriver(builder, TO_DEAD | settings) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key, value, timestamp in records:
            topic.pipe_input(key, value, timestamp=timestamp)
        return driver.read_raw("dead"), driver.dropped_records


def test_a_late_record_is_moved_once_with_its_bytes_and_the_reason() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.hopping(10, advance=5)
    builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count(step="by-window")
    (letter,), dropped = letters(builder, ("a", "early", 1), ("a", "much later", 100), ("a", "late", 6))
    assert (letter.topic, letter.key, letter.value, letter.timestamp) == ("dead", b"a", b"late", 6)
    assert dropped == 2, "counted for each of its windows, as in Java"
    tells = told(letter)
    assert tells["exception"] == "pystreams.errors.DroppedRecordError"
    assert tells["message"] == (
        "step by-window dropped the record: the window has closed\n"
        "  why: stream time was 1970-01-01T00:00:00.100Z, so it was 94 ms late\n"
        "  next: a grace of at least 91 ms would have kept it"
    )
    assert (tells["topic"], tells["partition"], tells["offset"]) == ("in", "0", "2")
    facts = {"step": "by-window", "stream_time": "100", "late_ms": "94", "grace_ms": "91"}
    assert facts.items() <= tells.items()


def test_a_late_record_that_two_steps_drop_is_one_dead_letter_and_one_record() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    for size in (10, 20):
        grouped.windowed_by(TimeWindows.tumbling(size)).count(step=f"by-{size}")
    with TopologyTestDriver(builder, TO_DEAD) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for value, timestamp in (("early", 1), ("much later", 100), ("late", 6)):
            topic.pipe_input("a", value, timestamp=timestamp)
        (letter,) = driver.read_raw("dead")
        assert told(letter)["step"] == "by-10"
        assert driver.left_out == {"moved to the dead-letter topic dead": 1}
        assert [(late.step, late.records, late.grace_ms) for late in driver.late_records] == [
            ("by-10", 1, 91),
            ("by-20", 1, 81),
        ]


def test_behind_an_internal_topic_the_dead_letter_is_the_record_as_it_reached_the_step() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).map_values(str.upper).group_by(lambda value: value[0])
    grouped.windowed_by(TimeWindows.tumbling(10)).count(name="counts", step="count")
    (letter,), _ = letters(builder, ("a", "early", 1), ("a", "even later", 100), ("a", "eager", 6))
    assert (letter.key, letter.value, letter.timestamp) == (b"E", b"EAGER", 6)
    tells = told(letter)
    assert (tells["topic"], tells["partition"], tells["offset"]) == (
        "topology-test-driver-counts-repartition",
        "0",
        "2",
    )
    assert (tells["step"], tells["stream_time"], tells["late_ms"]) == ("count", "100", "94")


@pytest.mark.parametrize(
    "value, written", [("text", b"text"), (b"\xff", b"\xff"), ({"n": 1}, b'{"n":1}'), (2**70, b"%d" % 2**70)]
)
def test_a_record_whose_input_is_gone_is_written_as_it_reached_the_step(value: Any, written: bytes) -> None:
    class Again(FixedKeyProcessor[str, str, Any]):
        """Forwards the last record again, with another value, when there is no input record any more."""

        def init(self, context: ProcessorContext[str, Any]) -> None:
            context.schedule(timedelta(seconds=1), PunctuationType.WALL_CLOCK_TIME, self.punctuate)
            self.context = context

        def process(self, record: Record[str, str]) -> None:
            self.last = record
            self.context.forward(record)

        def punctuate(self, timestamp: int) -> None:
            self.context.forward(self.last.with_value(value).with_timestamp(6))

    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).process_values(Again).group_by_key()
    grouped.windowed_by(TimeWindows.tumbling(10)).count(step="count")
    with TopologyTestDriver(builder, TO_DEAD) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "x", timestamp=100)
        driver.advance_wall_clock_time(timedelta(seconds=1))
        (letter,) = driver.read_raw("dead")
    assert (letter.key, letter.value, letter.timestamp) == (b"a", written, 6)
    assert (told(letter)["topic"], told(letter)["step"], told(letter)["content"]) == ("", "count", "text")


@pytest.mark.parametrize("key, value", [(None, "x"), ("a", None)])
def test_null_keys_and_values_that_an_aggregation_drops_are_moved(key: str | None, value: str | None) -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count()
    (letter,), dropped = letters(builder, (key, value, 1))
    assert (letter.key, letter.value) == (key and key.encode(), value and value.encode())
    assert told(letter)["message"].endswith("dropped the record: null key or value")
    assert dropped == 1


def test_a_record_without_the_key_that_a_repartition_topic_needs_is_moved() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by(lambda value: None, key=str).count()
    (letter,), _ = letters(builder, ("a", "x", 1))
    assert (letter.key, letter.value) == (b"a", b"x")
    assert told(letter)["message"].endswith("dropped the record: null key")


def test_what_a_handler_left_out_or_moved_already_is_not_moved_again() -> None:
    for handler, moved in (("continue", 0), ("dead_letter", 1)):
        builder = StreamsBuilder()
        builder.stream("in", key=str, value=str).map_values(int).to("out")
        found, dropped = letters(builder, ("a", "no number", 1), processing_exception_handler=handler)
        assert (len(found), dropped) == (moved, 1)


def test_without_the_setting_drops_are_only_counted() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count()
    assert letters(builder, (None, "x", 1), dead_letter_dropped_records=False) == ([], 1)


def test_without_a_dead_letter_topic_the_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="no dead-letter topic"):
        StreamsConfig.of(application_id="app", dead_letter_dropped_records=True)
