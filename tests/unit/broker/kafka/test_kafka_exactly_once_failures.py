"""What a transactional producer makes of answers that a healthy broker of today does not give."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from pystreams.clock import SystemClock
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    DeliveryError,
    TaskMigratedError,
    TransactionEndedError,
)

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import errors

    from pystreams.broker.kafka import exactly_once
    from pystreams.broker.kafka.exactly_once import ExactlyOnceProducer
    from pystreams.broker.kafka.settings import KafkaSettings
    from pystreams.broker.kafka.transaction_coordination import ProducerId


class Coordinators:
    """They answer every question with an error."""

    def __init__(self) -> None:
        self.error: errors.KafkaError = errors.KafkaTimeoutError("no answer")

    def forget_coordinators(self) -> None:
        """Nothing is known of them."""

    def producer_id(self, transactional_id: str) -> Any:
        raise self.error


@pytest.fixture
def coordinators() -> Coordinators:
    return Coordinators()


@pytest.fixture
def producer(coordinators: Coordinators, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExactlyOnceProducer]:
    """One whose transactional id librdkafka has taken over."""
    monkeypatch.setattr(ExactlyOnceProducer, "_init", lambda self: None)
    admin: Any = None
    settings = KafkaSettings("127.0.0.1:1", exactly_once=True).exactly_once_producer("p")

    class NoCluster:
        def describe_topics(self, names: Any) -> dict[Any, Any]:
            return {}

    admin = NoCluster()
    connection: Any = lambda: coordinators  # noqa: E731
    with closing(
        ExactlyOnceProducer(settings, "shop-1", "here", SystemClock(), admin, 1.0, connection)
    ) as producer:
        yield producer


def test_brokers_that_do_not_describe_transactions_are_too_old(producer, coordinators):
    coordinators.error = errors.UnsupportedVersionError("no version of the request")
    with pytest.raises(BrokerError, match=r"needs Apache Kafka 3\.0") as caught:
        producer.settle()
    assert caught.value.action == "fail"


def test_a_coordinator_that_does_not_answer_is_asked_again_with_another_client(producer):
    client = producer._client
    with pytest.raises(BrokerUnavailableError, match="cannot be taken over"):
        producer.settle()
    assert producer._client is not client


@pytest.mark.parametrize("error", [errors.ProducerFencedError, errors.InvalidProducerEpochError])
def test_who_takes_an_id_over_at_the_same_moment_as_another_tries_again(producer, coordinators, error):
    coordinators.error = error("shop-1")
    with pytest.raises(BrokerUnavailableError, match="cannot be taken over"):
        producer.settle()


class Look:
    """At what brokers may have left open: fails, as long as there is an error."""

    def __init__(self, error: errors.KafkaError) -> None:
        self.error: errors.KafkaError | None = error

    def hang(self, connection: Any, producer: ProducerId, timeout_ms: float) -> bool:
        if self.error is not None:
            raise self.error
        return False


@pytest.fixture
def after_a_lost_connection(
    producer: ExactlyOnceProducer, monkeypatch: pytest.MonkeyPatch
) -> ExactlyOnceProducer:
    """One that has committed a transaction, and then lost its connection."""
    monkeypatch.setattr(exactly_once, "_SETTLE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(exactly_once, "_LOOK_PAUSE_S", 0.01)
    producer._id = ProducerId("shop-1", 5, 0)
    producer._errors(KafkaError(KafkaError._TRANSPORT))
    return producer


def test_no_transaction_begins_before_it_is_known_whether_the_last_one_hangs(after_a_lost_connection):
    """Its abort would be the end of the last one's records, too."""
    producer, look = after_a_lost_connection, Look(errors.LeaderNotAvailableError("t-0"))
    producer._hanging = look
    for _ in range(2):
        with pytest.raises(BrokerUnavailableError, match="LeaderNotAvailableError"):
            producer.send("t", 0, b"k", b"v", 1, ())
    assert not producer._begun
    look.error = None
    producer.settle()


def test_where_nobody_may_know_whether_it_hangs_work_goes_on(after_a_lost_connection):
    producer = after_a_lost_connection
    producer._hanging = Look(errors.ClusterAuthorizationFailedError("no"))
    producer.settle()


@pytest.mark.parametrize(
    "code", [KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED, KafkaError._FENCED]
)
def test_a_fenced_producer_ends_nothing_but_its_transaction(producer, code):
    producer._delivered(KafkaError(code), Message(topic="t", partition=0, key=b"k", value=b"v"))
    assert isinstance(producer._failure, TaskMigratedError)
    assert producer._failure.action == "rejoin"
    producer.abort()
    assert producer._failure is None


def wrapped(cause: BaseException | None) -> SystemError:
    error = SystemError("returned NULL without setting an exception")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "raised",
    [
        KafkaException(KafkaError(KafkaError._FENCED)),
        wrapped(KafkaException(KafkaError(KafkaError._FENCED))),
    ],
    ids=["as itself", "as a cause"],
)
def test_a_fatal_error_while_waiting_is_a_failure_of_the_commit(producer, raised):
    assert producer._serve(failing_with(raised), 0) == 0
    assert isinstance(producer._failure, TransactionEndedError)


def test_a_fatal_error_that_was_lost_on_the_way_has_the_work_done_again(producer):
    assert producer._serve(failing_with(wrapped(None)), 0) == 0
    assert producer._failure.action == "redo"


def test_another_failure_of_a_callback_is_not_taken_for_the_clients(producer):
    with pytest.raises(SystemError):
        producer._serve(failing_with(wrapped(ZeroDivisionError())), 0)


@pytest.mark.parametrize("cause", [None, KafkaException(KafkaError(KafkaError._FENCED))])
def test_the_end_of_a_transaction_meets_fatal_errors_too(producer, cause):
    class Client:
        commit_transaction = staticmethod(failing_with(wrapped(cause)))

        def begin_transaction(self) -> None:
            raise KafkaException(KafkaError(KafkaError._STATE))

    producer._client = Client()
    with pytest.raises(DeliveryError if cause is None else TransactionEndedError):
        producer._end_transaction(None)


def failing_with(error: BaseException) -> Callable[[float], int]:
    def fail(timeout_s: float) -> int:
        raise error

    return fail
