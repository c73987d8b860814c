"""A record that cannot be read, or has no valid time, is dealt with when it is its turn, and never holds others up."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.dsl.operators.stateless import Forward
from pystreams.errors import ConfigError, ProcessingError, SerializationError, TopologyError
from pystreams.ids import TopicPartition
from pystreams.serde import INT
from pystreams.timestamps import (
    ConsumedRecord,
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
    resolve_extractor,
)
from tests.unit.engine.task_kit import Harness, sink, source, step

IN = TopicPartition("in", 0)


def numbers(extractor: Any = None, **settings: Any) -> Harness:
    nodes = [source(value=INT, extractor=extractor), step("s", "source", Forward()), sink("s", value=INT)]
    return Harness(nodes, **settings)


def times(harness: Harness) -> list[int | None]:
    return [record.timestamp for record in harness.producer.records if record.topic == "out"]


def test_by_default_a_record_that_does_not_decode_stops_the_task_when_it_is_next() -> None:
    harness = numbers()
    harness.feed(("k", 1, 10), ("k", b"three", 11), ("k", 3, 12))
    with pytest.raises(SerializationError) as caught:
        harness.process()
    assert times(harness) == [10]
    assert harness.task.positions()[IN].offset == 1
    message = str(caught.value)
    assert "in-0 offset 1" in message
    assert "it is the record's value that cannot be read" in message
    assert "deserialization_exception_handler" in message


def test_with_continue_bad_records_are_left_out_wherever_they_are() -> None:
    harness = numbers(deserialization_exception_handler="continue")
    bad = ("k", b"bad", 99)
    harness.feed(bad, ("k", 1, 1), bad, bad, ("k", 2, 2), bad)
    harness.feed(bad)
    harness.feed(("k", 3, 3))
    assert harness.process() == 8
    assert times(harness) == [1, 2, 3]
    assert harness.dropped() == 5
    assert harness.task.positions()[IN] == (8, 3)


def test_a_task_with_nothing_but_bad_records_has_something_to_commit() -> None:
    harness = numbers(deserialization_exception_handler="continue")
    harness.feed(("k", b"bad", 1))
    assert harness.process() == 1
    assert harness.task.commit_needed
    assert harness.task.positions()[IN].offset == 1


def test_a_dead_letter_holds_the_bytes_that_do_not_decode() -> None:
    harness = numbers(
        deserialization_exception_handler="dead_letter", errors_dead_letter_queue_topic_name="dead"
    )
    harness.run((b"\xff", b"bad", 5), ("k", 1, 6))
    (letter,) = [record for record in harness.producer.records if record.topic == "dead"]
    assert (letter.key, letter.value, letter.timestamp) == (b"\xff", b"bad", 5)
    assert times(harness) == [6]


def test_null_keys_and_values_are_never_decoded() -> None:
    harness = numbers()
    harness.run((None, None, 1))
    assert harness.written() == [(None, None, 1)]


def test_a_negative_timestamp_stops_the_task_by_default() -> None:
    harness = numbers()
    harness.feed(("k", 1, 5), ("k", 2, -1))
    with pytest.raises(ProcessingError, match="invalid timestamp -1"):
        harness.process()
    assert times(harness) == [5]


def test_records_without_a_valid_time_can_be_skipped() -> None:
    harness = numbers("log_and_skip")
    harness.run(("k", 1, -1), ("k", 2, 7), ("k", 3, -5))
    assert times(harness) == [7]
    assert harness.dropped() == 2
    assert harness.task.positions()[IN] == (3, 7)


def test_records_without_a_valid_time_can_have_that_of_their_partition() -> None:
    harness = numbers(UsePartitionTimeOnInvalidTimestamp, deserialization_exception_handler="continue")
    harness.feed(("k", 1, 4), ("k", b"bad", 100), ("k", 2, -1), ("k", 3, 2), ("k", 4, -1))
    harness.feed(("k", 5, -1))
    harness.process()
    assert times(harness) == [4, 4, 2, 4, 4]


def test_the_partitions_time_must_be_known_for_that() -> None:
    harness = numbers("partition_time")
    harness.feed(("k", 1, -1))
    with pytest.raises(ProcessingError, match="no earlier record has a timestamp"):
        harness.process()


def test_a_record_may_have_the_time_at_which_it_is_read() -> None:
    harness = numbers("wall_clock")
    harness.run(("k", 1, -1), ("k", 2, 5))
    assert times(harness) == [1_000_000, 1_000_000]


@pytest.mark.parametrize(
    "extractor",
    [
        pytest.param(lambda record: 10 + record.value, id="record"),
        pytest.param(
            lambda record, partition_time: max(partition_time, 10) + 1, id="record-and-partition-time"
        ),
    ],
)
def test_a_function_may_take_the_time_from_the_record(extractor: Any) -> None:
    harness = numbers(extractor)
    harness.run(("k", 1, 3), ("k", 2, 3))
    assert times(harness) == [11, 12]
    assert harness.task.stream_time == 12


def test_an_extractor_stays_what_it_is_when_it_is_resolved_again() -> None:
    def of_value(record: ConsumedRecord) -> int:
        return 10 + int(record.value)

    once = resolve_extractor(of_value)
    assert resolve_extractor(once) is once
    assert resolve_extractor(of_value) == once
    harness = numbers(once)
    harness.run(("k", 1, 3))
    assert times(harness) == [11]


def test_an_extractor_that_gives_a_negative_time_drops_the_record() -> None:
    harness = numbers(lambda record: -1 if record.value == 1 else 9)
    harness.run(("k", 1, 3), ("k", 2, 3))
    assert times(harness) == [9]
    assert harness.dropped() == 1


@pytest.mark.parametrize(
    "extractor",
    [lambda record: None, lambda record: 1 / 0, lambda record: 1 << 63],
    ids=["gives-none", "raises", "gives-more-than-int64"],
)
def test_an_extractor_that_fails_stops_the_task_at_its_record(extractor: Any) -> None:
    harness = numbers(extractor)
    harness.feed(("k", 1, 3))
    with pytest.raises(ProcessingError, match=r"timestamp extractor (raised|returned)") as caught:
        harness.process()
    assert "in-0 offset 0" in str(caught.value)


def test_the_default_extractor_is_a_setting() -> None:
    harness = numbers(default_timestamp_extractor="log_and_skip")
    harness.run(("k", 1, -1), ("k", 2, 7))
    assert times(harness) == [7]


@pytest.mark.parametrize(
    "setting",
    [None, "fail", FailOnInvalidTimestamp, FailOnInvalidTimestamp()],
    ids=["none", "name", "class", "object"],
)
def test_an_extractor_can_be_named_in_several_ways(setting: Any) -> None:
    assert isinstance(resolve_extractor(setting), FailOnInvalidTimestamp)


def test_an_instance_of_a_built_in_extractor_is_a_function() -> None:
    extract = LogAndSkipOnInvalidTimestamp()
    assert extract(ConsumedRecord("t", 0, 0, 5, None, None, ()), 9) == 5


def test_an_unknown_extractor_is_an_error() -> None:
    with pytest.raises(ConfigError, match="log_and_skip"):
        resolve_extractor("skip")
    with pytest.raises(TopologyError, match="record, partition_time"):
        resolve_extractor(lambda a, b, c: 0)
