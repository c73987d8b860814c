"""Memory does not grow with the size of records: batches of large ones are short, whatever they are read from."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pystreams.backfill.manifest import InputRange
from pystreams.backfill.sources import EmbeddedSource, JsonSource, ParquetSource, Source
from pystreams.ids import TopicPartition
from tests.backfill.live import append
from tests.backfill.sources.files_kit import table
from tests.live.support import Log

PARTITION = TopicPartition("lines", 0)
COUNT, SIZE = 120, 500_000

#: 16 MiB, and one batch of a log that came on top.
BATCH_BYTES_MAX = 50_000_000


def parquet(folder: Path) -> Source:
    rows = [(offset, 0, None, bytes([offset]) * SIZE, ()) for offset in range(COUNT)]
    pq.write_table(table({PARTITION: rows}), folder / "all.parquet")
    return ParquetSource(str(folder))


def json_lines(folder: Path) -> Source:
    with (folder / "all.json").open("w") as file:
        for offset in range(COUNT):
            line = {"topic": "lines", "partition": 0, "offset": offset, "timestamp": 0, "value": "x" * SIZE}
            file.write(json.dumps(line) + "\n")
    return JsonSource(str(folder))


def embedded(folder: Path) -> Source:
    log = Log(folder)
    log.create("lines")
    for _ in range(COUNT // 10):
        append(log, {"lines": [[(None, b"x" * SIZE, 0, ())] * 10]})
    log.close()
    return EmbeddedSource(str(folder / "log.db"))


@pytest.mark.parametrize("make", [parquet, json_lines, embedded])
def test_batches_of_large_records_are_short(make, tmp_path: Path) -> None:
    batches = list(make(tmp_path).read(InputRange(PARTITION, 0, COUNT)))
    assert sum(batch.num_rows for batch in batches) == COUNT
    assert max(batch.nbytes for batch in batches) < BATCH_BYTES_MAX
