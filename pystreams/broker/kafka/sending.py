"""Sends records with confluent-kafka: the common part of the producers. A failed delivery fails the next commit.

librdkafka's ``purge`` alone does not drop sent records: it takes effect some time after the call, and then also on
records that were sent in between. So the client is replaced by a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as Client

from pystreams.broker.kafka.failures import (
    ErrorLog,
    error_of,
    failure,
    is_unavailable,
    is_unknown_topic,
    served,
    text,
)
from pystreams.broker.kafka.group_member import GroupMember
from pystreams.broker.kafka.refused_records import RefusedRecords, Sent
from pystreams.broker.port import TopicDescription, check_headers, no_bytes
from pystreams.clock import Clock, Deadline, SystemClock
from pystreams.errors import (
    BrokerUnavailableError,
    DeliveryError,
    ProductionError,
    StreamsError,
    TopicError,
)
from pystreams.ids import TopicPartition
from pystreams.record import Headers

log = logging.getLogger(__name__)

#: librdkafka's value for "the partitioner chooses".
_ANY_PARTITION: Final = -1
#: How long a commit waits for delivery. The caller tries again; nothing is lost.
_FLUSH_TIMEOUT_S: Final = 30.0
#: confluent-kafka keeps delivered records until their reports are polled, even if no callback is called. Polling after
#: each so many records reuses the memory while it is still in the CPU's cache.
_REPORT_RECORDS: Final = 500
#: librdkafka sends a request for each partition, and the first request to a new partition takes the broker some
#: milliseconds. If there are more changelogs than this, the number of waiting records is limited to it, because the
#: last of them would expire otherwise.
_WAITING_MAX: Final = 5_000
#: While a commit waits for a flush, it keeps its member alive this often.
FLUSH_SLICE_S: Final = 0.5
#: When records have not been acknowledged for this time, their leaders are looked up, repeatedly.
_SILENCE_MS: Final = 2_000.0
_LEADERS_TIMEOUT_S: Final = 1.0

#: The broker and an idempotent producer disagree about the sent records: both start again, and the records are sent
#: again. When librdkafka gives up because of this, it drops its whole queue.
_OUT_OF_STEP: Final = frozenset(
    {
        KafkaError._FATAL,
        KafkaError._FENCED,
        KafkaError._GAPLESS_GUARANTEE,
        KafkaError._INCONSISTENT,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._PURGE_QUEUE,
        KafkaError._STATE,
        KafkaError.DUPLICATE_SEQUENCE_NUMBER,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.PRODUCER_FENCED,
        KafkaError.UNKNOWN_PRODUCER_ID,
    }
)


#: Called with a record that was not delivered.
_Report = Callable[[KafkaError | None, Message], None]


class ProducerAdmin(Protocol):
    """The methods of an admin that a producer uses."""

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicDescription]: ...


class RecordSender:
    """The records of a ``port.Producer``, up to their commit.

    A record that librdkafka refuses at once (too large, unknown partition) makes ``send`` raise ``ProductionError``. A
    record that the broker refuses later makes the commit raise ``DeliveryError``; in the second attempt ``send`` raises
    for it, too.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        where: str,
        clock: Clock,
        admin: ProducerAdmin,
        room_timeout_s: float = 60.0,
    ) -> None:
        """``room_timeout_s``: how long ``send`` waits for room in a full local queue. The caller tries again."""
        self._settings = settings
        self._room_timeout_s = room_timeout_s
        self._where = where
        self._clock = clock
        self._admin = admin
        self._refused_records = RefusedRecords(
            admin.describe_topics, clock, compresses=settings.get("compression.type", "none") != "none"
        )
        self._unreported = 0
        self._changelogs: set[tuple[str, int]] = set()
        self._failure: StreamsError | None = None
        #: Whether the failure is caused by a record itself.
        self._faulty = False
        self._connect()

    def _connect(self) -> None:
        """Create the client, or a new one without the records that were sent before."""
        settings = dict(self._settings)
        limit = self._refused_records.batch_bytes_max
        if limit is not None:
            settings["batch.size"] = min(limit, settings.get("batch.size", limit))
        if self._refused_records.singly:
            settings["batch.num.messages"] = 1
        # Without this common callback, librdkafka would lose records silently.
        self._errors = ErrorLog(self._where)
        self._client = Client({**settings, "error_cb": self._errors, "on_delivery": self._delivered})
        self._produce: Callable[..., None] = self._client.produce
        #: Whether something was refused before. Cached, because ``_refused_records`` would cost a call for each record.
        self._wary = bool(self._refused_records)

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        # librdkafka would accept a str, too.
        if (value.__class__ is not bytes and value is not None) or (
            key.__class__ is not bytes and key is not None
        ):
            raise no_bytes(topic, key, value)
        if headers:
            check_headers(topic, headers)
        if partition is None:
            partition = _ANY_PARTITION
        report = None
        if self._wary:
            same = tuple((name, content) for name, content in headers)
            report = self._watched(partition, Sent(topic, key, value, timestamp, same))
        self._unreported += 1
        if self._unreported == _REPORT_RECORDS:
            self._unreported = 0
            self._serve(self._client.poll, 0)
            if len(self._changelogs) > _WAITING_MAX:
                self._wait_for_room(topic)
        # Positional, because keyword arguments double the cost. librdkafka reads timestamp 0 as "now", so 1 replaces
        # it.
        try:
            self._produce(
                topic, value, key, partition, report, None, timestamp or 1, list(headers) if headers else None
            )
        except BufferError:
            self._send_later(
                (topic, value, key, partition, report, None, timestamp or 1, list(headers) or None)
            )
        except KafkaException as exception:
            raise self._refused_at_once(exception, topic, partition) from None

    def send_to_changelog(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        self.send(
            topic, partition, key, value, self._clock.now_ms() if timestamp is None else timestamp, headers
        )
        self._changelogs.add((topic, partition))

    def _watched(self, partition: int, record: Sent) -> _Report | None:
        """The delivery callback for a record in a batch of its own: librdkafka does not report the timestamp and
        headers of a refused record. Raises ``ProductionError`` for a record that the broker has refused before."""
        why = self._refused_records.reason(record)
        if why:
            raise ProductionError(
                f"The broker does not accept a record for topic {record.topic}",
                where=self._place(record.topic, partition),
                why=why,
                hint="write other records, or change the settings of the topic (pystreams topics alter)",
            )
        return partial(self._delivered, record=record) if self._refused_records.singly else None

    def _wait_for_room(self, topic: str) -> None:
        """Wait until few enough records are on their way."""
        deadline = Deadline(SystemClock(), 1000 * self._room_timeout_s)
        silence = Deadline(SystemClock(), _SILENCE_MS)
        while len(self._client) > _WAITING_MAX and not self._failed_for_good():
            if deadline.expired():
                raise self._no_room(topic)
            self._serve(self._client.poll, 0.05)
            silence = self._after_silence(silence)

    def _send_later(self, arguments: tuple[Any, ...]) -> None:
        """The local queue is full: wait until it has room."""
        deadline = Deadline(SystemClock(), 1000 * self._room_timeout_s)
        while True:
            self._serve(self._client.poll, 0.05)
            try:
                self._produce(*arguments)
            except BufferError:
                if deadline.expired():
                    raise self._no_room(arguments[0]) from None
            except KafkaException as exception:
                raise self._refused_at_once(exception, arguments[0], arguments[3]) from None
            else:
                return

    def _no_room(self, topic: str) -> BrokerUnavailableError:
        return BrokerUnavailableError(
            "Records cannot be written: too many wait already",
            where=f"{self._where}, topic {topic}",
            why=f"{len(self._client)} records wait for the broker's acknowledgement",
            hint="is the broker reachable, and are enough replicas in sync?",
        )

    def _flush(self, member: GroupMember | None) -> None:
        deadline = Deadline(SystemClock(), 1000 * _FLUSH_TIMEOUT_S)
        silence = Deadline(SystemClock(), _SILENCE_MS)
        while self._serve(self._client.flush, FLUSH_SLICE_S) > 0 and not self._failed_for_good():
            if member is not None:
                member.keep_alive()
            if deadline.expired():
                raise self._failure or BrokerUnavailableError(
                    "Records were sent but not acknowledged",
                    where=self._where,
                    why=f"{len(self._client)} records are not acknowledged after {_FLUSH_TIMEOUT_S:g} s",
                    hint="is the broker reachable, and are enough replicas in sync?",
                )
            silence = self._after_silence(silence)
        if self._failure is not None:
            raise self._failure

    def _after_silence(self, silence: Deadline) -> Deadline:
        """Look up leaders if the time of ``silence`` is over. Returns when to do so next."""
        if not silence.expired():
            return silence
        self._look_up_leaders()
        return Deadline(SystemClock(), _SILENCE_MS)

    def _look_up_leaders(self) -> None:
        """Look up the leaders of partitions, because librdkafka might ask the frozen broker for them and wait for its
        answer."""
        try:
            self._client.list_topics(timeout=_LEADERS_TIMEOUT_S)
        except KafkaException as exception:
            log.debug("%s: leaders are not known: %s", self._where, text(error_of(exception)))

    def _serve(self, wait: Callable[[float], int], timeout_s: float) -> int:
        """Wait for deliveries; returns the result of librdkafka. After a fatal error no record is delivered."""
        try:
            return served(wait, timeout_s)
        except KafkaException as exception:
            self._failure = self._failure or self._refused(error_of(exception), "", _ANY_PARTITION)
            return 0

    def _failed_for_good(self) -> bool:
        """Whether to stop waiting for the records on their way. During a search for faulty records, wait for all
        records, so that the next attempt knows all faulty ones."""
        failure = self._failure
        return failure is not None and not (failure.action == "redo" and self._refused_records.singly)

    def _delivered(self, error: KafkaError | None, message: Message, record: Sent | None = None) -> None:
        if error is None:
            return
        topic, number = message.topic() or "?", message.partition()
        partition = _ANY_PARTITION if number is None else number
        log.debug("%s: a record for %s-%s was not accepted: %s", self._where, topic, partition, text(error))
        refused = self._refused(error, topic, partition)
        if self._refused_records.note(error, topic, record):
            refused = _once_more(refused)
        # The other records of its batch are refused with it, and may be reported first.
        faulty = error.code() != KafkaError._INVALID_DIFFERENT_RECORD
        says_more = refused.action != "redo" or (faulty and not self._faulty)
        if self._failure is None or (self._failure.action == "redo" and says_more):
            self._failure, self._faulty = refused, faulty

    def _refused_at_once(self, exception: KafkaException, topic: str, partition: int) -> StreamsError:
        error = self._refused(error_of(exception), topic, partition)
        if error.action == "redo" and self._failure is None:
            # The client itself cannot be used any more.
            self._failure = error
        return error

    def _place(self, topic: str, partition: int) -> str:
        where = f"{self._where}, topic {topic}" if topic else self._where
        return f"{where}, partition {partition}" if partition >= 0 else where

    def _refused(self, error: KafkaError, topic: str, partition: int) -> StreamsError:
        where = self._place(topic, partition)
        if is_unknown_topic(error):
            return TopicError(
                f"Topic {topic!r} cannot be written: it or its partition does not exist",
                where=where,
                why=text(error),
                hint="create the topic, then restart the application",
            )
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return ProductionError(
                "A record is too large to be written",
                where=where,
                why=text(error),
                hint=f"write smaller records, or raise max.message.bytes of topic {topic} and the producer's limit",
            )
        if error.code() in _OUT_OF_STEP:
            return DeliveryError(
                "The broker and the producer disagree about the records that were sent",
                where=where,
                why=text(error),
                hint="a new producer sends the uncommitted records again",
            )
        if is_unavailable(error) or error.code() == KafkaError._MSG_TIMED_OUT:
            return DeliveryError(
                "A record could not be written in time",
                where=where,
                why=text(error),
                hint="is the broker reachable, and are enough replicas in sync? Uncommitted work is done again",
            )
        refusal = failure(error, "A record was not accepted", where=where, needs="WRITE")
        return ProductionError(refusal.what, where=refusal.where, why=refusal.why, hint=refusal.hint)


def _once_more(error: StreamsError) -> DeliveryError:
    return DeliveryError(
        error.what,
        where=error.where,
        why=error.why,
        hint="the records since the last commit are processed again, to find the faulty record and its origin",
    )
