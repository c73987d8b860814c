"""What a run has computed, boiled down: every peer must come to the same."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.exchange.task_outcome import Digest

_INT64 = struct.Struct(">q")


@dataclass(frozen=True)
class Table:
    """A result: counts by word, or sums by account and window (the key is followed by the window's start, 8 bytes)."""

    rows: int
    total: int
    digest: str


def window_key(key: bytes, start_ms: int) -> bytes:
    """The key of a window's sum."""
    return key + _INT64.pack(start_ms)


def boil_down(rows: Iterable[tuple[bytes, int]]) -> Table:
    """A result from its rows (key, value)."""
    digest, total = Digest(), 0
    for key, value in rows:
        digest.add(key, _INT64.pack(value), 0)
        total += value
    return Table(digest.entries, total, digest.hex)


def write_rows(path: Path, rows: Iterable[tuple[bytes, int]]) -> None:
    """Leave the rows of a result where the bench finds them."""
    keys, values = zip(*rows, strict=True)
    columns = [pa.array(keys, pa.binary()), pa.array(values, pa.int64())]
    pq.write_table(pa.table(columns, names=["key", "value"]), path)


def read_rows(path: Path) -> Table:
    """What ``write_rows`` left, or a folder of Parquet files with its columns."""
    found: Any = pq.read_table(path, columns=["key", "value"])
    columns = [found.column(name).to_pylist() for name in ("key", "value")]
    return boil_down(zip(*columns, strict=True))
