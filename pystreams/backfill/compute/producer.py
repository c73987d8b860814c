"""The producer of a task of a backfill: records that are sent become rows for the next slices and the sinks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from pystreams.backfill.compute.spill import Spill
from pystreams.backfill.exchange.rows import (
    Arrow,
    Kind,
    combined,
    counted,
    exchange_rows,
    headers_column,
    repeated,
    running_maximum,
)
from pystreams.broker.port import check_headers, no_bytes, why_no_topic_name
from pystreams.engine.no_producer import NoProducer
from pystreams.errors import ProductionError
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from pystreams.record import NO_HEADERS, Headers

#: By partition written: the next sequence number, and the greatest timestamp so far.
Sequences = Mapping[TopicPartition, tuple[int, int]]

#: How many keys of a topic are remembered with their partitions, and how long they may be.
_KEYS_MAX = 65_536
_KEY_BYTES_MAX = 128

#: Records become rows when they reach both sizes, the first in all and the second on average per queue; or ``_BYTES``.
_SEALED_BYTES = 1024 * 1024
_QUEUE_BYTES = 25 * 1024
_BYTES = 32 * 1024 * 1024
#: Rows of a partition are handed on when they reach this size, or all rows together reach ``_BYTES``.
_BATCH_BYTES = 256 * 1024
#: The bytes of a record beside its key, value and headers.
_RECORD_BYTES = 100


class _Queue:
    """The records that were sent to one partition and not taken yet: first as lists, then as Arrow rows."""

    __slots__ = (
        "headers",
        "keys",
        "partition",
        "queue_time",
        "rows",
        "rows_bytes",
        "sequence",
        "timestamps",
        "values",
    )

    def __init__(self, partition: TopicPartition, sequence: int, queue_time: int) -> None:
        self.partition = partition
        self.sequence = sequence
        self.queue_time = queue_time
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        #: By index: few records have any.
        self.headers: dict[int, Headers] = {}
        self.rows: list[Arrow] = []
        self.rows_bytes = 0

    def seal(self, upstream: int) -> None:
        """Turn the lists into rows."""
        size = len(self.values)
        if not size:
            return
        timestamps = pa.array(self.timestamps, pa.int64())
        times = running_maximum(timestamps, self.queue_time)
        rows = exchange_rows(
            Kind.RECORD,
            repeated(self.partition.topic, pa.string(), size),
            repeated(self.partition.partition, pa.int32(), size),
            times,
            upstream,
            counted(self.sequence, size),
            (
                timestamps,
                pa.array(self.keys, pa.binary()),
                pa.array(self.values, pa.binary()),
                self._headers(size),
            ),
        )
        self.sequence += size
        self.queue_time = times[-1].as_py()
        self.rows.append(rows)
        self.rows_bytes += rows.nbytes
        self.keys, self.values, self.timestamps, self.headers = [], [], [], {}

    def take(self) -> Arrow:
        rows, self.rows, self.rows_bytes = combined(self.rows), [], 0
        return rows

    def _headers(self, size: int) -> Arrow:
        if not self.headers:
            return headers_column(None, size)
        return headers_column([self.headers.get(i, NO_HEADERS) for i in range(size)], size)


class CollectingProducer(NoProducer):
    """Collects the sent records. Changes of stores are discarded, because a backfill publishes their final content. An
    abort does nothing, because a task that fails starts again, and its output is discarded.

    ``inputs`` are topics of the backfill that must not be written.

    A record without a key goes to the partition of the task's own number; a live producer would choose any partition.

    The task calls ``take`` periodically. If the results of one record do not fit into memory before that, they wait in
    a file in ``folder``.
    """

    def __init__(
        self,
        upstream: int,
        task: int,
        partition_count: Callable[[str], int],
        inputs: Collection[str],
        folder: Path,
    ) -> None:
        self._upstream = upstream
        self._task = task
        self._partition_count = partition_count
        self._inputs = frozenset(inputs)
        self._queues: dict[str, dict[int, _Queue]] = {}
        self._started: Sequences = {}
        #: The queues of keys seen before, by topic: one look-up where a hash costs 1 µs.
        self._places: dict[str, dict[bytes | None, _Queue]] = {}
        self._queue_count = 0
        #: The bytes that were sent since the last conversion to rows.
        self._bytes = 0
        self._spill = Spill(folder / "spilled")

    def go_on(self, sequences: Sequences) -> None:
        """Continue the numbers of records after those of an earlier visit. Called before the first record is sent."""
        self._started = sequences

    @property
    def sequences(self) -> dict[TopicPartition, tuple[int, int]]:
        """The position of every queue, from which a later visit continues."""
        reached = {
            queue.partition: (queue.sequence, queue.queue_time)
            for queues in self._queues.values()
            for queue in queues.values()
        }
        return {**self._started, **reached}

    @property
    def written(self) -> dict[TopicPartition, int]:
        """How many records were sent to each partition."""
        counts = {
            partition: sequence - self._started.get(partition, (0, -1))[0]
            for partition, (sequence, _) in self.sequences.items()
        }
        return {partition: count for partition, count in counts.items() if count}

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
        the backfill reads and for a name that no topic may have."""
        if (value.__class__ is not bytes and value is not None) or (
            key.__class__ is not bytes and key is not None
        ):
            raise no_bytes(topic, key, value)
        size = _RECORD_BYTES if value is None else _RECORD_BYTES + len(value)
        try:
            if partition is None:
                queue = self._places[topic][key]
            else:
                queue = self._queues[topic][partition]
                size += len(key or b"")
        except KeyError:
            queue = self._find(topic, partition, key)
            size += len(key or b"")
        if headers:
            check_headers(topic, headers)
            queue.headers[len(queue.values)] = headers
            size += sum(len(name) + len(content or b"") for name, content in headers)
        queue.keys.append(key)
        queue.values.append(value)
        queue.timestamps.append(timestamp)
        self._bytes = size = self._bytes + size
        if size >= _BYTES:
            self._spill_all()

    def close(self) -> None:
        """Close the file."""
        self._spill.close()

    def take(self, *, everything: bool = False) -> Iterator[Arrow]:
        """Take the partitions with enough records, or ``everything``, as batches of one partition each in
        ``EXCHANGE_SCHEMA``. This bounds the memory, whatever the number of partitions and the size of records."""
        yield from self._spill.take()
        enough = min(max(_SEALED_BYTES, _QUEUE_BYTES * self._queue_count), _BYTES)
        if not everything and self._bytes < enough:
            return
        self._seal()
        everything |= sum(queue.rows_bytes for queue in self._all()) >= _BYTES
        for queue in self._all():
            if queue.rows and (everything or queue.rows_bytes >= _BATCH_BYTES):
                yield queue.take()

    def _spill_all(self) -> None:
        """Move everything to the file."""
        self._seal()
        for queue in self._all():
            if queue.rows:
                self._spill.add(queue.take())

    def _seal(self) -> None:
        """Turn all sent records into rows."""
        for queue in self._all():
            queue.seal(self._upstream)
        self._bytes = 0

    def _all(self) -> list[_Queue]:
        return [queue for by_partition in self._queues.values() for queue in by_partition.values()]

    def _find(self, topic: str, partition: int | None, key: bytes | None) -> _Queue:
        """The queue of a partition, or of the one that a key belongs to, which is remembered."""
        if topic not in self._queues:
            self._refuse_topic(topic)
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
            self._queue_count += 1
            at = TopicPartition(topic, partition)
            queue = self._queues[topic][partition] = _Queue(at, *self._started.get(at, (0, -1)))
        return queue

    def _refuse_topic(self, topic: str) -> None:
        illegal = why_no_topic_name(topic)
        if illegal:
            raise ProductionError(
                f"a record cannot be written to topic {topic!r}",
                why=f"it is not a legal topic name: {illegal}",
                hint="change the function that chooses the topic",
            )
        if topic in self._inputs:
            raise ProductionError(
                f"the application writes to topic {topic}, which it also reads: a backfill cannot do that",
                why="the application itself wrote the records that the topic already holds: they would count twice",
                hint="choose another topic, or make the two steps two applications",
            )
