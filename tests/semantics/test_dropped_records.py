"""Records that steps drop go to the dead-letter topic if that is wanted: as they came, and with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import StreamsBuilder, TimeWindows
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
