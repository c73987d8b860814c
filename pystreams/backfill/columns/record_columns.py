"""The columns of records that an application has written to a topic."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pystreams.backfill.application import Application
from pystreams.backfill.columns.key_spans import Spans
from pystreams.backfill.columns.parts import Parts, spans_of_topic
from pystreams.backfill.columns.typed import MOMENT, moments
from pystreams.backfill.exchange.rows import EXCHANGE_SCHEMA, Arrow, counted, repeated


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """``key, [window_start, window_end, | session_start, session_end,] value, timestamp, partition, offset, headers``.
    Picklable.

    The offset is that of a topic, or an archive, to which the records are the first that are written.
    """

    parts: Parts
    spans: Spans

    @classmethod
    def of(cls, application: Application, topic: str) -> RecordColumns:
        """Those of an application's sink."""
        return cls(Parts.of(application, "topic", topic), spans_of_topic(application.load(), topic))

    @property
    def schema(self) -> Arrow:
        key, value = self.parts.fields()
        return pa.schema(
            [
                key,
                *self.spans.fields,
                value,
                ("timestamp", MOMENT),
                pa.field("partition", pa.int32(), nullable=False),
                pa.field("offset", pa.int64(), nullable=False),
                EXCHANGE_SCHEMA.field("headers"),
            ]
        )

    def batch(self, rows: Arrow, partition: int, offset: int, where: str) -> Arrow:
        """Rows of ``EXCHANGE_SCHEMA`` for one partition, the first of which has ``offset``. Raises
        ``SerializationError``."""
        size = rows.num_rows
        record_keys, times = self.spans.columns(rows.column("key"), where)
        key, value = self.parts.columns(record_keys, rows.column("value"), where)
        columns = [
            key,
            *times,
            value,
            moments(rows.column("timestamp")),
            repeated(partition, pa.int32(), size),
            counted(offset, size),
            rows.column("headers"),
        ]
        return pa.record_batch(columns, schema=self.schema)
