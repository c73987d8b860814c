"""What is consumed are the records between two places, with types."""

from __future__ import annotations

import logging
import threading
import traceback
from datetime import UTC, datetime, timedelta
from itertools import islice

import msgspec
import pytest

from pystreams import SessionWindowedSerde, TimeWindowedSerde, Windowed
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError, SerializationError, TopicError
from pystreams.log import open_log
from pystreams.timestamps import ConsumedRecord

DAY_MS = 86_400_000
FIRST = datetime(2001, 1, 1, tzinfo=UTC)


class Order(msgspec.Struct):
    amount: int


@pytest.fixture
def days(log) -> str:
    """One record a day, from the first to the fifth, in one partition."""
    log.create_topic("days", config={"retention.ms": -1})
    log.produce_many("days", [(None, str(day), FIRST + timedelta(days=day - 1)) for day in range(1, 6)])
    return "days"


def values(records) -> str:
    return "".join(record.value for record in records)


def test_a_record_has_named_fields(log):
    log.create_topic("orders")
    log.produce("orders", "a", Order(3), timestamp=SystemClock().now_ms(), headers={"h": b"1"})
    (record,) = log.consume("orders", key=str, value=Order)
    assert isinstance(record, ConsumedRecord)
    assert (record.topic, record.partition, record.offset) == ("orders", 0, 0)
    assert (record.key, record.value, record.headers) == ("a", Order(3), (("h", b"1"),))


@pytest.mark.parametrize(
    "from_,expected",
    [
        ("earliest", "12345"),
        ("latest", ""),
        (-2, "45"),
        ("-3", "345"),
        (-9, "12345"),
        (FIRST + timedelta(days=1), "2345"),
        (978_307_200_000 + DAY_MS, "2345"),
        ("2001-01-04", "45"),
        ("2009-01-01", ""),
        ({0: 3}, "45"),
    ],
)
def test_reading_begins_where_it_is_said(log, days, from_, expected):
    assert values(log.consume(days, value=str, from_=from_)) == expected


@pytest.mark.parametrize(
    "until,expected",
    [
        ("latest", "12345"),
        ("earliest", ""),
        (-2, "123"),
        (FIRST + timedelta(days=1), "1"),
        ("2001-01-04", "123"),
        ({0: 3}, "123"),
    ],
)
def test_reading_ends_where_it_is_said(log, days, until, expected):
    assert values(log.consume(days, value=str, until=until)) == expected


def test_an_hour_of_many_partitions_is_read_between_two_times(log):
    log.create_topic("wide", 5, config={"retention.ms": -1})
    log.produce_many("wide", [(str(hour), hour, FIRST + timedelta(hours=hour)) for hour in range(48)])
    part = log.consume("wide", value=int, from_="2001-01-01T10:00:00Z", until="2001-01-01T13:00:00Z")
    assert sorted(record.value for record in part) == [10, 11, 12]


def test_partitions_that_are_not_named_by_offsets_are_read_from_their_beginning(log):
    log.create_topic("two", 2)
    for partition in (0, 1):
        for value in "ab":
            log.produce("two", value, partition=partition)
    assert sorted(values(log.consume("two", value=str, from_={1: 1}))) == ["a", "b", "b"]
    assert sorted(values(log.consume("two", value=str, until={1: 1}))) == ["a", "a", "b"]
    assert values(log.consume("two", value=str, partitions=1)) == "ab"
    assert values(log.consume("two", value=str, partitions=[0], from_="-1")) == "b"


@pytest.mark.parametrize(
    "options,said",
    [
        ({"from_": "erliest"}, "did you mean earliest"),
        ({"from_": 1.5}, "1.5 is not a place in a topic"),
        ({"until": "yesterday"}, "'yesterday' is not a place"),
        ({"from_": {1: 0}}, "days has no partition 1"),
        ({"partitions": 3}, "days has no partition 3"),
        ({"follow": True, "until": "2001-01-02"}, "leave out one of them"),
        ({"timeout": 5}, "timeout= is for follow=True"),
        ({"deserialization_exception_handler": "dead_letter"}, "fail, or continue"),
    ],
)
def test_what_cannot_be_is_reported_before_anything_is_read(log, days, options, said):
    with pytest.raises(ConfigError, match=said):
        log.consume(days, **options)


