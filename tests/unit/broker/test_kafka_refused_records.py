"""What a broker refused is found again: topics that take less, and the one faulty record of a batch."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from pystreams.broker.kafka.refused_records import RefusedRecords, batch_bytes
from pystreams.errors import BrokerUnavailableError


class Message:
    def __init__(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        self.topic, self.key, self.value = (lambda: topic), (lambda: key), (lambda: value)


BAD: Any = Message("t", None, b"bad")
TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
INVALID = KafkaError(KafkaError.INVALID_RECORD)


@pytest.mark.parametrize(
    "key,value,headers,size",
    # As DefaultRecordBatch of Kafka's clients sizes them.
    [(None, None, (), 68), (b"k", b"v", (), 70), (b"k", bytes(64), (), 135), (b"", b"", (("h", b"x"),), 72)],
)
def test_a_batch_of_one_record_is_sized_as_it_is_written(key, value, headers, size):
    assert batch_bytes(key, value, headers) == size


def test_a_topic_that_takes_less_is_asked_for_its_limit_before_the_next_attempt():
    refused = RefusedRecords(lambda topic: {"t": 100}[topic])
    assert not refused
    assert refused.note(TOO_LARGE, BAD)
    assert refused.reason("t", b"k", bytes(1_000), ()) == ""
    refused.learn()
    assert refused
    assert "max.message.bytes of topic t is 100" in refused.reason("t", b"k", bytes(1_000), ())
    assert refused.reason("t", b"k", b"v", ()) == ""
    assert refused.reason("other", b"k", bytes(1_000), ()) == ""
    assert refused.batch_bytes_max == 100
    # It refuses although nothing is larger: another attempt would end the same way.
    assert not refused.note(TOO_LARGE, BAD)


def test_a_limit_that_cannot_be_asked_for_is_asked_for_after_the_next_refusal():
    answers: list[Any] = [BrokerUnavailableError("not now"), 100]

    def limit_of(topic: str) -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    refused = RefusedRecords(limit_of)
    for _ in range(2):
        assert refused.note(TOO_LARGE, BAD)
        refused.learn()
    assert refused.batch_bytes_max == 100


def test_a_faulty_record_is_looked_for_one_by_one_and_then_known():
    refused = RefusedRecords(lambda topic: 0)
    good: Any = Message("t", b"k", b"good")
    assert refused.note(INVALID, good)
    assert refused.note(INVALID, BAD)
    refused.learn()
    assert refused.singly
    assert refused.reason("t", b"k", b"good", ()) == ""
    assert refused.note(INVALID, BAD)
    assert "INVALID_RECORD" in refused.reason("t", None, b"bad", ())
    assert refused.reason("t", b"k", b"good", ()) == ""
    assert not refused.note(INVALID, BAD)


def test_other_refusals_are_final():
    refused = RefusedRecords(lambda topic: 0)
    assert not refused.note(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), BAD)
    assert not refused
