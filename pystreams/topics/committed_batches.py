"""Reads a partition up to its present end, outside of tasks: changelogs, and records that an application keeps."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Final

from pystreams.broker.port import Admin, Broker
from pystreams.clock import Clock, Deadline
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch

_POLL_MS: Final = 50.0


class SilentPartitionError(Exception):
    """No record arrived for a long time before the end of a partition: a transaction is open, or a broker is down."""

    def __init__(self, position: int, end_offset: int) -> None:
        super().__init__(f"position {position} of {end_offset}")
        self.position = position
        self.end_offset = end_offset


def committed_batches(
    broker: Broker,
    admin: Admin,
    partition: TopicPartition,
    clock: Clock,
    silence_ms: float,
    start_offset: int = 0,
) -> Generator[RecordBatch]:
    """The records from ``start_offset`` up to the present end of the partition, without those of aborted transactions.

    Raises ``SilentPartitionError`` if no record arrives for ``silence_ms``.
    """
    beginning, end = (
        admin.beginning_offsets([partition])[partition],
        admin.end_offsets([partition])[partition],
    )
    start = max(beginning, start_offset)
    if start >= end:
        return
    # A restore consumer, because it does not read uncommitted records.
    with closing(broker.consumer("changelog-reader", "restore")) as consumer:
        consumer.assign({partition: start})
        silence = Deadline(clock, silence_ms)
        while (position := consumer.position(partition)) < end:
            batches = consumer.poll(_POLL_MS)
            if batches or consumer.position(partition) > position:
                silence = Deadline(clock, silence_ms)
            elif silence.expired():
                raise SilentPartitionError(position, end)
            yield from batches


def last_value(
    broker: Broker, admin: Admin, partition: TopicPartition, key: bytes, clock: Clock, silence_ms: float
) -> bytes | None:
    """The last value of ``key`` in a compacted partition; None if there is none, or no such partition.

    Raises ``SilentPartitionError`` while a record that may have the key is not committed.
    """
    if partition.topic not in admin.partition_counts():
        return None
    last: bytes | None = None
    for batch in committed_batches(broker, admin, partition, clock, silence_ms):
        for found, value in zip(batch.keys, batch.values, strict=True):
            if found == key:
                last = value
    return last
