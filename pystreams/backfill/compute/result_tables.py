"""Stores and records of a result as tables: from staged rows to typed columns, where the executor runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from pystreams.backfill.columns.compacted import compacted_in
from pystreams.backfill.columns.record_columns import RecordColumns
from pystreams.backfill.columns.store_columns import StoreColumns, without_headers
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.local_disks import local_folder
from pystreams.state.value_forms import headers_apart


@dataclass(frozen=True, slots=True)
class StoreRows:
    """An ``executor.TableFunction``: the entries of a store partition; of a versioned store the latest versions."""

    store: str
    columns: StoreColumns
    headers: bool
    versioned: bool

    @property
    def schema(self) -> Arrow:
        return self.columns.schema

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        if self.versioned:
            yield from self._latest(batches)
            return
        for rows in batches:
            partition = _partition_of(rows)
            keys, values, times = (rows.column(name) for name in ("key", "value", "timestamp"))
            if self.headers:
                values = pa.array([headers_apart(both)[1] for both in values.to_pylist()], pa.binary())
            yield self.columns.batch(keys, values, times, partition, self._where(partition))

    def _latest(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        """Versions come in the order of time: the last one of a key is its latest."""
        partition = None
        with compacted_in(local_folder(0)) as compacted:
            for rows in batches:
                partition = _partition_of(rows)
                compacted.add(rows)
            if partition is not None:
                entries = compacted.entries()
                shown = without_headers(entries) if self.headers else entries
                yield from self.columns.batches(shown, partition, self._where(partition))

    def _where(self, partition: int) -> str:
        return f"store {self.store}, partition {partition}"


@dataclass(frozen=True, slots=True)
class EmittedRows:
    """An ``executor.TableFunction``: the records for a partition of a topic, with offsets from 0 on."""

    topic: str
    columns: RecordColumns

    @property
    def schema(self) -> Arrow:
        return self.columns.schema

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        offset = 0
        for rows in batches:
            partition = _partition_of(rows)
            where = f"records for {self.topic}-{partition} from number {offset} on"
            yield self.columns.batch(rows, partition, offset, where)
            offset += rows.num_rows


def _partition_of(rows: Arrow) -> int:
    partition: int = rows.column("partition")[0].as_py()
    return partition
