"""A producer with its own transactions, for bulk writes: readers of committed records see all of one, or nothing.

It first ends the work of an earlier producer with the same transactional id: the earlier producer's transaction is
aborted, and all its later requests fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pystreams.broker.kafka.failures import (
    ErrorLog,
    LostConnections,
    error_of,
    failure,
    is_unavailable,
    text,
)
from pystreams.broker.kafka.transaction_failures import FENCED, cause, step_failed
from pystreams.broker.port import check_headers, no_bytes
from pystreams.clock import Deadline, SystemClock
from pystreams.errors import (
    BrokerUnavailableError,
    ConfigError,
    ProductionError,
    StreamsError,
    SupersededError,
)
from pystreams.record import Headers

#: The default of the brokers' limit (``transaction.max.timeout.ms``). An open transaction of a killed writer delays
#: readers for this time, unless another writer takes over its id.
TRANSACTION_TIMEOUT_MS: Final = 900_000
_INIT_TIMEOUT_S: Final = 60.0
_COMMIT_TIMEOUT_S: Final = 300.0
_ABORT_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.05
#: Delivery reports are polled each time this number of records was sent, as in ``sending.py``.
_REPORT_RECORDS: Final = 500


class KafkaTransactionalProducer:
    """See ``port.TransactionalProducer``."""

    transaction_records_max: int | None = None

    def __init__(self, settings: Mapping[str, Any], transactional_id: str, where: str) -> None:
        """``settings`` are those of an idempotent producer. Raises ``BrokerUnavailableError``, ``BrokerError``, and
        ``ConfigError`` if the brokers allow only shorter transactions."""
        self._id = transactional_id
        self._where = f"{where}, transactional.id {transactional_id}"
        self._failure: StreamsError | None = None
        self._begun = False
        self._unreported = 0
        self._lost = LostConnections()
        self._settings = {
            **settings,
            **self._lost.settings,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        }
        # A record that is not delivered within the transaction's time is lost with it; librdkafka allows no longer
        # time.
        self._settings["delivery.timeout.ms"] = min(
            int(settings.get("delivery.timeout.ms", TRANSACTION_TIMEOUT_MS)), TRANSACTION_TIMEOUT_MS
        )
        self._connect()

    def _connect(self) -> None:
        """A new client, whose requests have another epoch than those of earlier ones."""
        self._lost.count = 0
        try:
            self._client = Producer(
                {**self._settings, "error_cb": ErrorLog(self._where), "on_delivery": self._delivered}
            )
        except KafkaException as exception:
            raise ConfigError(
                "Kafka's transactional producer cannot work with its settings",
                where=self._where,
                why=text(error_of(exception)),
            ) from None
        self._try(
            lambda: self._client.init_transactions(_INIT_TIMEOUT_S),
            "A transactional producer cannot be created",
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
            # A request whose connection was lost was repeated, and may still arrive: as in ``exactly_once``.
            if self._lost.count:
                self._connect()
            self._try(self._client.begin_transaction, "A transaction cannot be started", _INIT_TIMEOUT_S)
            self._begun = True
        self._unreported += 1
        if self._unreported >= _REPORT_RECORDS:
            self._unreported = 0
            self._client.poll(0)
            if self._failure is not None:
                raise self._failure
        # As in ``producer.py``: librdkafka reads timestamp 0 as "now", so 1 replaces it.
        given_headers: Any = list(headers) if headers else None
        while True:
            try:
                self._client.produce(topic, value, key, partition, None, None, timestamp or 1, given_headers)
            except BufferError:
                # The local queue is full: deliveries and refusals make room, and a transaction ends by its timeout.
                self._client.poll(_POLL_S)
                if self._failure is not None:
                    raise self._failure from None
            except KafkaException as exception:
                raise self._refused(error_of(exception), f"{self._where}, topic {topic}") from None
            else:
                return

    def commit(self) -> None:
        """If it raises, the producer cannot be used again."""
        if not self._begun:
            return
        self._try(
            lambda: self._client.commit_transaction(_COMMIT_TIMEOUT_S),
            "A transaction cannot be committed",
            _COMMIT_TIMEOUT_S,
        )
        self._begun = False
        self._client.poll(0)

    def close(self) -> None:
        if not self._begun:
            return
        self._begun = False
        self._client.purge()
        try:
            self._client.abort_transaction(_ABORT_TIMEOUT_S)
        except KafkaException as exception:
            # The transaction ends by its timeout, or has ended because another producer took over the id.
            self._failure = self._refused(error_of(exception), self._where)

    def _try(self, step: Callable[[], Any], what: str, timeout_s: float) -> None:
        """Call ``step``, and repeat it if librdkafka says that it may be repeated."""
        deadline = Deadline(SystemClock(), 1000 * timeout_s)
        while True:
            try:
                step()
            except KafkaException as exception:
                error = error_of(exception)
                if error.retriable() and not deadline.expired():
                    continue
                # The refusal of a record says more than the failed commit that it caused.
                raise self._failure or self._step_failed(error, what) from None
            else:
                return

    def _step_failed(self, error: KafkaError, what: str) -> StreamsError:
        if error.code() in FENCED:
            return superseded(self._id, self._where, text(error))
        return step_failed(error, what, self._where, TRANSACTION_TIMEOUT_MS)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None and error.code() != KafkaError._PURGE_QUEUE:
            self._failure = self._refused(error, f"{self._where}, topic {message.topic()}")

    def _refused(self, error: KafkaError, where: str) -> StreamsError:
        error = cause(self._client, error)
        if error.code() in FENCED:
            return superseded(self._id, where, text(error))
        if is_unavailable(error):
            return BrokerUnavailableError(
                "A record could not be written in time",
                where=where,
                why=text(error),
                hint="is the broker reachable, and are enough replicas in sync? The whole transaction is void; "
                "repeat it",
            )
        refusal = failure(error, "A record was not accepted", where=where, needs="WRITE")
        return ProductionError(refusal.what, where=refusal.where, why=refusal.why, hint=refusal.hint)


def superseded(transactional_id: str, where: str, why: str) -> SupersededError:
    """The error of a writer whose id another writer has taken over."""
    return SupersededError(
        f"another process writes as {transactional_id} now; all records since the last commit are void",
        where=where,
        why=why,
        hint="let the other process finish; if it no longer exists, run the same command again",
    )
