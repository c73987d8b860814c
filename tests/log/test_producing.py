"""What a program produces is in the topic: with its types, its time, its headers, in its key's partition."""

from __future__ import annotations

import logging
import threading
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest

from pystreams import Record
from pystreams.broker.port import TopicDescription
from pystreams.clock import ManualClock, SystemClock
from pystreams.errors import ConfigError, ProductionError, SerializationError, TopicError, TopologyError
from pystreams.log import batches, open_log
from pystreams.log.output import DoubtfulTimes
from pystreams.partitioning import partition_for_key
from pystreams.times import show_time
from tests.live.support import eventually


class Order(msgspec.Struct):
    amount: int


class Refund(msgspec.Struct):
    amount: int


@dataclass
class Customer:
    name: str


@pytest.fixture
def topic(log) -> str:
    log.create_topic("t", config={"retention.ms": -1})
    return "t"


def raw(log, topic="t"):
    return [(record.key, record.value) for record in log.consume(topic)]


@pytest.mark.parametrize(
    "content,written",
    [
        ("ä", "ä".encode()),
        (5, (5).to_bytes(8, "big")),
        (0.5, b"\x3f\xe0" + bytes(6)),
        (b"\x00", b"\x00"),
        (True, b"\x01"),
        (uuid.UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
        ({"b": [1]}, b'{"b":[1]}'),
        ([1, None], b"[1,null]"),
        (Order(3), b'{"amount":3}'),
        (Customer("ann"), b'{"name":"ann"}'),
        (None, None),
    ],
)
def test_types_follow_from_what_is_written(log, topic, content, written):
    log.produce(topic, content, content)
    assert raw(log) == [(written, written)]


def test_a_value_alone_has_no_key(log, topic):
    log.produce(topic, "to be")
    assert raw(log) == [(None, b"to be")]


def test_types_can_be_given_as_in_stream(log, topic):
    log.produce(topic, 1, 2, key=float, value=int | str)
    assert raw(log) == [(b"\x3f\xf0" + bytes(6), b"2")]
    with pytest.raises(SerializationError, match="cannot be serialized as a value of type int"):
        log.produce(topic, "k", "x", value=int)


def test_types_that_could_not_be_read_together_are_refused(log, topic):
    log.produce(topic, "k", 1)
    with pytest.raises(
        SerializationError, match=r"1\.5 would be written as float, but the values before it as int"
    ):
        log.produce(topic, "k", 1.5)
    log.produce(topic, "k", 1.5, value=float)
    assert len(raw(log)) == 2


def test_all_that_is_json_may_be_mixed(log, topic):
    for value in (Order(1), Refund(2), {"amount": 3}):
        log.produce(topic, "k", value)
    assert [record.value.amount for record in log.consume(topic, value=Order)] == [1, 2, 3]


def test_a_value_that_no_type_fits_is_reported(log, topic):
    with pytest.raises(SerializationError, match="cannot be serialized as a value") as failed:
        log.produce(topic, object())
    assert "give the type of the topic's values: value=" in failed.value.hint


def test_content_in_the_place_of_a_type_is_reported(log, topic):
    with pytest.raises(TypeError, match="key= and value= are their types"):
        log.produce(topic, key="o-1", value=3)
    for content in ("o-1", 5, {"id": 1}):
        with pytest.raises(TopologyError):
            log.produce(topic, "v", key=content)
    assert raw(log) == []


def test_times_are_milliseconds_or_datetimes_or_now(log, topic):
    log.produce(topic, "a", timestamp=1_700_000_000_000)
    log.produce(topic, "b", timestamp=datetime(2013, 1, 1, tzinfo=UTC))
    before = SystemClock().now_ms()
    log.produce(topic, "c")
    times = [record.timestamp for record in log.consume(topic)]
    assert times[:2] == [1_700_000_000_000, 1_356_998_400_000]
    assert before <= times[2] <= SystemClock().now_ms()
    for wrong in (-1, 1 << 63):
        with pytest.raises(SerializationError, match=f"cannot have the timestamp {wrong}"):
            log.produce(topic, "d", timestamp=wrong)
    with pytest.raises(TypeError, match="'2013-01-01' is not a time: give a datetime"):
        log.produce(topic, "d", timestamp="2013-01-01")
    with pytest.raises(TypeError, match=r"not a time: .* most likely seconds: multiply by 1000"):
        log.produce(topic, "d", timestamp=1_700_000_000.25)


def test_headers_are_pairs_or_a_mapping(log, topic):
    log.produce(topic, "a", headers=[("x", b"1"), ("x", None)])
    log.produce(topic, "b", headers={"y": b"\xff"})
    assert [record.headers for record in log.consume(topic)] == [
        (("x", b"1"), ("x", None)),
        (("y", b"\xff"),),
    ]
    with pytest.raises(SerializationError, match="headers must be pairs of a name and bytes"):
        log.produce(topic, "c", headers={"y": "text"})


def test_the_partition_is_the_one_of_the_key_that_java_chooses(log):
    log.create_topic("wide", 7)
    log.produce_many("wide", [(str(number), number) for number in range(50)])
    for record in log.consume("wide", key=str):
        assert record.partition == partition_for_key(record.key.encode(), 7)


def test_a_partition_can_be_given(log, topic):
    with pytest.raises(ConfigError, match="t has no partition 1"):
        log.produce(topic, "x", partition=1)
    log.produce(topic, "x", partition=0)
    assert len(raw(log)) == 1


def test_many_are_pairs_tuples_and_records(log, topic):
    written = log.produce_many(
        topic, [("a", 1), ("b", 2, 7), ("c", 3, None, {"h": b"1"}), Record("d", 4, 8, (("h", b"2"),))]
    )
    assert written == 4
    found = [(r.key, r.value, r.headers) for r in log.consume(topic, key=str, value=int)]
    assert found == [("a", 1, ()), ("b", 2, ()), ("c", 3, (("h", b"1"),)), ("d", 4, (("h", b"2"),))]
    assert [r.timestamp for r in log.consume(topic)][1::2] == [7, 8]
    with pytest.raises(TypeError, match="produce_many takes records"):
        log.produce_many(topic, ["to be"])


def test_a_topic_is_copied_by_producing_what_is_consumed(log, topic):
    log.produce_many(topic, [("a", 1, 5, {"h": b"1"}), (None, None, 6)])
    log.create_topic("copy", config={"retention.ms": -1})
    assert log.produce_many("copy", log.consume(topic)) == 2
    assert [record[3:] for record in log.consume("copy")] == [record[3:] for record in log.consume(topic)]


def test_of_many_those_before_one_that_fails_stay_and_it_is_named(log, topic):
    with pytest.raises(SerializationError, match="record 3 of produce_many"):
        log.produce_many(topic, [(None, 1), (None, 2), (None, "three")])
    assert len(raw(log)) == 2


def test_what_was_produced_before_a_program_failed_is_there(folder):
    def program() -> None:
        with open_log() as log:
            log.create_topic("t")
            log.produce("t", "x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        program()
    with open_log() as log:
        assert raw(log) == [(None, b"x")]


def test_one_record_is_in_the_topic_soon_though_nobody_flushes(log, topic):
    log.produce(topic, "x")
    with open_log() as other:
        assert eventually(lambda: raw(other), "a record in the topic") == [(None, b"x")]


def test_many_records_are_committed_in_batches(log, topic, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_RECORDS", 10)
    monkeypatch.setattr(batches, "LINGER_MS", 60_000)
    for number in range(25):
        log.produce(topic, number)
    with open_log() as other:
        assert len(raw(other)) == 20
    log.flush()
    with open_log() as other:
        assert len(raw(other)) == 25


def test_large_records_are_committed_before_they_fill_the_memory(log, topic, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_BYTES", 1000)
    monkeypatch.setattr(batches, "LINGER_MS", 60_000)
    for _ in range(3):
        log.produce(topic, b"x" * 500)
    with open_log() as other:
        assert len(raw(other)) == 2


def test_a_record_that_is_too_large_is_refused_and_the_others_stay(log, topic):
    log.produce(topic, b"1")
    with pytest.raises(ProductionError, match="too large"):
        log.produce(topic, b"x" * 2_000_000)
    log.produce(topic, b"2")
    assert [value for _, value in raw(log)] == [b"1", b"2"]


def test_what_a_commit_loses_is_reported_with_its_number(log, topic, monkeypatch):
    monkeypatch.setattr(batches, "LINGER_MS", 60_000)
    log.produce(topic, "kept")
    log.flush()
    with open_log() as other:
        other.delete_topic(topic)
    for number in range(3):
        log.produce(topic, str(number))
    with pytest.raises(TopicError, match="The last 3 records sent were not written") as failed:
        log.flush()
    assert "was deleted while records were being written to it" in failed.value.why


def test_what_is_lost_in_the_background_is_reported_by_the_next_call(log, topic, monkeypatch):
    monkeypatch.setattr(batches, "LINGER_MS", 1)
    log.produce(topic, "kept")
    log.flush()
    with open_log() as other:
        other.delete_topic(topic)
    log.produce(topic, "lost")
    with pytest.raises(TopicError, match="The record sent was not written"):
        eventually(log.flush, "a flush fails")


def test_threads_share_a_log(log, topic):
    def produce() -> None:
        for number in range(500):
            log.produce(topic, number)

    threads = [threading.Thread(target=produce) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(raw(log)) == 2000


def test_records_that_retention_deletes_are_warned_about_once(log, caplog):
    log.create_topic("t")
    with caplog.at_level(logging.WARNING):
        for day in (1, 2):
            log.produce("t", "x", timestamp=datetime(2013, 1, day, tzinfo=UTC))
    assert [r.getMessage() for r in caplog.records] == [
        "t will soon delete records of 2013-01-01T00:00:00Z; to keep them: pystreams topics alter t -c retention.ms=-1"
    ]


def test_seconds_are_not_taken_for_records_to_keep(log, caplog):
    log.create_topic("t")
    log.produce("t", "x", timestamp=1_700_000_000)
    (warning,) = (r.getMessage() for r in caplog.records)
    assert warning == (
        "t will soon delete records of 1970-01-20T16:13:20Z (timestamp 1700000000: most likely seconds: multiply by"
        " 1000; timestamps are milliseconds since 1970)"
    )


def test_records_far_ahead_of_the_clock_are_warned_about_once(log, topic, caplog):
    now_ms, day_ms = SystemClock().now_ms(), 24 * 3_600_000
    log.produce(topic, "x", timestamp=now_ms + day_ms // 2)
    assert not caplog.records
    for ahead_ms in (2 * day_ms, 3 * day_ms):
        log.produce(topic, "x", timestamp=now_ms + ahead_ms)
    (warning,) = (r.getMessage() for r in caplog.records)
    assert warning == (
        f"t has a record of {show_time(now_ms + 2 * day_ms)}, more than a day ahead of the clock: it closes all earlier"
        " windows of the applications that read it"
    )


def test_as_the_clock_goes_on_records_of_now_are_not_far_ahead():
    clock = ManualClock(0)
    times = DoubtfulTimes(TopicDescription("t", 1, {}), clock)
    clock.advance_ms(30 * 24 * 3_600_000)
    assert times.warning(clock.now_ms()) == ""
    assert "more than a day ahead" in times.warning(clock.now_ms() + 25 * 3_600_000)


def test_microseconds_are_named_as_such(log, topic, caplog):
    log.produce(topic, "x", timestamp=1_700_000_000_000_000)
    assert (
        "(timestamp 1700000000000000: most likely microseconds: divide by 1000; timestamps are milliseconds since 1970)"
        in caplog.text
    )
