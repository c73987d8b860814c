"""Memory does not grow with the size of records: batches of large ones are short, whatever they are read from."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pystreams.backfill.archive.archive import archive
from pystreams.backfill.sources import (
    BATCH_ROWS,
    CsvSource,
    EmbeddedSource,
    JsonSource,
    ParquetSource,
    Source,
)
from pystreams.backfill.sources.ranges import InputRange
from pystreams.ids import TopicPartition
from tests.backfill.live import append
from tests.backfill.sources.files_kit import in_memory, table
from tests.live.support import Log

PARTITION = TopicPartition("lines", 0)
COUNT, SIZE = 120, 500_000

#: 16 MiB, and one batch of a log that came on top.
BATCH_BYTES_MAX = 50_000_000


def parquet(folder: Path) -> Source:
    rows = [(offset, 0, None, bytes([offset]) * SIZE, ()) for offset in range(COUNT)]
    pq.write_table(table({PARTITION: rows}), folder / "all.parquet")
    return ParquetSource(str(folder))


def archived(folder: Path) -> Source:
    """Equal values, which Parquet can keep once."""
    rows = [(offset, 0, None, b"x" * SIZE, ()) for offset in range(COUNT)]
    archive(in_memory({PARTITION: rows}), ["lines"], str(folder))
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


def test_batches_of_small_records_are_short_too(tmp_path: Path) -> None:
    """What is read at once is a block of bytes, which may be very many lines."""
    count = 2 * BATCH_ROWS + 1
    csv = [f"lines,0,{offset},0" for offset in range(count)]
    (tmp_path / "all.csv").write_text("\n".join(["topic,partition,offset,timestamp", *csv]))
    line = '{"topic": "lines", "partition": 0, "timestamp": 0, "offset": '
    (tmp_path / "all.json").write_text("".join(f"{line}{offset}}}\n" for offset in range(count)))
    for source in (CsvSource(str(tmp_path)), JsonSource(str(tmp_path))):
        batches = list(source.read(InputRange(PARTITION, 0, count)))
        assert [batch.num_rows for batch in batches] == [BATCH_ROWS, BATCH_ROWS, 1]


@pytest.mark.parametrize("make", [parquet, archived, json_lines, embedded])
def test_batches_of_large_records_are_short(make, tmp_path: Path) -> None:
    batches = list(make(tmp_path).read(InputRange(PARTITION, 0, COUNT)))
    assert sum(batch.num_rows for batch in batches) == COUNT
    assert max(batch.nbytes for batch in batches) < BATCH_BYTES_MAX
