"""Entries of a store as its changelog has them: as rows, from rows, and in the order of time.

That order is made in memory as long as entries are few, else by way of sorted files.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pystreams.backfill.exchange.rows import (
    NO_UPSTREAM,
    QUEUE_TIME,
    Arrow,
    Kind,
    exchange_rows,
    headers_column,
    repeated,
)
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import shared_resources
from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64
from pystreams.state.sorted_files import SORTED_BYTES, SortedFiles

#: Changelog key, value (None deletes), timestamp.
StoreEntry: TypeAlias = "tuple[bytes, bytes | None, int]"

_TABLE: Final = "entries"
#: The memory that Python needs for an entry beside its bytes.
_ENTRY_BYTES: Final = 200
#: Before a value: there is one, or none.
_VALUE, _DELETED = b"\x00", b"\x01"
#: Behind a key: the number of the entry.
_NUMBER_BYTES: Final = 8


def store_rows(
    store: str,
    partition: int,
    entries: Sequence[StoreEntry],
    *,
    upstream: int = NO_UPSTREAM,
    start: int = 0,
) -> Arrow:
    """Entries of a store partition in ``EXCHANGE_SCHEMA``, numbered from ``start`` on."""
    keys, values, timestamps = zip(*entries, strict=True)
    size = len(entries)
    return exchange_rows(
        Kind.STATE,
        repeated(store, pa.string(), size),
        repeated(partition, pa.int32(), size),
        repeated(QUEUE_TIME[Kind.STATE], pa.int64(), size),
        upstream,
        pa.array(range(start, start + size), pa.int64()),
        (
            pa.array(timestamps, pa.int64()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            headers_column(None, size),
        ),
    )


def entries_of(rows: Arrow) -> Iterator[tuple[Any, Any, int]]:
    """Key, value (each None where the row has none) and timestamp of each row."""
    columns = (rows.column(name).to_pylist() for name in ("key", "value", "timestamp"))
    return zip(*columns, strict=True)


def by_time(
    entries: Iterable[StoreEntry], folder: Path, max_bytes: int = SORTED_BYTES
) -> Iterator[StoreEntry]:
    """The entries sorted by time and key, equal ones as they came. If they take more than ``max_bytes``, they wait in
    ``folder``."""
    rest, first, size = iter(entries), list[StoreEntry](), 0
    for entry in rest:
        first.append(entry)
        size += _ENTRY_BYTES + len(entry[0]) + len(entry[1] or b"")
        if size > max_bytes:
            return _on_disk(chain(first, rest), folder)
    first.sort(key=lambda entry: (entry[2], entry[0]))
    return iter(first)


def _on_disk(entries: Iterable[StoreEntry], parent: Path) -> Iterator[StoreEntry]:
    folder = Path(tempfile.mkdtemp(prefix="by-time-", dir=parent))
    try:
        files = SortedFiles(folder, _TABLE)
        for number, (key, value, timestamp) in enumerate(entries):
            place = pack_int64(timestamp) + key + pack_int64(number)
            files.add(place, _DELETED if value is None else _VALUE + value)
        with closing(RocksDatabase(folder / "rocksdb", [_TABLE], shared_resources())) as database:
            table = database.tables[_TABLE]
            table.ingest(files.finish())
            for place, stored in table.scan(None, None, upper_inclusive=False, reverse=False):
                value = None if stored == _DELETED else stored[len(_VALUE) :]
                yield place[TIMESTAMP_BYTES:-_NUMBER_BYTES], value, unpack_int64(place)[0]
    finally:
        shutil.rmtree(folder)
