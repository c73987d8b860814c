"""The columns of a store: the same for a backfill's result, a changelog, a state directory and a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

import pyarrow as pa

from pystreams.backfill.application import Application
from pystreams.backfill.columns.key_spans import Spans, spans_of
from pystreams.backfill.columns.parts import Parts, store_of
from pystreams.backfill.columns.typed import MOMENT, moments
from pystreams.backfill.exchange.rows import Arrow, repeated
from pystreams.backfill.sources import BATCH_ROWS
from pystreams.state.value_forms import headers_apart

#: A row of a store: changelog key, value, timestamp (None: it is not known).
StoreRow: TypeAlias = "tuple[bytes, bytes, int | None]"


@dataclass(frozen=True, slots=True)
class StoreColumns:
    """``[key,] [window_start, window_end, | session_start, session_end,] [value,] timestamp, partition
    [, key_bytes, value_bytes]``. Picklable.

    A store of windows or sessions has their times apart from the key. The timestamp is that of the last change; null
    where the store does not keep it. ``raw``: with the bytes.
    """

    parts: Parts = field(default_factory=Parts)
    spans: Spans = field(default_factory=Spans)
    raw: bool = True

    @classmethod
    def of(cls, application: Application, store: str, *, raw: bool) -> StoreColumns:
        """Those of an application's store."""
        spec = store_of(application.load(), store)
        return cls(Parts.of(application, "store", store), spans_of(spec.kind, spec.window_size_ms), raw)

    @property
    def schema(self) -> Arrow:
        named = {one.name: one for one in self.parts.fields()}
        place = [("timestamp", MOMENT), pa.field("partition", pa.int32(), nullable=False)]
        raw = [("key_bytes", pa.binary()), ("value_bytes", pa.binary())] if self.raw else []
        key, value = ([named[name]] if name in named else [] for name in ("key", "value"))
        return pa.schema([*key, *self.spans.fields, *value, *place, *raw])

    def batches(self, entries: Iterable[StoreRow], partition: int, where: str) -> Iterator[Arrow]:
        """Entries (changelog key, value, timestamp) as batches."""
        rest = iter(entries)
        while some := list(islice(rest, BATCH_ROWS)):
            keys, values, times = zip(*some, strict=True)
            yield self.batch(
                pa.array(keys, pa.binary()),
                pa.array(values, pa.binary()),
                pa.array(times, pa.int64()),
                partition,
                where,
            )

    def batch(self, keys: Arrow, values: Arrow, times_ms: Arrow, partition: int, where: str) -> Arrow:
        """Entries as columns of changelog keys, values and timestamps. Raises ``SerializationError``."""
        record_keys, times = self.spans.columns(keys, where)
        schema = self.schema
        found = dict(zip((one.name for one in self.spans.fields), times, strict=True))
        named = (one.name for one in self.parts.fields())
        found |= dict(zip(named, self.parts.columns(record_keys, values, where), strict=True))
        found |= {
            "timestamp": moments(times_ms),
            "partition": repeated(partition, pa.int32(), len(keys)),
            "key_bytes": record_keys,
            "value_bytes": values,
        }
        return pa.record_batch([found[name] for name in schema.names], schema=schema)


def without_headers(entries: Iterable[StoreRow]) -> Iterator[StoreRow]:
    """The entries of a store that keeps headers before its values."""
    return ((key, headers_apart(both)[1], timestamp) for key, both, timestamp in entries)
