"""However many records a partition has, its worker holds a few batches of them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pystreams import App
from pystreams.backfill import ParquetSource, backfill
from pystreams.backfill.exchange.rows import RECORD_SCHEMA, counted, headers_column, repeated
from pystreams.backfill.spark.executor import SparkExecutor

VALUE_BYTES = 500
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def archive(folder: Path, records: int) -> ParquetSource:
    """Nine tenths of the records are on the first of two partitions."""
    folder.mkdir()
    for partition, size in enumerate((records * 9 // 10, records // 10)):
        writer = pq.ParquetWriter(folder / f"{partition}.parquet", RECORD_SCHEMA)
        for start in range(0, size, 10_000):
            rows = min(10_000, size - start)
            values = [os.urandom(VALUE_BYTES // 2).hex().encode() for _ in range(rows)]
            columns = [
                repeated("in", pa.string(), rows),
                repeated(partition, pa.int32(), rows),
                counted(start, rows),
                counted(start, rows),
                pa.array([b"k%d" % (number % 9) for number in range(rows)], pa.binary()),
                pa.array(values, pa.binary()),
                headers_column(None, rows),
            ]
            writer.write_batch(pa.record_batch(columns, schema=RECORD_SCHEMA))
        writer.close()
    return ParquetSource(str(folder))


def skewed(folder: Path) -> App:
    """Everything goes on to one partition, too. Each slice's workers write down how large they have become."""

    def weighed(where: str) -> object:
        processed = 0

        def weigh(value: str) -> None:
            nonlocal processed
            processed += 1
            if processed % 1_000 == 0:
                pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
                with (folder / f"{where}-{os.getpid()}").open("a", encoding="ascii") as file:
                    file.write(f"{pages * PAGE_BYTES}\n")

        return weigh

    app = App("skewed")
    moved = app.stream("in", key=str, value=str).peek(weighed("first")).select_key(lambda key, value: "all")
    moved.repartition(name="moved", key=str, value=str).peek(weighed("second")).group_by_key().count(
        name="counts"
    )
    return app


@pytest.mark.slow
def test_a_worker_stays_as_large_as_it_was_after_half_of_its_records(
    tmp_path: Path, executor: SparkExecutor
) -> None:
    records = 240_000
    result = backfill(
        skewed(tmp_path),
        sources=archive(tmp_path / "archive", records),
        staging=tmp_path / "staging",
        executor=executor,
    )
    assert [one.records for one in result.manifest.slices.values()] == [records, records]
    for where in ("first", "second"):
        # The worker of the large partition has weighed itself most often.
        sizes = max(
            ([int(line) for line in path.read_text().split()] for path in tmp_path.glob(f"{where}-*")),
            key=len,
        )
        # By then all buffers have been full once. Arrow's allocator keeps some MB more or less; a reader that kept what
        # it had read made workers grow by two thirds of these bytes.
        half = len(sizes) // 2
        growth = max(sizes[half:]) - max(sizes[:half])
        processed = half * 1_000 * VALUE_BYTES
        assert growth < processed / 2, f"{where}: by {growth / 1e6:.0f} MB, records {processed / 1e6:.0f} MB"
