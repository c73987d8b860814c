"""An archive in Parquet gives what the log gives; a cut is made by time, by offsets, or of all there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, record_rows
from pystreams.backfill.plan.cut import cut
from pystreams.backfill.sources import MemorySource, ParquetSource
from pystreams.backfill.sources.ranges import InputRange
from pystreams.errors import ConfigError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from tests.backfill.kit import Backfill, everything, lines, memory
from tests.backfill.programs import history, windowed_sum

PARTITION = TopicPartition("amounts", 0)


def archive(source: MemorySource, folder: Path) -> ParquetSource:
    """Both partitions of a topic in one file, in ranges of 50 offsets."""
    folder.mkdir()
    rows = pa.Table.from_batches(
        [record_rows(b) for of in source.batches.values() for b in of], RECORD_SCHEMA
    )
    for topic in source.counts:
        for start in range(0, 200, 50):
            chosen = (pc.field("topic") == topic) & (pc.field("offset") >= start)
            part = rows.filter(chosen & (pc.field("offset") < start + 50))
            # Names that sort against the offsets.
            pq.write_table(part, folder / f"{topic}-{900 - start}.parquet", row_group_size=7)
    return ParquetSource(str(folder))


def test_an_archive_gives_what_the_records_give(tmp_path: Path) -> None:
    source = memory(history("windowed sum", 2, 2))
    stored = archive(source, tmp_path / "archive")
    for until in (None, 150, {PARTITION: 17}):
        found = Backfill(windowed_sum(), stored, tmp_path / f"a-{until}", until=until)
        expected = Backfill(windowed_sum(), source, tmp_path / f"m-{until}", until=until)
        assert replace(found.manifest, backfill_id="") == replace(expected.manifest, backfill_id="")
        assert everything(found.run()) == everything(expected.run())


def test_records_out_of_order_are_refused(tmp_path: Path) -> None:
    source = memory(history("windowed sum", 2, 2))
    stored = archive(source, tmp_path / "archive")
    rows = record_rows(source.batches[PARTITION][0])
    pq.write_table(pa.Table.from_batches([rows.slice(10, 5)]), tmp_path / "archive" / "again.parquet")
    with pytest.raises(ConfigError, match="amounts-0 are not in order"):
        list(stored.read(InputRange(PARTITION, 0, 100)))


def test_an_empty_folder_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Parquet file"):
        ParquetSource(str(tmp_path)).partitions()


@pytest.mark.parametrize("until, ends", [(None, (5, 4)), (20, (1, 1)), (9, (0, 1)), ({PARTITION: 3}, (3, 4))])
def test_a_cut_by_time_ends_before_the_first_record_of_that_time(
    until: Any, ends: Any, tmp_path: Path
) -> None:
    past = {
        "amounts": [
            lines([("a", 1, t) for t in (10, 30, 15, 40, 50)]),
            lines([("b", 1, t) for t in (5, 20, 1, 2)]),
        ]
    }
    manifest = Backfill(
        windowed_sum(), memory(past, {"names": 2}), tmp_path / "staging", until=until
    ).manifest
    assert tuple(input.end for input in manifest.inputs if input.partition.topic == "amounts") == ends


def test_a_log_that_grows_while_it_is_cut_ends_where_it_ended(tmp_path: Path) -> None:
    class Growing(MemorySource):
        def offsets_at(self, partitions: Any, time_ms: int) -> Any:
            return {p: offset + 7 for p, offset in super().offsets_at(partitions, time_ms).items()}

    source = memory(history("windowed sum", 2, 2))
    growing = Growing(source.counts, source.batches)
    manifest = Backfill(windowed_sum(), growing, tmp_path / "staging", until=1 << 60).manifest
    assert manifest.end_of(PARTITION) == source.ends([PARTITION])[PARTITION]


def test_a_cut_past_the_end_is_refused(tmp_path: Path) -> None:
    source = memory(history("windowed sum", 2, 2))
    with pytest.raises(OffsetOutOfRangeError, match="cut of amounts-0 is at offset 1000"):
        Backfill(windowed_sum(), source, tmp_path / "staging", until={PARTITION: 1000})


def test_an_end_of_something_else_is_refused(tmp_path: Path) -> None:
    source = memory(history("windowed sum", 2, 2))
    with pytest.raises(ConfigError, match="does not read amonts-0"):
        Backfill(windowed_sum(), source, tmp_path / "staging", until={TopicPartition("amonts", 0): 3})


def test_going_on_needs_a_source_that_has_come_as_far(tmp_path: Path) -> None:
    source = memory(history("windowed sum", 2, 2))
    planned = Backfill(windowed_sum(), source, tmp_path / "staging")
    ends = source.ends([PARTITION])
    found = cut(planned.plan, planned.loaded.config, source, starts=ends)
    assert InputRange(PARTITION, ends[PARTITION], ends[PARTITION]) in found.inputs
    with pytest.raises(OffsetOutOfRangeError, match="ends before the earlier backfill did"):
        cut(planned.plan, planned.loaded.config, source, starts={PARTITION: ends[PARTITION] + 1})


def test_a_hole_in_an_archive_is_refused_by_the_cut(tmp_path: Path) -> None:
    class Holed(MemorySource):
        def missing(self, input: InputRange) -> list[tuple[int, int]]:
            return [(5, 7)] if input.partition == PARTITION and input.end > 5 else []

    source = memory(history("windowed sum", 2, 2))
    holed = Holed(source.counts, source.batches)
    with pytest.raises(OffsetOutOfRangeError, match="lacks records of amounts-0") as raised:
        Backfill(windowed_sum(), holed, tmp_path / "staging")
    assert "offsets 5 to 7" in raised.value.why
    assert (
        Backfill(windowed_sum(), holed, tmp_path / "staging", until={PARTITION: 5}).manifest.end_of(PARTITION)
        == 5
    )
