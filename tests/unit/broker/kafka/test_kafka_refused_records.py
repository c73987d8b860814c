"""What a broker refused is found again: topics that take less, and the one faulty record of a batch."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any

import pytest
from confluent_kafka import KafkaError

from pystreams.broker.port import TopicDescription
from pystreams.clock import ManualClock
from pystreams.errors import BrokerError, BrokerUnavailableError

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pystreams.broker.kafka.refused_records import RefusedRecords, Sent, batch_bytes


class Topics:
    """The settings of topics, as a cluster tells them; an error where it tells none."""

    def __init__(self, **topics: Any) -> None:
        self.topics = topics
        self.asked = 0

    def describe(self, names: Collection[str]) -> dict[str, TopicDescription]:
        self.asked += 1
        found = {}
        for name in names:
            config = self.topics.get(name, {})
            if isinstance(config, Exception):
                raise config
            found[name] = TopicDescription(name, 1, config)
        return found


def small(limit: int) -> dict[str, str]:
    return {"max.message.bytes": str(limit), "cleanup.policy": "delete"}


BAD = Sent("t", None, b"bad", 1, ())
TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
INVALID = KafkaError(KafkaError.INVALID_RECORD)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.mark.parametrize(
    "key,value,headers,size",
    # As DefaultRecordBatch of Kafka's clients sizes them.
    [(None, None, (), 68), (b"k", b"v", (), 70), (b"k", bytes(64), (), 135), (b"", b"", (("h", b"x"),), 72)],
)
def test_a_batch_of_one_record_is_sized_as_it_is_written(key, value, headers, size):
    assert batch_bytes(key, value, headers) == size


def test_a_topic_that_takes_less_is_asked_for_its_limit_before_the_next_attempt(clock):
    refused = RefusedRecords(Topics(t=small(100)).describe, clock)
    assert not refused
    assert refused.note(TOO_LARGE, "t", None)
    assert refused.reason(Sent("t", b"k", bytes(1_000), 1, ())) == ""
    refused.learn()
    assert refused
    assert "max.message.bytes of topic t is 100" in refused.reason(Sent("t", b"k", bytes(1_000), 1, ()))
    assert refused.reason(Sent("t", b"k", b"v", 1, ())) == ""
    assert refused.reason(Sent("other", b"k", bytes(1_000), 1, ())) == ""
    assert refused.batch_bytes_max == 100
    assert not refused.singly


def test_a_topic_that_was_altered_since_takes_what_it_takes_now(clock):
    topics = Topics(t=small(100))
    refused = RefusedRecords(topics.describe, clock)
    refused.note(TOO_LARGE, "t", None)
    refused.learn()
    topics.topics["t"] = small(10_000)
    assert refused.reason(Sent("t", b"k", bytes(1_000), 1, ())) != ""
    clock.advance_ms(30_000)
    assert refused.reason(Sent("t", b"k", bytes(1_000), 1, ())) == ""
    assert refused.reason(Sent("t", b"k", bytes(100_000), 1, ())) != ""
    assert topics.asked == 2
    # Nobody answers: what was known last holds.
    topics.topics["t"] = BrokerUnavailableError("not now")
    clock.advance_ms(30_000)
    assert refused.reason(Sent("t", b"k", bytes(100_000), 1, ())) != ""


def test_a_topic_that_takes_less_than_it_did_is_asked_once_more(clock):
    topics = Topics(t=small(1_000))
    refused = RefusedRecords(topics.describe, clock)
    refused.note(TOO_LARGE, "t", None)
    refused.learn()
    topics.topics["t"] = small(100)
    assert refused.note(TOO_LARGE, "t", None)
    refused.learn()
    assert refused.batch_bytes_max == 100


def test_a_limit_that_cannot_be_asked_for_is_asked_for_after_the_next_refusal(clock):
    topics = Topics(t=BrokerUnavailableError("not now"))
    refused = RefusedRecords(topics.describe, clock)
    assert refused.note(TOO_LARGE, "t", None)
    refused.learn()
    topics.topics["t"] = small(100)
    assert refused.note(TOO_LARGE, "t", None)
    refused.learn()
    assert refused.batch_bytes_max == 100


def test_a_compacted_topic_refuses_what_has_no_key(clock):
    refused = RefusedRecords(Topics(t={"cleanup.policy": "compact,delete"}).describe, clock)
    assert refused.note(INVALID, "t", BAD)
    refused.learn()
    assert "compacted" in refused.reason(Sent("t", None, b"whatever", 1, ()))
    assert refused.reason(Sent("t", b"", b"whatever", 1, ())) == ""
    assert not refused.singly


def looking(topics: Topics, clock: ManualClock, error: KafkaError = INVALID, **how: bool) -> RefusedRecords:
    """The rules of the topic explain nothing, and it has refused something once more."""
    refused = RefusedRecords(topics.describe, clock, **how)
    for _ in range(2):
        assert not refused.singly
        assert refused.note(error, "t", None)
        assert refused.note(error, "t", None)
        refused.learn()
    assert refused.singly
    return refused


def test_a_faulty_record_is_looked_for_one_by_one_and_then_known(clock):
    refused = looking(Topics(), clock)
    assert refused.reason(Sent("t", None, b"bad", 1, ())) == ""
    assert refused.note(INVALID, "t", BAD)
    refused.learn()
    assert "INVALID_RECORD" in refused.reason(Sent("t", None, b"bad", 1, ()))
    assert refused.reason(Sent("t", b"k", b"good", 1, ())) == ""
    # Sent and refused although it is known: another attempt would end the same way.
    assert not refused.note(INVALID, "t", BAD)


def test_two_faulty_records_that_are_the_same_are_found_in_one_attempt(clock):
    refused = looking(Topics(), clock)
    assert refused.note(INVALID, "t", BAD)
    assert refused.note(INVALID, "t", BAD)


def test_a_record_with_the_same_content_and_another_time_is_another_record(clock):
    refused = looking(Topics(), clock, KafkaError(KafkaError.INVALID_TIMESTAMP))
    refused.note(KafkaError(KafkaError.INVALID_TIMESTAMP), "t", BAD)
    refused.learn()
    assert refused.reason(Sent("t", None, b"bad", 1, ())) != ""
    assert refused.reason(Sent("t", None, b"bad", 2, ())) == ""


def test_what_was_faulty_is_forgotten_with_the_commit_that_passes_it(clock):
    refused = looking(Topics(), clock)
    refused.note(INVALID, "t", BAD)
    refused.learn()
    assert refused.after_commit()
    assert not refused.singly
    assert refused.reason(Sent("t", None, b"bad", 1, ())) == ""
    assert not refused.after_commit()


def test_the_size_of_a_record_that_will_be_compressed_forbids_nothing(clock):
    refused = looking(Topics(t=small(100)), clock, TOO_LARGE, compresses=True)
    assert refused.batch_bytes_max == 100
    assert refused.reason(Sent("t", b"k", bytes(1_000), 1, ())) == ""
    assert refused.note(TOO_LARGE, "t", BAD)
    refused.learn()
    assert "MSG_SIZE_TOO_LARGE" in refused.reason(Sent("t", None, b"bad", 1, ()))
    assert refused.reason(Sent("t", b"k", bytes(1_000), 1, ())) == ""


def test_a_topic_that_may_not_be_looked_at_is_searched_all_the_same(clock):
    looking(Topics(t=BrokerError("not for you")), clock, TOO_LARGE)


def test_other_refusals_are_final(clock):
    refused = RefusedRecords(Topics().describe, clock)
    assert not refused.note(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), "t", None)
    assert not refused
