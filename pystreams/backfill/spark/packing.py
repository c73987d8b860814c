"""Rows between slices as Spark sees them: packed, some thousand in one row of Spark's.

A packed row has the columns that Spark filters, distributes and sorts by, as they are for the first of its rows, and
the rows themselves as Arrow's bytes, compressed. So the JVM works once per batch, where it would work on ten columns
per record, and on fewer bytes: Parquet, shuffle and sort copy them a dozen times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, NamedTuple

import pyarrow as pa

from pystreams.backfill.exchange.order import Place
from pystreams.backfill.exchange.rows import EXCHANGE_SCHEMA, Arrow, Kind, counted, exchange_rows, repeated

#: The packed columns as Spark's types.
PACKED_DDL = """kind tinyint, topic string, partition int, queue_time bigint, upstream bigint, sequence bigint,
    data binary"""

_PACKED = pa.schema(
    [
        ("kind", pa.int8()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("queue_time", pa.int64()),
        ("upstream", pa.int64()),
        ("sequence", pa.int64()),
        ("data", pa.binary()),
    ]
)

#: The columns that are neither constant in a batch nor a counter.
_OWN = ("queue_time", "timestamp", "key", "value", "headers")
_OWN_SCHEMA = pa.schema([EXCHANGE_SCHEMA.field(name) for name in _OWN])

#: Costs a short record some 20 ns here and 10 ns where it is read, and leaves a tenth of its bytes.
_CODEC = pa.Codec("zstd", compression_level=1)

#: The length of the bytes before they were compressed stands before them.
_LENGTH = Struct("<q")

#: A packed row has at most about so many bytes before it is compressed: Spark holds several at a time.
PACKED_BYTES = 1024 * 1024


class Packed(NamedTuple):
    """A packed row: where its first row is, and the rows as bytes."""

    kind: int
    topic: str
    partition: int
    queue_time: int
    upstream: int
    sequence: int
    data: Arrow

    @property
    def place(self) -> Place:
        """Of the first row."""
        return self.queue_time, (self.topic, self.upstream)

    def rows(self) -> Arrow:
        """In ``EXCHANGE_SCHEMA``."""
        (length,) = _LENGTH.unpack_from(self.data)
        own = pa.ipc.read_record_batch(_CODEC.decompress(self.data[_LENGTH.size :], length), _OWN_SCHEMA)
        size = own.num_rows
        return exchange_rows(
            Kind(self.kind),
            repeated(self.topic, pa.string(), size),
            repeated(self.partition, pa.int32(), size),
            own.column(0),
            self.upstream,
            counted(self.sequence, size),
            tuple(own.columns[1:]),
        )


def packed(batches: Iterable[Arrow]) -> Iterator[Arrow]:
    """The output of a task as packed rows, each in an Arrow batch of its own.

    A batch has one kind, topic, partition and writer, and its sequence has no hole.
    """
    for batch in batches:
        step = max(1, batch.num_rows * PACKED_BYTES // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, step):
            yield _packed(batch.slice(start, step))


def _packed(batch: Arrow) -> Arrow:
    own = pa.record_batch([batch.column(name) for name in _OWN], schema=_OWN_SCHEMA)
    data = own.serialize()
    compressed = _LENGTH.pack(len(data)) + _CODEC.compress(data, asbytes=True)
    columns = [batch.column(name).slice(0, 1) for name in _PACKED.names[:-1]]
    return pa.record_batch([*columns, pa.array([compressed], pa.binary())], schema=_PACKED)


def unpacked(batches: Iterable[Arrow]) -> Iterator[Packed]:
    """The packed rows of batches as Spark gives them."""
    for batch in batches:
        columns = [batch.column(name) for name in _PACKED.names]
        heads: Iterator[Any] = zip(*(column.to_pylist() for column in columns[:-1]), strict=True)
        for i, head in enumerate(heads):
            yield Packed._make((*head, columns[-1][i].as_buffer()))
