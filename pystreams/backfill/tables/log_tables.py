"""Topics, and stores by their changelogs, as tables: read from a log or an archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pystreams.backfill.columns.compacted import compacted_in
from pystreams.backfill.columns.parts import Parts
from pystreams.backfill.columns.store_columns import StoreColumns
from pystreams.backfill.columns.typed import MOMENT, moments
from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.sources.source import Source
from pystreams.errors import TopicError
from pystreams.ids import TopicPartition


@dataclass(frozen=True)
class TopicTable:
    """The records of a topic: ``topic, partition, offset, timestamp, [key, value,] key_bytes, value_bytes,
    headers``. Where an archive has holes, those that are left."""

    source: Source
    topic: str
    types: Parts

    @property
    def schema(self) -> Arrow:
        place = [RECORD_SCHEMA.field(name) for name in ("topic", "partition", "offset")]
        raw = [("key_bytes", pa.binary()), ("value_bytes", pa.binary()), RECORD_SCHEMA.field("headers")]
        return pa.schema([*place, ("timestamp", MOMENT), *self.types.fields(), *raw])

    def parts(self) -> Sequence[InputRange]:
        return [part for whole in ranges_of(self.source, self.topic) for part in _held(self.source, whole)]

    def read(self, part: InputRange, folder: str | None) -> Iterator[Arrow]:
        schema, where = self.schema, str(part.partition)
        for rows in self.source.read(part):
            keys, values = rows.column("key"), rows.column("value")
            place = [rows.column(name) for name in ("topic", "partition", "offset")]
            columns = [
                *place,
                moments(rows.column("timestamp")),
                *self.types.columns(keys, values, where),
                keys,
                values,
                rows.column("headers"),
            ]
            yield pa.record_batch(columns, schema=schema)


@dataclass(frozen=True)
class ChangelogTable:
    """A store as its changelog has it: the last value of each key, as of now.

    ``retention_ms`` leaves out windows and sessions that the store would not show any more (0: none). ``history_ms``
    is that of a versioned store (None: it is none), of which each key's latest version counts, however late it came.
    """

    source: Source
    changelog: str
    columns: StoreColumns
    retention_ms: int = 0
    history_ms: int | None = None

    @property
    def schema(self) -> Arrow:
        return self.columns.schema

    def parts(self) -> Sequence[InputRange]:
        return ranges_of(self.source, self.changelog)

    def read(self, part: InputRange, folder: str | None) -> Iterator[Arrow]:
        where = str(part.partition)
        with compacted_in(folder, self.history_ms) as compacted:
            for rows in self.source.read(part):
                compacted.add(rows)
            oldest: int | None = None
            if self.retention_ms and self.columns.spans.kind:
                times = (self.columns.spans.expires_at(key, where) for key, _, _ in compacted.entries())
                oldest = max(times, default=0) - self.retention_ms
            visible = (
                entry
                for entry in compacted.entries()
                if oldest is None or self.columns.spans.expires_at(entry[0], where) > oldest
            )
            yield from self.columns.batches(visible, part.partition.partition, where)


def ranges_of(source: Source, topic: str) -> list[InputRange]:
    """All that a topic holds now. Raises ``TopicError`` if there is no such topic."""
    counts: Mapping[str, int] = source.partitions()
    if topic not in counts:
        raise TopicError(
            f"there is no topic {topic}",
            where=source.description,
            why=f"its topics: {', '.join(sorted(counts)) or 'none'}",
        )
    partitions = [TopicPartition(topic, number) for number in range(counts[topic])]
    beginnings, ends = source.beginnings(partitions), source.ends(partitions)
    return [InputRange(partition, beginnings[partition], ends[partition]) for partition in partitions]


def _held(source: Source, whole: InputRange) -> Iterator[InputRange]:
    """A range without the offsets that the source has lost."""
    start = whole.start
    for lost_start, lost_end in source.missing(whole):
        if start < lost_start:
            yield InputRange(whole.partition, start, lost_start)
        start = lost_end
    if start < whole.end:
        yield InputRange(whole.partition, start, whole.end)
