"""A producer whose transactions are its own, in bulk: readers of committed records see all of one, or nothing.

The first thing that it does is to end what whoever had its transactional id before has begun: that one's transaction is
aborted, and whatever it still tries fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pystreams.broker.kafka.failures import ErrorLog, error_of, failure, is_unavailable, text
from pystreams.broker.port import check_headers, no_bytes
from pystreams.clock import Deadline, SystemClock
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    ConfigError,
    ProductionError,
    StreamsError,
)
from pystreams.record import Headers

#: The brokers' default of the most that they allow (``transaction.max.timeout.ms``). What a killed writer leaves open
#: holds readers back for so long, unless somebody takes its id over.
TRANSACTION_TIMEOUT_MS: Final = 900_000
_INIT_TIMEOUT_S: Final = 60.0
_COMMIT_TIMEOUT_S: Final = 300.0
_ABORT_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.05
#: Delivery reports are asked for after each so many records, as in ``producer.py``.
_REPORT_RECORDS: Final = 500

_FENCED: Final = frozenset(
    {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}
)


class KafkaTransactionalProducer:
    """See ``port.TransactionalProducer``."""

    transaction_records_max: int | None = None

    def __init__(self, settings: Mapping[str, Any], transactional_id: str, where: str) -> None:
        """``settings`` are those of an idempotent producer. Raises ``BrokerUnavailableError``, ``BrokerError``, and
        ``ConfigError`` where the brokers allow only shorter transactions."""
        self._id = transactional_id
        self._where = f"{where}, transactional.id {transactional_id}"
        self._failure: StreamsError | None = None
        self._begun = False
        self._unreported = 0
        told = {
            **settings,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        }
        # What is not delivered within the transaction's time is lost with it; librdkafka takes no longer one.
        told["delivery.timeout.ms"] = min(
            int(told.get("delivery.timeout.ms", TRANSACTION_TIMEOUT_MS)), TRANSACTION_TIMEOUT_MS
        )
        try:
            self._client = Producer(
                {**told, "error_cb": ErrorLog(self._where), "on_delivery": self._delivered}
            )
        except KafkaException as exception:
            raise ConfigError(
                "Kafka's transactional producer cannot work with its settings",
                where=self._where,
                why=text(error_of(exception)),
            ) from None
        self._try(
            lambda: self._client.init_transactions(_INIT_TIMEOUT_S),
            "A transactional producer cannot be made",
            _INIT_TIMEOUT_S,
        )

    def send(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        if (value.__class__ is not bytes and value is not None) or (
            key.__class__ is not bytes and key is not None
        ):
            raise no_bytes(topic, key, value)
        if headers:
            check_headers(topic, headers)
        if not self._begun:
            self._try(self._client.begin_transaction, "A transaction cannot be begun", _INIT_TIMEOUT_S)
            self._begun = True
        self._unreported += 1
        if self._unreported >= _REPORT_RECORDS:
            self._unreported = 0
            self._client.poll(0)
            if self._failure is not None:
                raise self._failure
        # As in ``producer.py``: librdkafka takes timestamp 0 for "now", 1 is the nearest to be had.
        told: Any = list(headers) if headers else None
        while True:
            try:
                self._client.produce(topic, value, key, partition, None, None, timestamp or 1, told)
            except BufferError:
                # The local queue is full: what is sent or refused makes room, and a transaction ends by itself.
                self._client.poll(_POLL_S)
                if self._failure is not None:
                    raise self._failure from None
            except KafkaException as exception:
                raise self._refused(error_of(exception), f"{self._where}, topic {topic}") from None
            else:
                return

    def commit(self) -> None:
        """Once it raised, the producer is of no use any more."""
        if not self._begun:
            return
        self._try(
            lambda: self._client.commit_transaction(_COMMIT_TIMEOUT_S),
            "A transaction cannot be committed",
            _COMMIT_TIMEOUT_S,
        )
        self._begun = False

    def close(self) -> None:
        if not self._begun:
            return
        self._begun = False
        self._client.purge()
        try:
            self._client.abort_transaction(_ABORT_TIMEOUT_S)
        except KafkaException as exception:
            # It ends by its timeout, or has ended because somebody took the id over.
            self._failure = self._refused(error_of(exception), self._where)

    def _try(self, step: Callable[[], Any], what: str, timeout_s: float) -> None:
        """Do what may be done again where librdkafka says so."""
        deadline = Deadline(SystemClock(), 1000 * timeout_s)
        while True:
            try:
                step()
            except KafkaException as exception:
                error = error_of(exception)
                if error.retriable() and not deadline.expired():
                    continue
                # What was refused says more than that the transaction cannot be committed for it.
                raise self._failure or self._step_failed(error, what) from None
            else:
                return

    def _step_failed(self, error: KafkaError, what: str) -> StreamsError:
        if error.code() in _FENCED:
            return superseded(self._id, self._where, text(error))
        if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            return ConfigError(
                what,
                where=self._where,
                why=text(error),
                hint=f"set the brokers' transaction.max.timeout.ms to {TRANSACTION_TIMEOUT_MS}, their default, or more",
            )
        if error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return BrokerError(
                what,
                where=self._where,
                why=text(error),
                hint="WRITE and DESCRIBE on the transactional id: an ACL of the cluster decides about it",
            )
        return failure(error, what, where=self._where, needs="WRITE")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None and error.code() != KafkaError._PURGE_QUEUE:
            self._failure = self._refused(error, f"{self._where}, topic {message.topic()}")

    def _refused(self, error: KafkaError, where: str) -> StreamsError:
        if error.code() in _FENCED:
            return superseded(self._id, where, text(error))
        if is_unavailable(error):
            return BrokerUnavailableError(
                "A record could not be written in time",
                where=where,
                why=text(error),
                hint="is the broker reachable, and are enough replicas in sync? Nothing of the transaction counts; "
                "do it again",
            )
        refusal = failure(error, "A record was not accepted", where=where, needs="WRITE")
        return ProductionError(refusal.what, where=refusal.where, why=refusal.why, hint=refusal.hint)


def superseded(transactional_id: str, where: str, why: str) -> BrokerError:
    """The error of a writer whose id somebody else has taken over."""
    return BrokerError(
        f"somebody else writes as {transactional_id} now; nothing of what was sent since the last commit counts",
        where=where,
        why=why,
        hint="let the other one finish; if it is no longer there, do the same again",
    )
