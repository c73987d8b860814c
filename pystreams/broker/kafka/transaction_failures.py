"""Turns errors of librdkafka's transactions into errors of pystreams, with messages for people."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer

from pystreams.broker.kafka.failures import error_of, failure, text
from pystreams.errors import BrokerError, ConfigError, StreamsError

#: Another producer has the transactional id now, or the transaction's time was over.
FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
#: Errors that report only that the client, or its transaction, does not work any more.
_WITHOUT_CAUSE: Final = frozenset(
    {KafkaError._FATAL, KafkaError._PURGE_INFLIGHT, KafkaError._PURGE_QUEUE, KafkaError._STATE}
)


def cause(client: Producer, error: KafkaError) -> KafkaError:
    """The reason why a client, or its transaction, does not work any more. The errors of ``produce`` do not name it,
    but other calls do."""
    if error.code() not in _WITHOUT_CAUSE:
        return error
    try:
        client.begin_transaction()
    except KafkaException as exception:
        found = error_of(exception)
        return error if found.code() == KafkaError._STATE else found
    return error


def step_failed(error: KafkaError, what: str, where: str, timeout_ms: int) -> StreamsError:
    """The error for a failed step of a transaction whose maximum duration is ``timeout_ms``."""
    if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return ConfigError(
            what,
            where=where,
            why=text(error),
            hint=f"the brokers' transaction.max.timeout.ms must be {timeout_ms} or more; its default is 900000",
        )
    if error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return BrokerError(
            what,
            where=where,
            why=text(error),
            hint="WRITE and DESCRIBE on the transactional id: an ACL of the cluster grants it",
        )
    return failure(error, what, where=where, needs="WRITE")
