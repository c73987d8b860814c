"""A table: its columns, its parts, and the rows of each part as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow, pc
from pystreams.backfill.sources.source import BATCH_ROWS
from pystreams.backfill.tables.key_spans import COLUMNS, Spans, split
from pystreams.backfill.tables.typed_columns import decoded, type_of

#: A row of a store: changelog key, value, timestamp (None: it is not known).
StoreRow: TypeAlias = "tuple[bytes, bytes, int | None]"

#: Arrow's type of a time that SQL can work with.
MOMENT: Final = pa.timestamp("us", "UTC")
#: The end of the year 9999.
_MOMENT_MS_MAX: Final = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """How keys and values are read, by the names of ``typed_columns``; None: not, their bytes are there anyway."""

    key: str | None = None
    value: str | None = None

    def fields(self) -> list[Arrow]:
        """The columns ``key`` and ``value``, if there are any. Raises ``ConfigError`` for names that are not types'."""
        named = (("key", self.key), ("value", self.value))
        return [pa.field(column, type_of(name)) for column, name in named if name is not None]

    def columns(self, keys: Arrow, values: Arrow, where: str) -> list[Arrow]:
        """The values of these columns. Raises ``SerializationError``."""
        named = ((keys, self.key, "keys"), (values, self.value, "values"))
        return [decoded(data, name, f"{where}, {what}") for data, name, what in named if name is not None]


class Table(Protocol):
    """Rows in parts, which any process can read."""

    @property
    def schema(self) -> Arrow: ...

    def parts(self) -> Sequence[Any]:
        """The parts that exist now; picklable."""
        ...

    def read(self, part: Any, folder: str | None) -> Iterator[Arrow]:
        """The rows of a part in ``schema``. ``folder`` is for temporary files (None: the machine's)."""
        ...


@dataclass(frozen=True, slots=True)
class StoreColumns:
    """The columns of a store: ``partition, [window_start, | session_start, session_end,] timestamp, [key, value,]
    key_bytes, value_bytes``.

    A store of windows or sessions has their times apart from the key. The timestamp is that of the last change; null
    where the store does not keep it.
    """

    types: ColumnTypes
    spans: Spans

    @property
    def schema(self) -> Arrow:
        window = [(name, MOMENT) for name in COLUMNS[self.spans]]
        place = [pa.field("partition", pa.int32(), nullable=False), *window, ("timestamp", MOMENT)]
        return pa.schema(
            [*place, *self.types.fields(), ("key_bytes", pa.binary()), ("value_bytes", pa.binary())]
        )

    def batches(self, entries: Iterator[StoreRow], partition: int, where: str) -> Iterator[Arrow]:
        """Entries (changelog key, value, timestamp) as batches."""
        while some := list(islice(entries, BATCH_ROWS)):
            yield self._batch(some, partition, where)

    def _batch(self, entries: list[StoreRow], partition: int, where: str) -> Arrow:
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


def moments(times_ms: Arrow) -> Arrow:
    """Milliseconds as moments, which SQL can work with; null for those past all years that SQL knows."""
    known = pc.less_equal(pc.abs(times_ms), _MOMENT_MS_MAX)
    return pc.multiply(pc.if_else(known, times_ms, None), 1000).cast(MOMENT)
