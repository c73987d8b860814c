"""The three forms of a record: columns from a broker, context while it is processed, object in the Processor API."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from pystreams.stream_time import StreamTime

K2 = TypeVar("K2")
V2 = TypeVar("V2")

#: Headers in order; a name may occur several times. Immutable, so that branches of a topology can share them.
Headers: TypeAlias = tuple[tuple[str, "bytes | None"], ...]

NO_HEADERS: Headers = ()

#: topic, partition, offset, timestamp, headers of the record being processed. A plain tuple, because the hot path makes
#: one per record and a cache entry keeps it. In punctuation the topic is None, partition and offset are -1.
RecordContext: TypeAlias = tuple["str | None", int, int, int, Headers]


@dataclass(slots=True)
class RecordBatch:
    """Consecutive records of one partition as parallel columns.

    ``offsets`` ascend but may have holes (compaction, transaction markers). ``headers`` is None if no record of the
    batch has any. ``next_offset`` is the position after the batch; it may be greater than the last record's offset + 1.
    ``size_bytes`` is what the records take in their log, if that is known without looking at each.
    """

    topic: str
    partition: int
    keys: list[bytes | None]
    values: list[bytes | None]
    timestamps: list[int]
    offsets: Sequence[int]
    headers: list[Headers] | None
    next_offset: int
    size_bytes: int | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    def before(self, end_offset: int) -> RecordBatch:
        """The batch without records at ``end_offset`` or later."""
        if self.next_offset <= end_offset:
            return self
        size = bisect_left(self.offsets, end_offset)
        return RecordBatch(
            self.topic,
            self.partition,
            self.keys[:size],
            self.values[:size],
            self.timestamps[:size],
            self.offsets[:size],
            None if self.headers is None else self.headers[:size],
            end_offset,
        )

    def without(self, start_offset: int, end_offset: int) -> RecordBatch:
        """The batch without the records from ``start_offset`` (inclusive) to ``end_offset`` (exclusive)."""
        start, end = bisect_left(self.offsets, start_offset), bisect_left(self.offsets, end_offset)
        if start == end:
            return self
        kept = [*range(start), *range(end, len(self))]
        return RecordBatch(
            self.topic,
            self.partition,
            [self.keys[place] for place in kept],
            [self.values[place] for place in kept],
            [self.timestamps[place] for place in kept],
            [self.offsets[place] for place in kept],
            None if self.headers is None else [self.headers[place] for place in kept],
            self.next_offset,
        )


K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)


class Record(Generic[K_co, V_co]):
    """Key, value, timestamp (ms, never negative) and headers: the record that a ``Processor`` receives and forwards.

    Immutable: ``with_...`` returns a changed copy. Source: org.apache.kafka.streams.processor.api.Record.
    """

    __slots__ = ("headers", "key", "timestamp", "value")

    def __init__(self, key: K_co, value: V_co, timestamp: int, headers: Headers = NO_HEADERS) -> None:
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.headers = headers

    def with_key(self, key: K2) -> Record[K2, V_co]:
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: V2) -> Record[K_co, V2]:
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record[K_co, V_co]:
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> Record[K_co, V_co]:
        return Record(self.key, self.value, self.timestamp, headers)

    def __repr__(self) -> str:
        return f"Record({self.key!r}, {self.value!r}, timestamp={self.timestamp}, headers={self.headers!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple[Any, Any, int, Headers]:
        return (self.key, self.value, self.timestamp, self.headers)


class FixedKeyRecord(Record[K_co, V_co]):
    """The record that a ``process_values`` processor receives. ``with_...`` returns copies of this type with the same
    key. In punctuation, where there is no current record, a processor can forward only these. Source:
    org.apache.kafka.streams.processor.api.FixedKeyRecord.
    """

    __slots__ = ()

    def with_value(self, value: V2) -> Record[K_co, V2]:
        return FixedKeyRecord(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record[K_co, V_co]:
        return FixedKeyRecord(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> Record[K_co, V_co]:
        return FixedKeyRecord(self.key, self.value, self.timestamp, headers)


class ContextCell:
    """The context of the task's current record: set for each input record, and for each dirty cache entry while it is
    forwarded; and the task's stream time. One per task, shared by operators and stores."""

    __slots__ = ("record", "time")

    def __init__(self) -> None:
        self.record: RecordContext = (None, -1, -1, -1, NO_HEADERS)
        self.time = StreamTime(lambda: self.record[3])
