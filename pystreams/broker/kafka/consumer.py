"""The consumer: a confluent-kafka consumer with assigned partitions, whose messages become columns.

When a partition is paused, librdkafka discards the records that it has prefetched. So reading of a paused partition
first continues into ``held`` batches, which are returned when it is resumed; it is paused in librdkafka, too, only
beyond a limit. librdkafka keeps the pause even across assignments, so the partition is resumed before it is unassigned.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Mapping
from itertools import chain, compress, count, islice
from math import inf
from operator import ne
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Location

from pystreams.broker.kafka.failures import (
    ErrorLog,
    error_of,
    failure,
    is_unavailable,
    is_unknown_topic,
    text,
)
from pystreams.clock import SystemClock
from pystreams.errors import OffsetOutOfRangeError, StreamsError, TopicError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers, RecordBatch

log = logging.getLogger(__name__)

#: The maximum number of messages per poll, over all partitions. Python's garbage collector runs whenever 700 new
#: objects are alive: with 1,000 messages per poll it would take as long as the reading itself.
POLL_RECORDS_MAX = 500

#: A paused partition is read on until this many records or bytes are held.
HELD_RECORDS_MAX = 10_000
HELD_BYTES_MAX = 8 << 20
#: If more partitions than this are paused, they share the limits of this many.
HELD_PARTITIONS_MAX = 8

#: A client that has received nothing for this time after all brokers were down is replaced.
RENEW_AFTER_MS = 10_000.0

_METADATA_TIMEOUT_S = 10.0
_LEADERS_TIMEOUT_S = 1.0
#: The leaders of a topic are looked up again after this time at the earliest.
_LEADERS_FRESH_MS = 5_000.0

_ERROR = Message.error
_TOPIC = Message.topic
_PARTITION = Message.partition
_OFFSET = Message.offset
_KEY = Message.key
_VALUE = Message.value
_TIMESTAMP = Message.timestamp
_HEADERS = Message.headers


class _Reading:
    """One assigned partition."""

    __slots__ = (
        "end",
        "fetched",
        "heard",
        "held",
        "held_bytes",
        "held_records",
        "paused",
        "position",
        "stopped",
    )

    def __init__(self, position: int) -> None:
        self.position = position  # the end of the returned records
        self.fetched = position  # the end of the records taken from librdkafka
        self.end = position  # the end offset that librdkafka last reported
        self.heard = False  # whether a record or the end of the partition has been reported
        self.held: deque[tuple[RecordBatch, int]] = deque()
        self.held_records = 0
        self.held_bytes = 0
        self.paused = False
        self.stopped = False  # paused in librdkafka

    def holds(self, share: float) -> bool:
        """Whether it holds at least this share of the limit for one partition."""
        return self.held_records >= share * HELD_RECORDS_MAX or self.held_bytes >= share * HELD_BYTES_MAX


class KafkaConsumer:
    """See ``port.Consumer``."""

    def __init__(self, settings: Mapping[str, Any], where: str, poll_records_max: int | None = None) -> None:
        self._where = where
        self._poll_records_max = poll_records_max
        self._reads_committed = settings.get("isolation.level") == "read_committed"
        self._log = ErrorLog(where)
        self._settings = {**settings, "error_cb": self._on_error}
        self._consumer = Consumer(self._settings)
        #: The time since when no broker has been reachable, and no event has come, not even the end of a partition.
        self._down_ms: float | None = None
        self._readings: dict[TopicPartition, _Reading] = {}
        #: When this client has asked for the leaders of a topic (monotonic).
        self._looked_up: dict[str, float] = {}
        self._end_offsets: dict[TopicPartition, int | None] = {}
        #: Errors to be raised by the next poll. Those of unassigned partitions are dropped.
        self._failures: dict[TopicPartition, StreamsError] = {}
        self._ended: list[_Reading] = []
        self._doubtful = False

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """``poll`` reports a partition that does not exist."""
        self.unassign(positions.keys())
        if positions:
            self._look_up({partition.topic for partition in positions})
            self._consumer.incremental_assign(
                [Location(p.topic, p.partition, at) for p, at in positions.items()]
            )
        for partition, position in positions.items():
            self._readings[partition] = _Reading(position)

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        gone = [partition for partition in partitions if partition in self._readings]
        stopped = [partition for partition in gone if self._readings[partition].stopped]
        if stopped:
            self._consumer.resume(_locations(stopped))
        for partition in gone:
            del self._readings[partition]
            self._failures.pop(partition, None)
        if gone:
            self._consumer.incremental_unassign(_locations(gone))

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        # After librdkafka's seek, prefetched records may still be delivered; a new assignment drops them.
        paused = [partition for partition in positions if self._readings[partition].paused]
        self.assign(positions)
        self.pause(paused)

    def read_anew(self, positions: Mapping[TopicPartition, int]) -> None:
        self.seek(positions)
        self._renew()

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._readings[partition].paused = True

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._readings[partition].paused = False

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        """Also raises ``TopicError`` if an assigned topic does not exist (any more)."""
        self._end_offsets.clear()
        batches = self._take_held()
        if batches:
            return batches
        if self._doubtful:
            self._check_topics()
        self._raise_failure()
        if all(reading.paused for reading in self._readings.values()):
            # No partition may return records: those in librdkafka stay there.
            if timeout_ms > 0:
                self._pause(timeout_ms)
            return []
        if self._down_ms is not None and _monotonic_ms() - self._down_ms >= RENEW_AFTER_MS:
            self._renew()
            self._down_ms = _monotonic_ms()
        batches = self._batches(self._consume(timeout_ms))
        if not batches:
            self._raise_failure()
        return batches

    def position(self, partition: TopicPartition) -> int:
        return self._readings[partition].position

    def known_end_offset(self, partition: TopicPartition) -> int | None:
        if partition not in self._end_offsets:
            self._end_offsets[partition] = self._ask_end_offset(partition)
        return self._end_offsets[partition]

    def _look_up(self, topics: Collection[str]) -> None:
        """Request the leaders of topics. librdkafka itself does so only when its timer finds partitions without a
        leader, once a second (2.16), or when a leader has not answered for half a minute, because it is frozen. If no
        broker answers this request, librdkafka's own requests must suffice."""
        fresh_ms = _monotonic_ms() - _LEADERS_FRESH_MS
        for topic in sorted(topic for topic in set(topics) if self._looked_up.get(topic, -inf) < fresh_ms):
            try:
                self._consumer.list_topics(topic, timeout=_LEADERS_TIMEOUT_S)
            except KafkaException as exception:
                log.debug("%s: leaders of %s: %s", self._where, topic, text(error_of(exception)))
                return
            self._looked_up[topic] = _monotonic_ms()

    def _renew(self) -> None:
        """Continue with a new client, which begins with the bootstrap servers. librdkafka (2.13 to 2.16 at least) drops
        all brokers that it knows, and never connects again, if a broker answers a metadata request with topics but no
        brokers. A broker that is starting does so. Source: librdkafka's issue 5301."""
        former, self._consumer = self._consumer, Consumer(self._settings)
        self._looked_up.clear()
        if self._readings:
            self._consumer.incremental_assign(
                [Location(p.topic, p.partition, reading.fetched) for p, reading in self._readings.items()]
            )
        for reading in self._readings.values():
            reading.heard = reading.stopped = False
        former.close()

    def close(self) -> None:
        self._readings.clear()
        self._consumer.close()

    def _raise_failure(self) -> None:
        if self._failures:
            raise self._failures.pop(next(iter(self._failures)))

    def _on_error(self, error: KafkaError) -> None:
        # A deleted topic is reported only here.
        self._doubtful = self._doubtful or is_unknown_topic(error)
        if error.code() == KafkaError._ALL_BROKERS_DOWN and self._down_ms is None:
            self._down_ms = _monotonic_ms()
        self._log(error)

    def _check_topics(self) -> None:
        """Check whether topics exist: ask the cluster again, because a broker that has just started may not know
        all."""
        for topic in sorted({partition.topic for partition in self._readings}):
            try:
                found = self._consumer.list_topics(topic, timeout=_METADATA_TIMEOUT_S).topics[topic]
            except KafkaException as exception:
                raise failure(error_of(exception), "Topics cannot be listed", where=self._where) from None
            if found.error is not None and is_unknown_topic(found.error):
                partition = min(partition for partition in self._readings if partition.topic == topic)
                self._failures[partition] = _deleted(partition, self._readings[partition])
        self._doubtful = False

    def _ask_end_offset(self, partition: TopicPartition) -> int | None:
        reading = self._readings[partition]
        if not reading.heard:
            # librdkafka's answer is from an earlier assignment.
            return None
        if self._reads_committed and reading.fetched == reading.end:
            # An open transaction ends the readable records.
            return reading.end
        _, high = self._consumer.get_watermark_offsets(
            Location(partition.topic, partition.partition), cached=True
        )
        return None if high < 0 else max(high, reading.position)

    def _consume(self, timeout_ms: float) -> list[Message]:
        records_max = self._poll_records_max or POLL_RECORDS_MAX
        try:
            messages = self._consumer.consume(records_max, 0)
            if not messages and timeout_ms > 0:
                messages = self._wait(timeout_ms)
                if messages:
                    messages += self._consumer.consume(records_max - 1, 0)
        except KafkaException as exception:
            raise failure(error_of(exception), "Reading from Kafka failed", where=self._where) from None
        return messages

    # Functions of their own, so that profiles show waiting and reading apart.

    @staticmethod
    def _pause(timeout_ms: float) -> None:
        time.sleep(timeout_ms / 1000)

    def _wait(self, timeout_ms: float) -> list[Message]:
        # With a larger number, consume() would wait for that many.
        return self._consumer.consume(1, timeout_ms / 1000)

    def _batches(self, messages: list[Message]) -> list[RecordBatch]:
        if any(map(_ERROR, messages)):
            for message in messages:
                if message.error() is not None:
                    self._note(message)
            messages = [message for message in messages if message.error() is None]
        batches = []
        for partition, group in _by_partition(messages).items():
            reading = self._readings.get(partition)
            # Messages of an unassigned partition may still arrive.
            batch = None if reading is None else _batch(partition, group, reading)
            if reading is None or batch is None:
                continue
            reading.fetched, reading.heard, self._down_ms = batch.next_offset, True, None
            if reading.paused or reading.held:
                self._hold(partition, reading, batch)
            else:
                reading.position = batch.next_offset
                batches.append(batch)
        self._settle()
        return batches

    def _settle(self) -> None:
        """Advance over holes after the last record: transaction markers, and records removed by compaction."""
        for reading in self._ended:
            if not reading.held:
                reading.position = reading.fetched = max(reading.position, reading.end)
        self._ended.clear()

    def _note(self, message: Message) -> None:
        """Handle an event of a partition that librdkafka returns instead of a record."""
        error, topic, number = message.error(), message.topic(), message.partition()
        assert error is not None
        partition = TopicPartition(topic or "", -1 if number is None else number)
        reading = self._readings.get(partition)
        if error.code() == KafkaError._PARTITION_EOF:
            if reading is not None:
                reading.end, reading.heard, self._down_ms = message.offset() or 0, True, None
                self._ended.append(reading)
        elif topic is not None and reading is None:
            log.debug(
                "%s: event for %s, which is no longer assigned: %s", self._where, partition, text(error)
            )
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            if reading is None or reading.heard or message.offset() == reading.fetched:
                self._failures[partition] = _out_of_range(partition, reading, error)
            else:
                # It may concern the position of an earlier assignment. If it concerns this one, it comes again.
                self.seek({partition: reading.position})
        elif is_unknown_topic(error):
            self._failures[partition] = _deleted(partition, reading)
        elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            # librdkafka looks for the coordinator of a group that nobody uses: no permission for it is needed.
            log.debug("%s: %s", self._where, text(error))
        elif is_unavailable(error):
            log.warning("%s: %s: %s", self._where, partition, text(error))
        else:
            where = f"{self._where}, topic-partition {partition}" if topic else self._where
            self._failures[partition] = failure(error, "Reading from Kafka failed", where=where, needs="READ")

    def _hold(self, partition: TopicPartition, reading: _Reading, batch: RecordBatch) -> None:
        size = sum(map(len, filter(None, chain(batch.keys, batch.values))))
        reading.held.append((batch, size))
        reading.held_records += len(batch)
        reading.held_bytes += size
        if reading.holds(self._share()) and not reading.stopped:
            reading.stopped = True
            self._consumer.pause(_locations([partition]))

    def _share(self) -> float:
        """The share of the limits that each partition may hold."""
        return min(1.0, HELD_PARTITIONS_MAX / len(self._readings))

    def _take_held(self) -> list[RecordBatch]:
        """One held batch of each resumed partition."""
        batches = []
        for partition, reading in self._readings.items():
            if reading.paused or not (reading.held or reading.stopped):
                continue
            if reading.held:
                batch, size = reading.held.popleft()
                reading.held_records -= len(batch)
                reading.held_bytes -= size
                reading.position = batch.next_offset if reading.held else max(batch.next_offset, reading.end)
                reading.fetched = max(reading.fetched, reading.position)
                batches.append(batch)
            if reading.stopped and not reading.holds(self._share() / 2):
                reading.stopped = False
                self._consumer.resume(_locations([partition]))
        return batches


