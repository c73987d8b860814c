"""The producer that writes exactly once: everything between two commits is one transaction of Kafka.

    settle      takes the transactional id; the open transaction of this producer, or of a former owner of the id, is
                aborted; a transaction that is over, and that a broker has left open, is ended with its outcome
    send        begins the transaction
    commit      flush ──► input offsets, with the member's generation ──► end of the transaction
    abort       a new client takes the place of this one; its ``settle`` aborts the transaction

The answer to a commit may be missing, and a request may arrive late. So after any failure the transactional id is
settled again before committed offsets are read: from then on the coordinators refuse all requests of the old
transaction, and the offsets show whether it was committed. Source: KIP-98, KIP-447.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from kafka import errors

from pystreams.broker.kafka.failures import LostConnections, error_of, is_unavailable, served, text
from pystreams.broker.kafka.group_failures import is_transient, refused
from pystreams.broker.kafka.group_member import GroupMember
from pystreams.broker.kafka.hanging_transactions import HangingTransactions
from pystreams.broker.kafka.producer import own_member
from pystreams.broker.kafka.sending import FLUSH_SLICE_S, ProducerAdmin, RecordSender
from pystreams.broker.kafka.transaction_coordination import ProducerId, TransactionConnection
from pystreams.broker.kafka.transaction_failures import FENCED, cause, step_failed
from pystreams.broker.port import CommittedOffset, Member, TransactionContent
from pystreams.clock import Clock, Deadline, SystemClock
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    ConfigError,
    DeliveryError,
    StreamsError,
    TransactionEndedError,
)
from pystreams.ids import TopicPartition

log = logging.getLogger(__name__)

#: How long a step may take before the thread gives up for now, does other work, and tries again.
_SETTLE_TIMEOUT_S: Final = 10.0
_END_TIMEOUT_S: Final = 10.0
_LOOK_TIMEOUT_MS: Final = 1_000.0
_LOOK_PAUSE_S: Final = 0.1
#: How long offsets are offered again while the group is between two generations.
_OFFSETS_TIMEOUT_S: Final = 10.0
_OFFSETS_PAUSE_S: Final = 0.01
#: Commits wait for the end of a rebalance, but only until the transaction has used this share of its time.
_POSTPONED_SHARE: Final = 0.5
#: librdkafka's pause of 100 ms after "the last transaction is not complete yet" would be part of most commits.
_RETRY_BACKOFF_MS: Final = 5
#: librdkafka requires that the timeout of a request is shorter than that of a transaction by this time.
_SOCKET_MARGIN_MS: Final = 100


_NOT_SETTLED: Final = "The transactional id cannot be taken over"
_NOT_COMMITTED: Final = "A transaction could not be committed"
_REDONE: Final = "the work since the last commit is dropped, and done again"


class ExactlyOnceProducer(RecordSender):
    """See ``port.Producer``. Exactly once: records and offsets are committed in one transaction."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        transactional_id: str,
        where: str,
        clock: Clock,
        admin: ProducerAdmin,
        room_timeout_s: float,
        connection: Callable[[], TransactionConnection],
        content: TransactionContent | None = None,
    ) -> None:
        """``settings`` are those of an idempotent producer, with ``transaction.timeout.ms``. ``connection`` returns the
        connection to the coordinators. Raises ``ConfigError`` for settings that librdkafka refuses."""
        self._timeout_ms = int(settings["transaction.timeout.ms"])
        self._transactional_id = transactional_id
        self._connection = connection
        #: The client's producer id, once the transactional id is its own.
        self._id: ProducerId | None = None
        #: The producer id of a former client whose transaction may be open, until the transactional id is settled.
        self._left_open: ProducerId | None = None
        self._begun = False
        self._begun_ms = 0.0
        self._lost = LostConnections()
        own = {**settings, "transactional.id": transactional_id, **self._lost.settings}
        # A record that is not delivered within the transaction's time is lost with it. librdkafka allows no more.
        for name, limit in (
            ("delivery.timeout.ms", self._timeout_ms),
            ("socket.timeout.ms", self._timeout_ms - _SOCKET_MARGIN_MS),
            ("retry.backoff.ms", _RETRY_BACKOFF_MS),
        ):
            own[name] = min(int(own.get(name, limit)), limit)
        where = f"{where}, transactional.id {transactional_id}"
        self._hanging = (
            None
            if content is None
            else HangingTransactions(transactional_id, self._timeout_ms, content, where)
        )
        try:
            super().__init__(own, where, clock, admin, room_timeout_s)
        except KafkaException as exception:
            raise ConfigError(
                "Kafka's transactional producer cannot work with its settings",
                where=where,
                why=text(error_of(exception)),
            ) from None

    def settle(self) -> None:
        """Raises ``BrokerUnavailableError``; ``ConfigError`` if the brokers allow only shorter transactions,
        ``BrokerError`` if the login may not use the transactional id."""
        if self._id is not None:
            if not self._something_hangs(self._id):
                return
            self._connect()
        # First the connection, which may fail without harm, because librdkafka initializes a client only once.
        connection = self._connection()
        connection.forget_coordinators()
        if self._hanging is not None:
            try:
                self._hanging.end(connection)
            except errors.KafkaError as error:
                raise self._not_settled(error) from None
        self._init()
        try:
            # If another producer takes the id over in between, this is its id. Then the first record of this client is
            # refused, and no offset is added under the wrong id.
            self._id = connection.producer_id(self._transactional_id)
        except errors.KafkaError as error:
            self._connect()
            raise self._not_settled(error) from None
        self._left_open = None
        self._errors_looked_at = self._errors.count

    def _not_settled(self, error: errors.KafkaError) -> StreamsError:
        if isinstance(error, errors.UnsupportedVersionError):
            return BrokerError(
                "processing_guarantee cannot be exactly_once_v2 with these brokers",
                where=self._where,
                why=f"{type(error).__name__}: {error}",
                hint="it needs Apache Kafka 3.0 or later, which describes transactions; use at_least_once",
            )
        return refused(error, _NOT_SETTLED, self._where)

    def _something_hangs(self, producer: ProducerId) -> bool:
        """Whether a broker has left the last transaction open in a partition. Looked up after a connection was lost,
        because the broker may have been killed. Raises ``BrokerUnavailableError`` if there is no answer: if the next
        transaction were aborted, the records of the last one would be aborted with it."""
        if self._hanging is None or self._begun:
            return False
        self._serve(self._client.poll, 0)
        errors_now = self._errors.count
        if errors_now == self._errors_looked_at:
            return False
        deadline = Deadline(SystemClock(), 1000 * _SETTLE_TIMEOUT_S)
        while True:
            try:
                hangs = self._hanging.hang(self._connection(), producer, _LOOK_TIMEOUT_MS)
                break
            except errors.KafkaError as error:
                if not is_transient(error):
                    log.debug("%s: whether a transaction hangs cannot be known: %s", self._where, error)
                    hangs = False
                    break
                if deadline.expired():
                    raise self._not_settled(error) from None
                time.sleep(_LOOK_PAUSE_S)
        self._errors_looked_at = errors_now
        return hangs

    def _init(self) -> None:
        deadline = Deadline(SystemClock(), 1000 * _SETTLE_TIMEOUT_S)
        while True:
            try:
                served(self._client.init_transactions, FLUSH_SLICE_S)
            except KafkaException as exception:
                error = cause(self._client, error_of(exception))
                if error.retriable() and not deadline.expired():
                    continue
                if error.fatal():
                    # Another producer has taken the id over at the same moment: the next attempt is a new client's.
                    self._connect()
                if error.retriable() or error.code() in FENCED:
                    raise BrokerUnavailableError(_NOT_SETTLED, where=self._where, why=text(error)) from None
                raise step_failed(error, _NOT_SETTLED, self._where, self._timeout_ms) from None
            else:
                return

    def _look_up_leaders(self) -> None:
        super()._look_up_leaders()
        self._connection().forget_coordinators()

    def postpones(self, member: Member) -> bool:
        """True during a join, because a commit with the generation that is ending would void the transaction. But False
        when the transaction has used too much of its time."""
        age_ms = SystemClock().monotonic_ms() - self._begun_ms
        young = not self._begun or age_ms < _POSTPONED_SHARE * self._timeout_ms
        return young and isinstance(member, GroupMember) and member.joining

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Member | None
    ) -> dict[TopicPartition, int]:
        """Raises ``BrokerUnavailableError`` if records are not delivered yet: commit again later. After all other
        errors the outcome is unknown until ``settle``: ``DeliveryError``, ``TaskMigratedError``."""
        kafka_member = own_member(member, offsets)
        if not self._begun:
            if kafka_member is not None and offsets:
                # Nothing was written: offsets alone need no transaction.
                kafka_member.commit(offsets, strict=True)
            return {}
        errors_before = self._errors.count
        self._flush(kafka_member)
        # Read after the flush, and only once per commit: delivery callbacks for changelog records are not called,
        # because only errors are reported.
        end_offsets = self._admin.end_offsets([TopicPartition(*changelog) for changelog in self._changelogs])
        if kafka_member is not None and offsets:
            self._add_offsets(offsets, kafka_member)
        self._end_transaction(kafka_member)
        self._changelogs.clear()
        self._serve(self._client.poll, 0)
        # librdkafka repeats a request whose connection was lost. The first one may still arrive, and would end the next
        # transaction before its time: a new client's requests have another epoch. Of losses that are alike, librdkafka
        # reports only the first, so one at any time in the client's life counts.
        if self._refused_records.after_commit() or self._errors.count != errors_before or self._lost.count:
            self._connect()
        return end_offsets

    def abort(self) -> None:
        """Discard the records that were sent. ``settle`` aborts their transaction."""
        if self._begun or self._failure is not None:
            self._client.purge()
            self._refused_records.learn()
            self._connect()
        self._changelogs.clear()
        self._failure = None

    def close(self) -> None:
        """Abort the transaction, if the brokers can be reached. Otherwise it ends by its timeout, or when another
        member fences it."""
        left_open = self._id if self._begun else self._left_open
        self._begun, self._left_open = False, None
        if left_open is None:
            return
        self._client.purge()
        try:
            connection = self._connection()
            # If another producer has taken the transactional id over, its transaction is not this one's to end.
            if connection.producer_id(self._transactional_id) == left_open:
                connection.wait_for_end(self._transactional_id, self._timeout_ms)
        except (errors.KafkaError, StreamsError) as error:
            log.debug("%s: the transaction ends by its timeout: %s", self._where, error)

    def _connect(self) -> None:
        super()._connect()
        if self._begun:
            self._left_open = self._id
        self._id = None
        self._lost.count = 0
        #: The number of connection errors after which nothing was open any more.
        self._errors_looked_at = 0
        self._ended()

    def _ended(self) -> None:
        """No transaction is open: the next record begins one."""
        self._begun = False
        self._produce = self._begin_and_produce

    def _begin_and_produce(self, *record: Any) -> None:
        self.settle()
        self._client.begin_transaction()
        self._begun = True
        self._begun_ms = SystemClock().monotonic_ms()
        self._produce = self._client.produce
        self._produce(*record)

    def _add_offsets(self, offsets: Mapping[TopicPartition, CommittedOffset], member: GroupMember) -> None:
        assert self._id is not None
        deadline = Deadline(SystemClock(), 1000 * _OFFSETS_TIMEOUT_S)
        while True:
            try:
                self._connection().add_offsets(self._id, member.identity(), offsets)
                return
            except errors.KafkaError as error:
                # The transaction is still valid, and the member keeps its tasks in the next generation, because it
                # claims them in its join.
                if member.is_between_generations(error) and not deadline.expired():
                    member.keep_alive()
                    time.sleep(_OFFSETS_PAUSE_S)
                    continue
                self._failure = self._offsets_refused(error, member)
                raise self._failure from None

    def _offsets_refused(self, error: errors.KafkaError, member: GroupMember) -> StreamsError:
        why = f"{type(error).__name__}: {error}"
        if isinstance(error, (errors.InvalidProducerEpochError, errors.ProducerFencedError)):
            return self._fenced(why)
        failure = member.refused_commit(error) or refused(error, _NOT_COMMITTED, self._where)
        if isinstance(failure, BrokerUnavailableError):
            return DeliveryError(_NOT_COMMITTED, where=self._where, why=why, hint=_REDONE)
        return failure

    def _end_transaction(self, member: GroupMember | None) -> None:
        deadline = Deadline(SystemClock(), 1000 * _END_TIMEOUT_S)
        while True:
            try:
                served(self._client.commit_transaction, FLUSH_SLICE_S)
            except KafkaException as exception:
                error = error_of(exception)
                if error.retriable() and not deadline.expired():
                    if member is not None:
                        member.keep_alive()
                    continue
                self._failure = self._failure or self._end_failed(cause(self._client, error))
                raise self._failure from None
            else:
                self._ended()
                return

    def _end_failed(self, error: KafkaError) -> StreamsError:
        if error.code() in FENCED:
            return self._fenced(text(error))
        failed = step_failed(error, _NOT_COMMITTED, self._where, self._timeout_ms)
        unknown = error.code() == KafkaError._FATAL
        if unknown or error.retriable() or error.txn_requires_abort() or is_unavailable(error):
            return DeliveryError(
                _NOT_COMMITTED, where=self._where, why=failed.why, hint=failed.hint or _REDONE
            )
        return failed

    def _refused(self, error: KafkaError, topic: str, partition: int) -> StreamsError:
        error = cause(self._client, error)
        if error.code() in FENCED:
            return self._fenced(text(error))
        return super()._refused(error, topic, partition)

    def _fenced(self, why: str) -> TransactionEndedError:
        age_ms = SystemClock().monotonic_ms() - self._begun_ms
        what = "Others have ended the transaction of this thread: nothing of it is visible"
        if self._begun and age_ms >= self._timeout_ms:
            return TransactionEndedError(
                what,
                where=self._where,
                why=f"it was open for {age_ms:.0f} ms, and transaction_timeout_ms is {self._timeout_ms}: {why}",
                hint="raise transaction_timeout_ms; the work since the last commit is done again",
            )
        return TransactionEndedError(
            what,
            where=self._where,
            why=f"another producer has used this transactional.id, or the members that have its tasks now: {why}",
            hint="the member joins the group again, and the owner of its tasks repeats the work since the last commit. "
            "If this goes on, two processes have the same id: was a state directory copied, or a group_instance_id "
            "used twice?",
        )
