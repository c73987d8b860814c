"""Topics and stores as tables: which columns they have, which parts, and the rows of each part as Arrow batches."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from pystreams.backfill.manifest import InputRange
from pystreams.backfill.records import RECORD_SCHEMA, Arrow, pc
from pystreams.backfill.sources.source import BATCH_ROWS, Source
from pystreams.backfill.spans import COLUMNS, Spans, split
from pystreams.backfill.typed_columns import decoded, type_of
from pystreams.errors import TopicError
from pystreams.ids import TopicPartition
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import shared_resources
from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64

#: A row of a store: changelog key, value, timestamp (None: it is not known).
Shown: TypeAlias = "tuple[bytes, bytes, int | None]"

#: Before the value of a versioned store: there is one, or none.
_VALUE, _DELETED = b"\x01", b"\x00"

_MOMENT: Final = pa.timestamp("us", "UTC")
#: The end of the year 9999.
_MOMENT_MS_MAX: Final = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class Types:
    """How keys and values are read, by the names of ``typed_columns``; None: not, their bytes are there anyway."""

    key: str | None = None
    value: str | None = None

    def fields(self) -> list[Arrow]:
        """The columns ``key`` and ``value``, if there are any. Raises ``ConfigError`` for names that are not types'."""
        named = (("key", self.key), ("value", self.value))
        return [pa.field(column, type_of(name)) for column, name in named if name is not None]

    def columns(self, keys: Arrow, values: Arrow, where: str) -> list[Arrow]:
        """What is in these columns. Raises ``SerializationError``."""
        named = ((keys, self.key, "keys"), (values, self.value, "values"))
        return [decoded(data, name, f"{where}, {what}") for data, name, what in named if name is not None]


class Table(Protocol):
    """Rows in parts, which any process can read."""

    @property
    def schema(self) -> Arrow: ...

    def parts(self) -> Sequence[Any]:
        """What there is now; picklable."""
        ...

    def read(self, part: Any, folder: str | None) -> Iterator[Arrow]:
        """The rows of a part in ``schema``. ``folder`` is for temporary files (None: the machine's)."""
        ...


@dataclass(frozen=True)
class TopicTable:
    """The records of a topic: ``topic, partition, offset, timestamp, [key, value,] key_bytes, value_bytes,
    headers``. Where an archive has holes, those that are left."""

    source: Source
    topic: str
    types: Types

    @property
    def schema(self) -> Arrow:
        place = [RECORD_SCHEMA.field(name) for name in ("topic", "partition", "offset")]
        raw = [("key_bytes", pa.binary()), ("value_bytes", pa.binary()), RECORD_SCHEMA.field("headers")]
        return pa.schema([*place, ("timestamp", _MOMENT), *self.types.fields(), *raw])

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


@dataclass(frozen=True, slots=True)
class StoreColumns:
    """The columns of a store: ``partition, [window_start, | session_start, session_end,] timestamp, [key, value,]
    key_bytes, value_bytes``.

    A store of windows or sessions has their times apart from the key. The timestamp is that of the last change; null
    where the store does not keep it.
    """

    types: Types
    spans: Spans

    @property
    def schema(self) -> Arrow:
        window = [(name, _MOMENT) for name in COLUMNS[self.spans]]
        place = [pa.field("partition", pa.int32(), nullable=False), *window, ("timestamp", _MOMENT)]
        return pa.schema(
            [*place, *self.types.fields(), ("key_bytes", pa.binary()), ("value_bytes", pa.binary())]
        )

    def batches(self, entries: Iterator[Shown], partition: int, where: str) -> Iterator[Arrow]:
        """Entries (changelog key, value, timestamp) as batches."""
        while some := list(islice(entries, BATCH_ROWS)):
            yield self._batch(some, partition, where)

    def _batch(self, entries: list[Shown], partition: int, where: str) -> Arrow:
        split_keys = [split(key, self.spans, where) for key, _, _ in entries]
        keys = [key for key, _ in split_keys]
        windows = [
            moments(pa.array([times[number] for _, times in split_keys], pa.int64()))
            for number in range(len(COLUMNS[self.spans]))
        ]
        key_column = pa.array(keys, pa.binary())
        value_column = pa.array([value for _, value, _ in entries], pa.binary())
        columns = [
            pa.repeat(pa.scalar(partition, pa.int32()), len(entries)),
            *windows,
            moments(pa.array([timestamp for _, _, timestamp in entries], pa.int64())),
            *self.types.columns(key_column, value_column, where),
            key_column,
            value_column,
        ]
        return pa.record_batch(columns, schema=self.schema)


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
            if self.retention_ms and self.columns.spans:
                times = (self._time_of(key, where) for key, _, _ in compacted.entries())
                oldest = max(times, default=0) - self.retention_ms
            visible = (
                entry
                for entry in compacted.entries()
                if oldest is None or self._time_of(entry[0], where) > oldest
            )
            yield from self.columns.batches(visible, part.partition.partition, where)

    def _time_of(self, key: bytes, where: str) -> int:
        """By which an entry expires: the start of a window, the end of a session."""
        return split(key, self.columns.spans, where)[1][-1]


