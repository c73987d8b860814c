"""Writes records for sinks to their topics, each once: every transaction also records its progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

from pystreams.backfill.exchange.rows import Arrow, headers_of
from pystreams.backfill.handover.publishing import require_attempt
from pystreams.backfill.sources.logs import read_log
from pystreams.backfill.sources.ranges import InputRange
from pystreams.broker.port import Admin, Broker, TopicSpec, TransactionalProducer
from pystreams.clock import SystemClock
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS

#: A transaction holds about this number of records. After a worker was killed, no more than these are written again.
TRANSACTION_RECORDS: Final = 20_000

_MARKS: Final = {"cleanup.policy": "compact", "retention.ms": "-1"}


def make_marks(admin: Admin, application_id: str, topic: str) -> int:
    """Create the topic that records, by backfill, how far each partition of an output topic is; returns its partition
    count.

    It gets as many partitions as the output topic: an open transaction of a killed writer then blocks only the writers
    of the same partition. If the output topic gets more partitions later, several of them share one.
    """
    name = emitted_topic(application_id, topic)
    found = admin.describe_topics([topic, name])
    if name not in found:
        admin.create_topics([TopicSpec(name, found[topic].partitions, _MARKS)])
        return found[topic].partitions
    return found[name].partitions


def emitted_topic(application_id: str, topic: str) -> str:
    """The name of that topic."""
    return f"{application_id}-backfill-emitted-{topic}"


def emitter_id(application_id: str, partition: TopicPartition) -> str:
    """The transactional id under which records are written to a partition."""
    return f"{application_id}-backfill-emit-{partition}"


@dataclass(frozen=True, slots=True)
class EmitToTopic:
    """An ``executor.PartitionFunction``: a repetition goes on after the last transaction. ``attempt`` names
    the hand-over that it is part of; None: it is part of none."""

    open_broker: Callable[[], Broker]
    application_id: str
    topic: str
    backfill_id: str
    marks_partitions: int
    attempt: str | None = None

    def __call__(self, partition: int, batches: Iterator[Arrow]) -> bytes:
        """Raises ``StateError`` if another hand-over has begun since."""
        with ExitStack() as stack:
            broker = stack.enter_context(closing(self.open_broker()))
            id = emitter_id(self.application_id, TopicPartition(self.topic, partition))
            producer = stack.enter_context(closing(broker.transactional_producer("backfill", id)))
            if self.attempt is not None:
                # Checked now: from here on, the worker of a later hand-over would end this transaction.
                require_attempt(broker, self.application_id, self.attempt)
            # Read now, because no other transaction can add records any more.
            done = self._done(broker, partition)
            return str(self._write(producer, partition, batches, done)).encode()

    def _write(
        self, producer: TransactionalProducer, partition: int, batches: Iterator[Arrow], done: int
    ) -> int:
        seen = 0
        limit = min(producer.transaction_records_max or TRANSACTION_RECORDS, TRANSACTION_RECORDS)
        pending = 0
        for batch in batches:
            skipped = min(batch.num_rows, max(0, done - seen))
            seen += skipped
            for record in _records(batch.slice(skipped)):
                producer.send(self.topic, partition, *record)
                seen += 1
                pending += 1
                # One record is the mark itself.
                if pending == limit - 1:
                    self._commit(producer, partition, seen)
                    pending = 0
        if pending:
            self._commit(producer, partition, seen)
        return seen

    def _commit(self, producer: TransactionalProducer, partition: int, seen: int) -> None:
        mark = json.dumps({"records": seen}).encode()
        now_ms = SystemClock().now_ms()
        producer.send(*self._marks(partition), self._key(partition), mark, now_ms, NO_HEADERS)
        producer.commit()

    def _done(self, broker: Broker, partition: int) -> int:
        """How many records of this backfill are in the topic partition. Raises ``BrokerUnavailableError`` if that
        cannot be read to its end."""
        marks = self._marks(partition)
        with closing(broker.admin()) as admin:
            start = admin.beginning_offsets([marks])[marks]
            end = admin.end_offsets([marks])[marks]
        done = 0
        for rows in read_log(broker, InputRange(marks, start, end), "restore"):
            for key, value in zip(
                rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True
            ):
                if key == self._key(partition):
                    done = int(json.loads(value)["records"])
        return done

    def _marks(self, partition: int) -> TopicPartition:
        topic = emitted_topic(self.application_id, self.topic)
        return TopicPartition(topic, partition % self.marks_partitions)

    def _key(self, partition: int) -> bytes:
        return f"{self.backfill_id}-{partition}".encode()


def _records(
    batch: Arrow,
) -> Iterator[tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]]:
    columns = [batch.column(name).to_pylist() for name in ("key", "value", "timestamp")]
    headers = headers_of(batch.column("headers")) or [NO_HEADERS] * batch.num_rows
    return zip(*columns, headers, strict=True)