def _monotonic_ms() -> float:
    return SystemClock().monotonic_ms()


def _by_partition(messages: list[Message]) -> dict[TopicPartition, list[Message]]:
    """Group messages by partition. They come in long runs of one partition, so the work per message stays in C."""
    topics: list[Any] = [*map(_TOPIC, messages)]
    numbers: list[Any] = [*map(_PARTITION, messages)]
    if messages and topics.count(topics[0]) == numbers.count(numbers[0]) == len(messages):
        return {TopicPartition(topics[0], numbers[0]): messages}
    names = [*zip(topics, numbers, strict=True)]
    changes = compress(count(1), map(ne, names, islice(names, 1, None)))
    groups: dict[TopicPartition, list[Message]] = {}
    start = 0
    for end in (*changes, len(messages)):
        if start < end:
            groups.setdefault(TopicPartition(*names[start]), []).extend(messages[start:end])
        start = end
    return groups


def _batch(partition: TopicPartition, messages: list[Message], reading: _Reading) -> RecordBatch | None:
    """The messages as columns, without those that were read before."""
    offsets: list[Any] = [*map(_OFFSET, messages)]
    if offsets[0] < reading.fetched:
        fresh = bisect_left(offsets, reading.fetched)
        messages, offsets = messages[fresh:], offsets[fresh:]
        if not messages:
            return None
    headers = _headers_of(partition, messages)
    return RecordBatch(
        partition.topic,
        partition.partition,
        [*map(_KEY, messages)],
        [*map(_VALUE, messages)],
        [time for _, time in map(_TIMESTAMP, messages)],
        offsets,
        [_headers(given) for given in headers] if any(headers) else None,
        max(offsets[-1] + 1, reading.end),
    )


