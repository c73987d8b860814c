"""A job of pystreams over the archive: on Spark, in two processes (MASTER ``processes``), or in this one (``none``).

python -m tests.benchmarks.backfill.backfilled wordcount ARCHIVE OUTPUT even MASTER STAGING
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pystreams import backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.executor import Executor
from pystreams.backfill.sources import ParquetSource
from tests.benchmarks.backfill.tables import write_rows
from tests.benchmarks.backfill.timing import told
from tests.benchmarks.kafka.jobs import OUTPUT

#: The live runs commit once a second, which is about so many records of a task: words, and amounts. Where most records
#: are in one partition, its task has a worker for itself.
COMMIT_RECORDS = {
    ("wordcount", "even"): 95_000,
    ("wordcount", "skewed"): 250_000,
    ("windows", "even"): 110_000,
    ("windows", "skewed"): 330_000,
    ("declared", "even"): 110_000,
    ("declared", "skewed"): 330_000,
}
CACHE_BYTES = 5 << 20

_INT64 = struct.Struct(">q")


def main() -> None:
    """Run one job, and tell how long that took from its first records on."""
    job, archive, output, spread, master, staging = sys.argv[1:]
    with _executor(master) as executor:
        with told() as work:
            result = backfill.backfill(
                f"tests.benchmarks.kafka.jobs:{job}",
                sources=ParquetSource(archive),
                staging=staging,
                executor=executor,
                settings={"statestore_cache_max_bytes": CACHE_BYTES},
                commit_records=COMMIT_RECORDS[job, spread],
                progress=lambda told: work.seen() if told.records else None,
            )
        write_rows(Path(output), _last_values(result).items())


@contextmanager
def _executor(master: str) -> Iterator[Executor | None]:
    if master == "none":
        yield None
        return
    if master == "processes":
        yield backfill.ProcessExecutor(processes=2)
        return
    from pystreams.backfill import SparkExecutor, spark_session

    with spark_session(master, app_name="bench-pystreams", conf={"spark.driver.memory": "1g"}) as session:
        yield SparkExecutor(session)


def _last_values(result: BackfillResult) -> dict[bytes, int]:
    """The last value of each key among the records for the output topic, as a live run's are read."""
    table: dict[bytes, int] = {}
    for key, value in _records(result):
        table[key] = _INT64.unpack(value)[0]
    return table


def _records(result: BackfillResult) -> Iterator[tuple[bytes, bytes]]:
    selection = result.sink_rows(OUTPUT)
    for partition in range(selection.partitions):
        for rows in result.rows(selection, partition):
            yield from zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True)


if __name__ == "__main__":
    main()