class Compacted:
    """The last value of each key, on the disk: memory is bounded whatever the changelog's size. With ``history_ms``,
    that of a versioned store, the value of the greatest timestamp."""

    def __init__(self, database: RocksDatabase, history_ms: int | None) -> None:
        self._database = database
        self._table = database.tables["last"]
        self._history_ms = history_ms
        self._observed_ms = -1

    def add(self, rows: Arrow) -> None:
        """Rows of a changelog, in order."""
        columns = (rows.column(name).to_pylist() for name in ("key", "value", "timestamp"))
        entries = [entry for entry in zip(*columns, strict=True) if entry[0] is not None]
        changes = self._latest(entries) if self._history_ms is not None else _last(entries)
        if changes:
            self._database.write([(self._table, changes)])

    def _latest(self, entries: list[tuple[bytes, bytes | None, int]]) -> dict[bytes, bytes | None]:
        """Deletions stay, so that what comes late is known to be late."""
        assert self._history_ms is not None
        changes: dict[bytes, bytes | None] = {}
        for key, value, timestamp in entries:
            held = changes.get(key) or self._table.get(key)
            late = timestamp < self._observed_ms - self._history_ms
            if not late and (held is None or unpack_int64(held)[0] <= timestamp):
                changes[key] = pack_int64(timestamp) + (_DELETED if value is None else _VALUE + value)
            self._observed_ms = max(self._observed_ms, timestamp)
        return changes

    def entries(self) -> Iterator[Shown]:
        """Key, value, timestamp, sorted by key."""
        value_from = TIMESTAMP_BYTES + (0 if self._history_ms is None else len(_VALUE))
        for key, raw in self._table.scan(None, None, upper_inclusive=False, reverse=False):
            if self._history_ms is None or raw[TIMESTAMP_BYTES:] != _DELETED:
                yield key, raw[value_from:], int(unpack_int64(raw)[0])


def _last(entries: list[tuple[bytes, bytes | None, int]]) -> dict[bytes, bytes | None]:
    return {
        key: None if value is None else pack_int64(timestamp) + value for key, value, timestamp in entries
    }


@contextmanager
def compacted_in(folder: str | None, history_ms: int | None = None) -> Iterator[Compacted]:
    """A ``Compacted`` in a temporary folder in ``folder`` (None: the machine's)."""
    path = Path(tempfile.mkdtemp(prefix="pystreams-table-", dir=folder))
    try:
        with closing(RocksDatabase(path / "rocksdb", ["last"], shared_resources())) as database:
            yield Compacted(database, history_ms)
    finally:
        shutil.rmtree(path)


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
    """A range without what the source knows to have lost."""
    start = whole.start
    for lost_start, lost_end in source.missing(whole):
        if start < lost_start:
            yield InputRange(whole.partition, start, lost_start)
        start = lost_end
    if start < whole.end:
        yield InputRange(whole.partition, start, whole.end)


def moments(times_ms: Arrow) -> Arrow:
    """Milliseconds as moments, which SQL can work with; null for those past all years that SQL knows."""
    known = pc.less_equal(pc.abs(times_ms), _MOMENT_MS_MAX)
    return pc.multiply(pc.if_else(known, times_ms, None), 1000).cast(_MOMENT)
