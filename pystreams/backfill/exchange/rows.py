"""Records as Arrow columns: the output of sources, and the rows between the slices of a backfill.

Columns become ``RecordBatch`` and back list by list; no object is made per record.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute

from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers, RecordBatch

#: The types of pyarrow's own classes, for the type checker.
Arrow: TypeAlias = Any

#: Arrow's functions on columns, which it makes when it is imported: no type checker finds them.
pc: Any = pyarrow.compute

_HEADERS = pa.list_(pa.struct([pa.field("name", pa.string(), nullable=False), ("value", pa.binary())]))

#: The schema of records in sources and archives. Timestamps in ms.
RECORD_SCHEMA: Arrow = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", _HEADERS),
    ]
)

#: A row between slices. ``kind`` says what it is. A record's ``partition`` is where it goes (and so the task that reads
#: it), ``queue_time`` the running maximum of timestamps in its queue, ``upstream`` the task that wrote it (-1: it comes
#: from an external topic), ``sequence`` its number in the queue (an external topic's offset).
EXCHANGE_SCHEMA: Arrow = pa.schema(
    [
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("queue_time", pa.int64(), nullable=False),
        pa.field("upstream", pa.int64(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", _HEADERS),
    ]
)

#: ``upstream`` of records from an external topic.
EXTERNAL = -1
#: ``upstream`` of rows that are not records and do not need one.
NO_UPSTREAM = -1

_INT64_MIN = -(1 << 63)


class Kind(IntEnum):
    """The kind of a row of ``EXCHANGE_SCHEMA``."""

    #: For a topic.
    RECORD = 0
    #: An entry of a store in its changelog's format; ``topic`` is the store's name.
    STATE = 1
    #: The outcome of a task: JSON in ``value``, see task_outcome.py.
    OUTCOME = 2


#: ``queue_time`` by which rows that are not records come before all records when sorted.
QUEUE_TIME = {Kind.OUTCOME: _INT64_MIN, Kind.STATE: _INT64_MIN + 1}


def upstream_id(subtopology: int, partition: int) -> int:
    """A task as the ``upstream`` column has it."""
    return (subtopology << 32) | partition


def record_rows(batch: RecordBatch) -> Arrow:
    """A batch in ``RECORD_SCHEMA``."""
    size = len(batch)
    return pa.record_batch(
        [
            repeated(batch.topic, pa.string(), size),
            repeated(batch.partition, pa.int32(), size),
            pa.array(batch.offsets, pa.int64()),
            pa.array(batch.timestamps, pa.int64()),
            pa.array(batch.keys, pa.binary()),
            pa.array(batch.values, pa.binary()),
            headers_column(batch.headers, size),
        ],
        schema=RECORD_SCHEMA,
    )


def record_batch(rows: Arrow, partition: TopicPartition, offsets: Sequence[int]) -> RecordBatch:
    """Rows of one topic and partition, in either schema, as a batch with the given offsets."""
    return RecordBatch(
        partition.topic,
        partition.partition,
        rows.column("key").to_pylist(),
        rows.column("value").to_pylist(),
        rows.column("timestamp").to_pylist(),
        offsets,
        headers_of(rows.column("headers")),
        offsets[-1] + 1 if offsets else 0,
    )


def exchange_rows(
    kind: Kind,
    topics: Arrow,
    partitions: Arrow,
    queue_times: Arrow,
    upstream: int,
    sequences: Arrow,
    columns: tuple[Arrow, Arrow, Arrow, Arrow],
) -> Arrow:
    """A batch in ``EXCHANGE_SCHEMA``; ``columns`` are timestamps, keys, values and headers."""
    size = len(sequences)
    return pa.record_batch(
        [
            repeated(int(kind), pa.int8(), size),
            topics,
            partitions,
            queue_times,
            repeated(upstream, pa.int64(), size),
            sequences,
            *columns,
        ],
        schema=EXCHANGE_SCHEMA,
    )


def repeated(value: Any, type: Arrow, size: int) -> Arrow:
    """A column of one value."""
    return pa.repeat(pa.scalar(value, type), size)


def counted(start: int, size: int) -> Arrow:
    """A column of ``size`` numbers from ``start`` on."""
    places = pc.indices_nonzero(pa.repeat(pa.scalar(True), size))
    return pc.add(places.cast(pa.int64()), start)


def running_maximum(column: Arrow, start: int) -> Arrow:
    """The greatest of a column's values up to each, and of ``start``."""
    return pc.cumulative_max(column, start=start)


def headers_column(headers: Sequence[Headers] | None, size: int) -> Arrow:
    """Headers as a column; a record without any has null."""
    if headers is None:
        return pa.nulls(size, _HEADERS)
    return pa.array(
        [[{"name": name, "value": value} for name, value in one] if one else None for one in headers],
        _HEADERS,
    )


def headers_of(column: Arrow) -> list[Headers] | None:
    """A column of headers as records have them; None if no record has any."""
    if column.null_count == len(column):
        return None
    return [
        NO_HEADERS if not one else tuple((header["name"], header["value"]) for header in one)
        for one in column.to_pylist()
    ]


def place_of(rows: Arrow) -> str:
    """Where records of one partition are, for people."""
    topic, partition, first = (rows.column(name)[0] for name in ("topic", "partition", "sequence"))
    return f"{topic}-{partition} offsets {first} to {rows.column('sequence')[-1]}"


def runs_of(column: Arrow) -> list[tuple[Any, int, int]]:
    """The stretches of equal values of a column: (value, start, end)."""
    size = len(column)
    if not size:
        return []
    changed = pc.not_equal(column.slice(1), column.slice(0, size - 1))
    starts = [0, *(i + 1 for i in pc.indices_nonzero(changed).to_pylist())]
    ends = [*starts[1:], size]
    return list(zip(column.take(starts).to_pylist(), starts, ends, strict=True))


def of_kind(rows: Arrow, kind: Kind) -> Arrow:
    """The rows of one kind."""
    return rows.filter(pc.equal(rows.column("kind"), int(kind)))


def combined(batches: Sequence[Arrow]) -> Arrow:
    """Batches of one schema as one."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(list(batches))