def _headers_of(partition: TopicPartition, messages: list[Message]) -> list[Any]:
    headers: list[Any] = []
    while len(headers) < len(messages):
        try:
            headers.extend(map(_HEADERS, islice(messages, len(headers), None)))
        except (SystemError, UnicodeDecodeError) as error:
            # Keep the headers read so far, because a second call of confluent-kafka would return a list with holes.
            offset = messages[len(headers)].offset()
            log.warning(
                "%s offset %s: read without headers, because a name is not UTF-8: %s",
                partition,
                offset,
                error,
            )
            headers.append(None)
    return headers


def _headers(given: Any) -> Headers:
    return tuple(given) if given else NO_HEADERS


def _locations(partitions: Collection[TopicPartition]) -> list[Location]:
    return [Location(partition.topic, partition.partition) for partition in partitions]


def _out_of_range(
    partition: TopicPartition, reading: _Reading | None, error: KafkaError
) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        f"Offset {reading.fetched if reading else '?'} is not in the log",
        where=f"topic-partition {partition}",
        why=f"{text(error)}: because of retention, delete_records, or a topic that was created again",
        hint="reset the application's offsets: pystreams reset",
    )


def _deleted(partition: TopicPartition, reading: _Reading | None) -> TopicError:
    return TopicError(
        f"Topic {partition.topic!r} was deleted while it was being read",
        where=f"topic-partition {partition}, position {reading.position if reading else '?'}",
        hint="create it again, then restart the application",
    )
