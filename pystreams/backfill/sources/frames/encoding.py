"""Rows of a DataFrame as records: their place, their timestamp, and keys and values in the bytes of the topic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

import pyarrow as pa

from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.frames.columns import Columns, Content, match
from pystreams.backfill.sources.frames.source import DataFrameSource
from pystreams.engine.node_defaults import serdes_of
from pystreams.errors import SerializationError, TopologyError
from pystreams.partitioning import partition_for_key
from pystreams.serde import AnySerde
from pystreams.serde.content import writing

#: The columns of encoded rows. ``offset`` is null where the table has none, as are all four where a row has none.
ENCODED_SCHEMA: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
PLACES: Final = ("partition", "offset", "timestamp")
#: A column beside the places: for each of the columns that a value needs, whether it is null.
LACKING: Final = "__pystreams_lacking"

_TIME: Final = Struct(">q")


def serdes_of_topic(loaded: LoadedApplication, topic: str) -> tuple[AnySerde, AnySerde]:
    """The serdes with which an application reads a topic. Raises ``TopologyError`` if it does not read it by name."""
    for sub in loaded.built.subtopologies:
        source = sub.source_for(topic)
        if source is not None:
            return serdes_of(source, loaded.config)
    raise TopologyError(f"application {loaded.built.application_id} does not read topic {topic}")


class RowEncoder:
    """Encodes the rows of one topic. ``partitions`` is the number of its partitions."""

    def __init__(
        self,
        source: DataFrameSource,
        schema: Arrow,
        loaded: LoadedApplication,
        topic: str,
        partitions: int,
        where: str,
    ) -> None:
        serdes = serdes_of_topic(loaded, topic)
        self._source = source
        self._topic = topic
        self._where = where
        self._partitions = partitions
        self._columns: Columns = match(source, schema, serdes, topic, where)
        self._write_key = writing(serdes[0], topic, "key")
        self._write_value = writing(serdes[1], topic, "value")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys((*self.place_columns, *self._columns.value.columns)))

    @property
    def place_columns(self) -> tuple[str, ...]:
        """The columns that the place of a record depends on."""
        source, key = self._source, self._columns.key
        places = (source.timestamp, source.partition, source.offset)
        return tuple(dict.fromkeys((*filter(None, places), *(key.columns if key else ()))))

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """The columns in which a null cannot become a value."""
        return self._columns.value.needed

    def places(self, batch: Arrow) -> Arrow:
        """Partition, offset and timestamp of each row, in the first three columns of ``ENCODED_SCHEMA``; and
        ``LACKING``, if the rows have it."""
        times = _milliseconds(batch.column(self._source.timestamp))
        columns = [self._partition_column(batch, times, self._keys(batch)), self._offsets(batch), times]
        schema = pa.schema([ENCODED_SCHEMA.field(name) for name in PLACES])
        if LACKING in batch.schema.names:
            columns.append(batch.column(LACKING))
            schema = schema.append(batch.schema.field(LACKING))
        return pa.record_batch(columns, schema=schema)

    def records(self, batch: Arrow) -> Arrow:
        """The rows in ``ENCODED_SCHEMA``."""
        times = _milliseconds(batch.column(self._source.timestamp))
        keys = self._keys(batch)
        values = self._contents(self._columns.value, batch, self._write_value, "value")
        columns = [
            self._partition_column(batch, times, keys),
            self._offsets(batch),
            times,
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
        ]
        return pa.record_batch(columns, schema=ENCODED_SCHEMA)

    def _keys(self, batch: Arrow) -> list[bytes | None]:
        key = self._columns.key
        if key is None:
            return [None] * batch.num_rows
        return self._contents(key, batch, self._write_key, "key")

    def _offsets(self, batch: Arrow) -> Arrow:
        name = self._source.offset
        return pa.nulls(batch.num_rows, pa.int64()) if name is None else batch.column(name).cast(pa.int64())

    def _partition_column(self, batch: Arrow, times: Arrow, keys: list[bytes | None]) -> Arrow:
        if self._source.partition is not None:
            return batch.column(self._source.partition).cast(pa.int32())
        count = self._partitions
        if None not in keys:
            return pa.array([partition_for_key(key, count) for key in keys if key is not None], pa.int32())
        # Without a key live producers choose any partition. By its timestamp it is the same one each time.
        found = [
            partition_for_key(_TIME.pack(time or 0) if key is None else key, count)
            for key, time in zip(keys, times.to_pylist(), strict=True)
        ]
        return pa.array(found, pa.int32())

    def _contents(
        self, content: Content, batch: Arrow, write: Callable[[Any], bytes | None], what: str
    ) -> list[bytes | None]:
        if content.raw:
            raw: list[bytes | None] = batch.column(content.columns[0]).to_pylist()
            return raw
        if content.single:
            plain = batch.column(content.columns[0]).to_pylist()
        else:
            plain = batch.select(list(content.columns)).to_pylist()
        adapt, make = content.adapt, content.make
        if adapt is not None:
            plain = [None if value is None else adapt(value) for value in plain]
        if make is not None:
            plain = [None if value is None else self._made(make, value, what) for value in plain]
        return [write(value) for value in plain]

    def _made(self, make: Callable[[Any], Any], value: Any, what: str) -> Any:
        try:
            return make(value)
        except Exception as error:
            raise SerializationError(
                f"a row cannot be made a {what} of topic {self._topic}",
                where=self._where,
                why=str(error),
                hint="leave such rows out of the DataFrame, or correct them there",
            ) from error


@dataclass(frozen=True, slots=True)
class EncoderOf:
    """Makes the same encoder in every process. ``source`` is without its DataFrame; for the other arguments see
    ``RowEncoder``."""

    source: DataFrameSource
    schema: Arrow
    topic: str
    partitions: int
    where: str

    def __call__(self, loaded: LoadedApplication) -> RowEncoder:
        """Raises ``ConfigError`` for columns that do not fit."""
        return RowEncoder(self.source, self.schema, loaded, self.topic, self.partitions, self.where)


def _milliseconds(column: Arrow) -> Arrow:
    """Timestamps in ms; those without a time zone are UTC."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz=column.type.tz), safe=False)
    return column.cast(pa.int64())
