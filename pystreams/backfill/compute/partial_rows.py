"""The rows of partial aggregates that a task writes to a repartition topic, by partition."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow, Kind, exchange_rows, headers_column, repeated
from pystreams.dsl.operators.partial_results import Row
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key

#: Rows that are handed on together.
_BATCH_ROWS = 20_000


class PartialQueue:
    """See ``partial_results.Queue``."""

    def __init__(self) -> None:
        self.sequence = 0
        self.time = -1
        self.rows: list[Row] = []
        #: How many rows were added.
        self.count = 0

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.count += 1


class PartialRows:
    """The queues of a task for one topic."""

    def __init__(self, topic: str, partitions: int, upstream: int) -> None:
        self._topic = topic
        self._upstream = upstream
        self._queues = [PartialQueue() for _ in range(partitions)]

    def queue_of(self, key: bytes) -> PartialQueue:
        return self._queues[partition_for_key(key, len(self._queues))]

    @property
    def sequences(self) -> dict[TopicPartition, tuple[int, int]]:
        """The position of every queue: that after the records for which its rows stand."""
        return {
            TopicPartition(self._topic, partition): (queue.sequence, queue.time)
            for partition, queue in enumerate(self._queues)
            if queue.sequence
        }

    @property
    def written(self) -> dict[TopicPartition, int]:
        """How many rows were written to each partition."""
        return {
            TopicPartition(self._topic, partition): queue.count
            for partition, queue in enumerate(self._queues)
            if queue.count
        }

    def take(self) -> Iterator[Arrow]:
        """The rows that were added since the last call, as batches of one partition each in ``EXCHANGE_SCHEMA``."""
        for partition, queue in enumerate(self._queues):
            rows, queue.rows = sorted(queue.rows, key=itemgetter(0)), []
            for start in range(0, len(rows), _BATCH_ROWS):
                yield self._batch(partition, rows[start : start + _BATCH_ROWS])

    def _batch(self, partition: int, rows: list[Row]) -> Arrow:
        sequences, times, keys, values, timestamps, headers = zip(*rows, strict=True)
        size = len(rows)
        return exchange_rows(
            Kind.RECORD,
            repeated(self._topic, pa.string(), size),
            repeated(partition, pa.int32(), size),
            pa.array(times, pa.int64()),
            self._upstream,
            pa.array(sequences, pa.int64()),
            (
                pa.array(timestamps, pa.int64()),
                pa.array(keys, pa.binary()),
                pa.array(values, pa.binary()),
                headers_column(headers, size) if any(headers) else headers_column(None, size),
            ),
        )
