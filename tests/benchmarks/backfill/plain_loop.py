"""The jobs without a library: one process, a loop over the archive, a dictionary.

    python -m tests.benchmarks.backfill.plain_loop wordcount ARCHIVE OUTPUT

What it has is what a backfill cannot be faster than on one core with state in memory: no state on disk, no order among
partitions, no changelog, no restart, no result on the way.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from tests.benchmarks.backfill.tables import window_key, write_rows
from tests.benchmarks.backfill.timing import told

WINDOW_MS = 60_000


def word_count(files: Iterable[Path]) -> dict[bytes, int]:
    """Counts by word."""
    counts: Counter[str] = Counter()
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(10_000, columns=["value"]):
                for line in batch.column("value").to_pylist():
                    for word in line.decode().split():
                        counts[word] += 1
    return {word.encode(): count for word, count in counts.items()}


def windowed_sum(files: Iterable[Path]) -> dict[bytes, int]:
    """Sums by account and minute."""
    sums: dict[tuple[bytes, int], int] = {}
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(10_000, columns=["key", "value", "timestamp"]):
                columns = [batch.column(name).to_pylist() for name in ("key", "value", "timestamp")]
                for key, value, timestamp in zip(*columns, strict=True):
                    at = key, timestamp - timestamp % WINDOW_MS
                    sums[at] = sums.get(at, 0) + int.from_bytes(value, "big")
    return {window_key(key, start): total for (key, start), total in sums.items()}


def main() -> None:
    """Run one job, and tell how long that took."""
    job, archive, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    with told():
        found = (word_count if job == "wordcount" else windowed_sum)(sorted(archive.glob("*.parquet")))
    write_rows(output, found.items())


if __name__ == "__main__":
    main()
