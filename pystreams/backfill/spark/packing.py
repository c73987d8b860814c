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
from pystreams.backfill.exchange.rows import (
    EXCHANGE_SCHEMA,
    EXTERNAL,
    Arrow,
    Kind,
    counted,
    exchange_rows,
    repeated,
)

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

#: Records of an external topic also have their offsets, which need not be a counter.
_EXTERNAL_SCHEMA = pa.schema([*_OWN_SCHEMA, EXCHANGE_SCHEMA.field("sequence")])

#: Costs a short record some 20 ns here and 10 ns where it is read, and leaves a tenth of its bytes.
_CODEC = pa.Codec("zstd", compression_level=1)

#: The length of the bytes before they were compressed stands before them.
_LENGTH = Struct("<q")

#: A packed row has at most about this size before it is compressed, because Spark holds several rows at a time.
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
        schema = _schema(self.kind, self.upstream)
        own = pa.ipc.read_record_batch(_CODEC.decompress(self.data[_LENGTH.size :], length), schema)
        size = own.num_rows
        external = schema is _EXTERNAL_SCHEMA
        return exchange_rows(
            Kind(self.kind),
            repeated(self.topic, pa.string(), size),
            repeated(self.partition, pa.int32(), size),
            own.column(0),
            self.upstream,
            own.column(len(_OWN)) if external else counted(self.sequence, size),
            tuple(own.columns[1 : len(_OWN)]),
        )


def packed(batches: Iterable[Arrow]) -> Iterator[Arrow]:
    """The output of a task as packed rows, each in an Arrow batch of its own.

    A batch has one kind, topic, partition and writer; only the sequence of an external topic may have holes.
    """
    for batch in batches:
        step = max(1, batch.num_rows * PACKED_BYTES // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, step):
            yield _packed(batch.slice(start, step))


def _schema(kind: int, upstream: int) -> Arrow:
    """The columns of the rows in a packed row."""
    return _EXTERNAL_SCHEMA if kind == Kind.RECORD and upstream == EXTERNAL else _OWN_SCHEMA


def _packed(batch: Arrow) -> Arrow:
    schema = _schema(batch.column("kind")[0].as_py(), batch.column("upstream")[0].as_py())
    own = pa.record_batch([batch.column(name) for name in schema.names], schema=schema)
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
