"""What a delivery report says decides what becomes of the commit: done again, or the end."""

from __future__ import annotations

import socket
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from pystreams.clock import SystemClock
from pystreams.errors import DeliveryError, ProductionError

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pystreams.broker.kafka.producer import KafkaProducer


class NoCluster:
    """Nobody is asked for anything."""

    def end_offsets(self, partitions: Any) -> dict[Any, int]:
        return {}

    def describe_topics(self, names: Any) -> dict[Any, Any]:
        return {}


@pytest.fixture
def producer() -> Iterator[KafkaProducer]:
    # A broker that accepts and never answers: a refused connection would be an event that waits in the client.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        settings = {"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0}
        producer = KafkaProducer(settings, "p", SystemClock(), NoCluster())
        yield producer
        producer.close()


def reported(producer: KafkaProducer, *codes: int) -> None:
    for code in codes:
        producer._delivered(KafkaError(code), Message(topic="t", partition=0, key=b"k", value=b"v"))


#: Of an idempotent producer that the broker does not know (any more), and of what librdkafka then throws away.
OUT_OF_STEP = (
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    KafkaError.UNKNOWN_PRODUCER_ID,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError._FATAL,
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
)


@pytest.mark.parametrize("code", OUT_OF_STEP)
def test_a_producer_that_is_out_of_step_is_replaced_and_its_records_are_done_again(producer, code):
    reported(producer, code)
    with pytest.raises(DeliveryError, match="disagree about the records"):
        producer.commit({}, None)
    producer.abort()
    producer.commit({}, None)


def test_a_record_of_a_broker_that_the_client_has_dropped_is_sent_again(producer):
    """Other brokers do not name it any more, for example because it restarts."""
    reported(producer, KafkaError._DESTROY)
    with pytest.raises(DeliveryError, match="could not be written in time"):
        producer.commit({}, None)


@pytest.mark.parametrize("first", [KafkaError._MSG_TIMED_OUT, KafkaError.MSG_SIZE_TOO_LARGE])
def test_what_is_thrown_away_after_a_failure_does_not_make_it_final(producer, first):
    reported(producer, first, KafkaError._PURGE_QUEUE)
    with pytest.raises(DeliveryError):
        producer.commit({}, None)


def test_a_refusal_that_is_final_counts_more_than_one_that_is_not(producer):
    reported(producer, KafkaError._MSG_TIMED_OUT, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    reported(producer, KafkaError._PURGE_QUEUE)
    with pytest.raises(ProductionError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
        producer.commit({}, None)
    assert caught.value.action == "fail"


def fail_with(code: int) -> Callable[..., None]:
    def produce(*arguments: Any) -> None:
        raise KafkaException(KafkaError(code))

    return produce


def test_a_client_that_takes_nothing_any_more_is_replaced(producer):
    dead = producer._client
    producer._produce = fail_with(KafkaError._FATAL)
    with pytest.raises(DeliveryError):
        producer.send("t", 0, b"k", b"v", 1, ())
    producer.abort()
    assert producer._client is not dead


def test_a_client_that_refuses_one_record_goes_on(producer):
    client = producer._client
    producer._produce = fail_with(KafkaError.MSG_SIZE_TOO_LARGE)
    with pytest.raises(ProductionError, match="too large"):
        producer.send("t", 0, b"k", b"v", 1, ())
    producer.abort()
    assert producer._client is client
