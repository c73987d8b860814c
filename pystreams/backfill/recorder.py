"""Takes the producer's place in a task of a backfill: what is sent becomes rows for the next slices and the sinks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import accumulate

import pyarrow as pa

from pystreams.backfill.records import Arrow, Kind, exchange_rows, headers_column
from pystreams.broker.port import CommittedOffset, Member, check_headers, no_bytes
from pystreams.errors import ProductionError
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from pystreams.record import NO_HEADERS, Headers

#: By partition written: the next sequence number, and the greatest timestamp so far.
Sequences = Mapping[TopicPartition, tuple[int, int]]

#: How many keys of a topic are remembered with their partitions, and how long they may be.
_KEYS_MAX = 65_536
_KEY_BYTES_MAX = 128


class _Queue:
    """What was sent to one partition and has not been taken yet."""

    __slots__ = ("headers", "keys", "partition", "queue_time", "sequence", "timestamps", "values")

    def __init__(self, partition: TopicPartition, sequence: int, queue_time: int) -> None:
        self.partition = partition
        self.sequence = sequence
        self.queue_time = queue_time
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        #: By index: few records have any.
        self.headers: dict[int, Headers] = {}

    def taken(self) -> None:
        self.keys, self.values, self.timestamps, self.headers = [], [], [], {}


class Recorder:
    """Implements ``broker.port.Producer``. ``inputs`` are topics of the backfill that must not be written.

    A record without a key goes to the partition of the task's own number, where a producer would choose any.
    """

    def __init__(
        self,
        upstream: int,
        task: int,
        partition_count: Callable[[str], int],
        inputs: Collection[str],
        sequences: Sequences,
    ) -> None:
        self._upstream = upstream
        self._task = task
        self._partition_count = partition_count
        self._inputs = frozenset(inputs)
        self._queues: dict[str, dict[int, _Queue]] = {}
        self._started = dict(sequences)
        #: The queues of keys seen before, by topic: one look-up where a hash costs 1 µs.
        self._places: dict[str, dict[bytes | None, _Queue]] = {}
        #: Rows that have been sent and not taken.
        self.rows = 0

    @property
    def sequences(self) -> dict[TopicPartition, tuple[int, int]]:
        """Where every queue stands, for a later visit to go on from."""
        reached = {
            queue.partition: (queue.sequence, queue.queue_time)
            for queues in self._queues.values()
            for queue in queues.values()
        }
        return {**self._started, **reached}

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        """Raises ``SerializationError`` where key, value or headers are not bytes, ``ProductionError`` for a topic that
        the backfill reads."""
        if (value.__class__ is not bytes and value is not None) or (
            key.__class__ is not bytes and key is not None
        ):
            raise no_bytes(topic, key, value)
        try:
            queue = self._places[topic][key] if partition is None else self._queues[topic][partition]
        except KeyError:
            queue = self._find(topic, partition, key)
        if headers:
            check_headers(topic, headers)
            queue.headers[len(queue.values)] = headers
        queue.keys.append(key)
        queue.values.append(value)
        queue.timestamps.append(timestamp)
        self.rows += 1

    def log_change(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        """Nothing: a backfill publishes what a store holds at the end, not how it came to that."""

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Member | None
    ) -> dict[TopicPartition, int]:
        return {}

    def abort(self) -> None:
        """Nothing to take back: a task that fails begins anew, and what it gave is dropped with it."""

    def close(self) -> None:
        """Nothing to release."""

    def take(self) -> Arrow | None:
        """What was sent since the last call in ``EXCHANGE_SCHEMA``, queue by queue; None if that is nothing."""
        queues = [q for by_partition in self._queues.values() for q in by_partition.values() if q.values]
        if not queues:
            return None
        topics: list[str] = []
        partitions: list[int] = []
        times: list[int] = []
        sequences: list[int] = []
        for queue in queues:
            size = len(queue.values)
            topics += [queue.partition.topic] * size
            partitions += [queue.partition.partition] * size
            running = list(accumulate(queue.timestamps, max, initial=queue.queue_time))
            times += running[1:]
            sequences += range(queue.sequence, queue.sequence + size)
            queue.sequence += size
            queue.queue_time = running[-1]
        rows = exchange_rows(
            Kind.RECORD,
            pa.array(topics, pa.string()),
            pa.array(partitions, pa.int32()),
            pa.array(times, pa.int64()),
            self._upstream,
            pa.array(sequences, pa.int64()),
            (
                pa.array([t for queue in queues for t in queue.timestamps], pa.int64()),
                pa.array([key for queue in queues for key in queue.keys], pa.binary()),
                pa.array([value for queue in queues for value in queue.values], pa.binary()),
                _headers(queues, len(topics)),
            ),
        )
        for queue in queues:
            queue.taken()
        self.rows = 0
        return rows

    def _find(self, topic: str, partition: int | None, key: bytes | None) -> _Queue:
        """The queue of a partition, or of the one that a key belongs to, which is remembered."""
        if topic not in self._queues:
            self._refuse_input(topic)
            self._queues[topic], self._places[topic] = {}, {}
        if partition is not None:
            return self._queue(topic, partition)
        count = self._partition_count(topic)
        queue = self._queue(topic, self._task % count if key is None else partition_for_key(key, count))
        if key is None or len(key) <= _KEY_BYTES_MAX:
            places = self._places[topic]
            if len(places) >= _KEYS_MAX:
                places.clear()
            places[key] = queue
        return queue

    def _queue(self, topic: str, partition: int) -> _Queue:
        queue = self._queues[topic].get(partition)
        if queue is None:
            at = TopicPartition(topic, partition)
            queue = self._queues[topic][partition] = _Queue(at, *self._started.get(at, (0, -1)))
        return queue

    def _refuse_input(self, topic: str) -> None:
        if topic in self._inputs:
            raise ProductionError(
                f"the application writes to topic {topic}, which it also reads: a backfill cannot do that",
                why="what the topic holds already was written by the application itself: it would count twice",
                hint="choose another topic, or make the two steps two applications",
            )


def _headers(queues: list[_Queue], size: int) -> Arrow:
    if not any(queue.headers for queue in queues):
        return headers_column(None, size)
    return headers_column(
        [queue.headers.get(i, NO_HEADERS) for queue in queues for i in range(len(queue.values))], size
    )