def test_an_offset_that_the_log_does_not_have_is_reported(log, days):
    with pytest.raises(ConfigError, match=r"Offset 9 is not in the log(.|\n)*days-0(.|\n)*0 to 5"):
        list(log.consume(days, from_={0: 9}))


def test_it_stops_after_the_limit(log, days):
    assert values(log.consume(days, value=str, limit=2)) == "12"
    assert values(islice(log.consume(days, value=str), 3)) == "123"


def test_each_iteration_reads_anew(log, days):
    records = log.consume(days, value=str)
    assert values(records) == "12345"
    log.produce(days, "6")
    assert values(records) == "123456"


def test_following_gives_what_arrives_until_nothing_does(log, days):
    def produce() -> None:
        with open_log() as other:
            for value in "ab":
                other.produce("days", value)

    following = iter(log.consume(days, value=str, from_="latest", follow=True, timeout=timedelta(seconds=30)))
    thread = threading.Thread(target=produce)
    thread.start()
    assert next(following).value + next(following).value == "ab"
    thread.join()
    assert values(log.consume(days, value=str, from_=-1, follow=True, timeout=1)) == "b"


def test_a_null_is_none_whatever_the_type(log):
    log.create_topic("t")
    log.produce("t", "a", None)
    assert [(record.key, record.value) for record in log.consume("t", key=str, value=Order)] == [("a", None)]


def test_a_record_that_cannot_be_read_is_named(log):
    log.create_topic("t")
    log.produce_many("t", [("a", 1), ("b", 2)])
    log.produce("t", "c", "three", value=str)
    with pytest.raises(
        SerializationError, match=r"A record cannot be deserialized(.|\n)*t-0 offset 2"
    ) as failed:
        list(log.consume("t", key=str, value=int))
    assert 'deserialization_exception_handler="continue"' in failed.value.hint


def test_of_a_windowed_key_that_is_read_as_text_the_serde_is_named(log):
    log.create_topic("t", config={"retention.ms": -1})
    log.create_topic("sessions", config={"retention.ms": -1})
    window = Windowed("a", 1_700_000_000_000, 1_700_000_060_000)
    log.produce("t", window, 1, key=TimeWindowedSerde(str, 60_000))
    log.produce("sessions", window, 1, key=SessionWindowedSerde(str))
    for topic, serde in (
        ("t", "TimeWindowedSerde(str, window_size_ms)"),
        ("sessions", "SessionWindowedSerde(str)"),
    ):
        with pytest.raises(SerializationError) as failed:
            list(log.consume(topic, key=str, value=int))
        assert failed.value.why.startswith("it is the record's key: UnicodeDecodeError: ")
        assert f"key={serde}; " in failed.value.hint


def test_the_traceback_of_a_value_that_does_not_fit_is_short(log):
    log.create_topic("t")
    log.produce("t", b'{"amount": "three"}')
    with pytest.raises(SerializationError) as failed:
        list(log.consume("t", value=Order))
    assert failed.value.why.startswith("it is the record's value: the content does not fit Order: ")
    printed = "".join(traceback.format_exception(failed.value))
    assert printed.count("Traceback") == 2


def test_records_that_cannot_be_read_can_be_left_out_and_are_logged(log, caplog):
    log.create_topic("t")
    log.produce_many("t", [("a", b"x"), ("b", (1).to_bytes(8, "big")), ("c", b"y")])
    with caplog.at_level(logging.WARNING):
        read = log.consume("t", value=int, deserialization_exception_handler="continue")
        assert [record.offset for record in read] == [1]
    assert [r.getMessage().partition(" offset ")[2][:1] for r in caplog.records] == ["0", "2"]


def test_a_topic_that_is_deleted_meanwhile_is_reported(log, days):
    records = log.consume(days)
    log.delete_topic(days)
    with pytest.raises(TopicError):
        list(records)
