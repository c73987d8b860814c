"""The producer: an idempotent confluent-kafka producer whose every delivery error fails the next commit.

librdkafka's ``purge`` is not used to forget what was sent: it takes effect some time after it was called, and then also
on what was sent in between. A producer that has something to forget is replaced by a new one.
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
    text,
)
from pystreams.broker.kafka.member import KafkaMember
from pystreams.broker.kafka.refused_records import RefusedRecords, Sent
from pystreams.broker.port import CommittedOffset, Member, TopicDescription, check_headers, no_bytes
from pystreams.clock import Clock, Deadline, SystemClock
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    DeliveryError,
    ProductionError,
    StreamsError,
    TopicError,
)
from pystreams.ids import TopicPartition
from pystreams.record import Headers

log = logging.getLogger(__name__)

#: librdkafka: the partitioner chooses.
_ANY_PARTITION: Final = -1
#: How long a commit waits for what was sent. It is tried again by the caller; nothing is lost.
_FLUSH_TIMEOUT_S: Final = 30.0
#: confluent-kafka keeps what was delivered until somebody asks for its report, whether it tells it or not: asked for
#: after each so many records, its memory is used again while it is still in the processor's cache.
_REPORT_RECORDS: Final = 500
#: While it waits for a flush, a commit keeps its member alive this often.
_FLUSH_SLICE_S: Final = 0.5

#: The broker and an idempotent producer no longer agree on what was sent: both begin anew, and what was sent is sent
#: again. Where librdkafka gives up for this, it takes everything out of its queue.
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


#: Is told of a record that was not delivered.
_Report = Callable[[KafkaError | None, Message], None]


class ProducerAdmin(Protocol):
    """What a producer asks of the cluster."""

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicDescription]: ...


class KafkaProducer:
    """See ``port.Producer``. At least once: a commit flushes what was sent, then commits the offsets.

    A record that librdkafka refuses at once (too large, no such partition) raises ``ProductionError`` from ``send``;
    what the broker refuses later fails the commit with a ``DeliveryError``, and the second attempt raises from
    ``send``, too.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        where: str,
        clock: Clock,
        admin: ProducerAdmin,
        room_timeout_s: float = 60.0,
    ) -> None:
        """``room_timeout_s``: how long a full local queue may take to get room. It is tried again by the caller."""
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
        #: The failure is that of a record that is at fault itself.
        self._faulty = False
        self._connect()

    def _connect(self) -> None:
        """Make the client, or another one that knows nothing of what was sent before."""
        settings = dict(self._settings)
        limit = self._refused_records.batch_bytes_max
        if limit is not None:
            settings["batch.size"] = min(limit, settings.get("batch.size", limit))
        if self._refused_records.singly:
            settings["batch.num.messages"] = 1
        # Without this one callback for all of them, librdkafka would lose records without a word.
        self._client = Client({**settings, "error_cb": ErrorLog(self._where), "on_delivery": self._delivered})
        self._produce = self._client.produce
        #: Something was refused before; kept here, because asking ``_refused_records`` costs a call for each record.
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
        # librdkafka would take a str, too.
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
            self._client.poll(0)
        # Positional: keywords cost as much again. librdkafka takes timestamp 0 for "now": 1 is the nearest to be had.
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

    def log_change(
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

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Member | None
    ) -> dict[TopicPartition, int]:
        """Raises ``BrokerUnavailableError`` if the broker is not there: commit again later."""
        kafka_member = _own(member, offsets)
        self._flush(kafka_member)
        # Asked for after the flush, and only once per commit: callbacks for single records of the changelogs would
        # not be called, since only errors are reported.
        end_offsets = self._admin.end_offsets([TopicPartition(*changelog) for changelog in self._changelogs])
        if kafka_member is not None and offsets:
            kafka_member.commit(offsets)
        if kafka_member is not None and self._refused_records.committed():
            self._connect()
        self._changelogs.clear()
        return end_offsets

    def abort(self) -> None:
        """What has left for the broker already cannot be called back."""
        self._client.poll(0)
        if self._failure is not None or len(self._client):
            self._drop_all()
            self._refused_records.learn()
            self._connect()
        self._changelogs.clear()
        self._failure = None

    def close(self) -> None:
        """What was sent since the last commit is dropped, as far as it has not left."""
        self._drop_all()

    def _drop_all(self) -> None:
        """The client is of no use any more: it would drop later records, too."""
        self._client.purge(in_queue=True, in_flight=False)
        # What has left should be written before what is sent next.
        self._client.flush(_FLUSH_SLICE_S)

    def _watched(self, partition: int, record: Sent) -> _Report | None:
        """Raises ``ProductionError`` for what the broker has refused before. Gives the callback for a record of a batch
        of its own: librdkafka does not tell the time of what was refused, nor its headers."""
        why = self._refused_records.reason(record)
        if why:
            raise ProductionError(
                f"The broker does not take a record for topic {record.topic}",
                where=self._place(record.topic, partition),
                why=why,
                hint="write other records, or change the settings of the topic (pystreams topics alter)",
            )
        return partial(self._delivered, record=record) if self._refused_records.singly else None

    def _send_later(self, arguments: tuple[Any, ...]) -> None:
        """The local queue is full: wait until it has room."""
        deadline = Deadline(SystemClock(), 1000 * self._room_timeout_s)
        while True:
            self._client.poll(0.05)
            try:
                self._produce(*arguments)
            except BufferError:
                if deadline.expired():
                    raise BrokerUnavailableError(
                        "Records cannot be written: the local queue stays full",
                        where=f"{self._where}, topic {arguments[0]}",
                        why=f"{len(self._client)} records wait for the broker's acknowledgement",
                        hint="is the broker reachable, and are enough replicas in sync?",
                    ) from None
            except KafkaException as exception:
                raise self._refused_at_once(exception, arguments[0], arguments[3]) from None
            else:
                return

    def _flush(self, member: KafkaMember | None) -> None:
        deadline = Deadline(SystemClock(), 1000 * _FLUSH_TIMEOUT_S)
        while self._client.flush(_FLUSH_SLICE_S) > 0 and not self._failed_for_good():
            if member is not None:
                member.keep_alive()
            if deadline.expired():
                raise self._failure or BrokerUnavailableError(
                    "Records were sent and not acknowledged",
                    where=self._where,
                    why=f"{len(self._client)} records still wait after {_FLUSH_TIMEOUT_S:g} s",
                    hint="is the broker reachable, and are enough replicas in sync?",
                )
        if self._failure is not None:
            raise self._failure

    def _failed_for_good(self) -> bool:
        """Whether nothing more can be learnt from what is still under way. Where faulty records are looked for, the
        next attempt should know all of them."""
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
        # Its neighbours in the batch are refused with it, and may be told of first.
        faulty = error.code() != KafkaError._INVALID_DIFFERENT_RECORD
        tells_more = refused.action != "redo" or (faulty and not self._faulty)
        if self._failure is None or (self._failure.action == "redo" and tells_more):
            self._failure, self._faulty = refused, faulty

    def _refused_at_once(self, exception: KafkaException, topic: str, partition: int) -> StreamsError:
        error = self._refused(error_of(exception), topic, partition)
        if error.action == "redo" and self._failure is None:
            # It is the client that is of no use any more.
            self._failure = error
        return error

    def _place(self, topic: str, partition: int) -> str:
        return f"{self._where}, topic {topic}" + (f", partition {partition}" if partition >= 0 else "")

    def _refused(self, error: KafkaError, topic: str, partition: int) -> StreamsError:
        where = self._place(topic, partition)
        if is_unknown_topic(error):
            return TopicError(
                f"Topic {topic!r} is not there to be written to, or has no such partition",
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
                "The broker and the producer no longer agree on what was sent",
                where=where,
                why=text(error),
                hint="a new producer does once more what was not committed",
            )
        if is_unavailable(error) or error.code() == KafkaError._MSG_TIMED_OUT:
            return DeliveryError(
                "A record could not be written in time",
                where=where,
                why=text(error),
                hint="is the broker reachable, and are enough replicas in sync? What was not committed is done again",
            )
        refusal = failure(error, "A record was not accepted", where=where, needs="WRITE")
        return ProductionError(refusal.what, where=refusal.where, why=refusal.why, hint=refusal.hint)


def _once_more(error: StreamsError) -> DeliveryError:
    return DeliveryError(
        error.what,
        where=error.where,
        why=error.why,
        hint="what was done since the last commit is done again, to find the record and whoever wrote it",
    )


def _own(member: Member | None, offsets: Mapping[TopicPartition, CommittedOffset]) -> KafkaMember | None:
    if member is None and offsets:
        raise BrokerError(
            "Offsets cannot be committed without a member",
            why="offsets belong to a group, and the member names it",
            hint="pass the member, or use Admin.set_group_offsets",
        )
    if member is not None and not isinstance(member, KafkaMember):
        raise TypeError(f"a member of a Kafka group is needed, not {type(member).__name__}")
    return member
