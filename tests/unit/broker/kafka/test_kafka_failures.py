"""Whatever either Kafka client reports becomes an error of pystreams that says what to do."""

from __future__ import annotations

import inspect

import pytest
from confluent_kafka import KafkaError
from kafka import errors

from pystreams.broker.kafka.failures import ErrorLog, cannot_connect, failure
from pystreams.broker.kafka.group_failures import refused
from pystreams.errors import BrokerError, BrokerUnavailableError, ConfigError, StreamsError, TopicError

OF_GROUPS = sorted(
    {
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.KafkaError) and kind.__module__ == "kafka.errors"
    },
    key=lambda kind: kind.__name__,
)
CODES = sorted(
    {
        value
        for name, value in inspect.getmembers(KafkaError)
        if name.strip("_").isupper() and type(value) is int
    }
)
#: Another attempt helps, although kafka-python does not say so: two have taken over a transactional id at the same
#: moment, or a broker has only just come.
OVER_SOON = {errors.ProducerFencedError, errors.InvalidProducerEpochError, errors.UnknownBrokerIdError}


@pytest.mark.parametrize("kind", OF_GROUPS, ids=lambda kind: kind.__name__)
def test_an_error_of_the_group_keeps_its_name_and_whether_trying_again_helps(kind):
    error = refused(kind("details"), "It failed", "group g")
    assert isinstance(error, StreamsError)
    assert kind.__name__ in str(error)
    assert "group g" in str(error)
    if getattr(kind, "retriable", False) or kind in OVER_SOON:
        assert isinstance(error, BrokerUnavailableError | TopicError)
    else:
        assert error.action == "fail"


@pytest.mark.parametrize(
    "kind,expected,hint",
    [
        (errors.GroupAuthorizationFailedError, BrokerError, "READ on the group"),
        (errors.InvalidSessionTimeoutError, ConfigError, "session_timeout_ms"),
        (errors.InconsistentGroupProtocolError, BrokerError, "application_id"),
        (errors.UnknownTopicOrPartitionError, TopicError, "deleted"),
        (errors.ProducerFencedError, BrokerUnavailableError, "two processes have the same id"),
        (errors.CoordinatorNotAvailableError, BrokerUnavailableError, "are all brokers up?"),
    ],
    ids=["authorization", "session-timeout", "protocol", "topic", "transactional-id", "brokers"],
)
def test_what_can_be_mended_says_how(kind, expected, hint):
    error = refused(kind(), "It failed", "group g")
    assert isinstance(error, expected)
    assert hint in error.hint


@pytest.mark.parametrize("code", CODES)
def test_an_error_of_librdkafka_keeps_its_name(code):
    error = failure(KafkaError(code), "It failed", where="here")
    assert isinstance(error, StreamsError)
    assert KafkaError(code).name() in str(error)


def test_a_forbidden_topic_says_which_permission_is_missing():
    error = failure(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), "No", where="here", needs="WRITE")
    assert "WRITE on the topic" in error.hint


@pytest.mark.parametrize(
    "code,said",
    [
        (KafkaError._SSL, "ssl://h:1/bootstrap: SSL handshake failed: wrong version number"),
        (
            KafkaError._TRANSPORT,
            "ssl://h:1/bootstrap: Disconnected: closed by peer (after 1ms in state SSL_HANDSHAKE)",
        ),
        (KafkaError._TRANSPORT, "ssl://h:1/bootstrap: tls alert bad certificate"),
    ],
    ids=["no-handshake", "hung-up", "alert"],
)
def test_a_handshake_that_fails_in_whatever_way_is_about_encryption(code, said):
    errors_so_far = ErrorLog("h:1")
    errors_so_far(KafkaError(code, said))
    assert "encrypted" in cannot_connect(errors_so_far, "h:1", 10).what
