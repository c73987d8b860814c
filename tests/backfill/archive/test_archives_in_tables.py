"""An archive in a table of Delta Lake or Iceberg has each record once, for backfills and for every other reader,
whoever dies or compacts it; its small files are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pystreams.backfill.archive.archive import InlineArchiver, archive
from pystreams.backfill.archive.delta_target import DeltaTarget
from pystreams.backfill.sources import DeltaArchive, IcebergArchive
from pystreams.backfill.sources.lake.source import LakeArchive
from pystreams.backfill.sources.ranges import InputRange
from pystreams.errors import ConfigError, OffsetOutOfRangeError, StateError, TopicError
from pystreams.ids import TopicPartition
from tests.backfill.archive.kit import (
    FILES_MIN,
    ONE,
    OTHER,
    Killed,
    die_at,
    from_its_merge_on,
    history,
    rows,
)
from tests.backfill.archive.lakes import KINDS, Iceberg, Lake
from tests.backfill.sources.files_kit import Rows, in_memory, read
from tests.examples import chosen

pytestmark = pytest.mark.usefixtures("few_files_are_merged")


def test_each_run_adds_what_is_new(lake: Lake) -> None:
    for count in (0, 10, 10, 31, 32):
        result = archive(history(count), ["lines"], lake.target(), file_offsets_max=7)
        assert dict(lake.source().partitions()) == {"lines": 2}
        for partition in (ONE, OTHER):
            expected = rows(count, partition=partition)
            assert lake.archived(partition) == expected
            assert lake.offsets(partition) == [row[0] for row in expected]
    assert (result.records, result.files) == (2, 2)


def test_other_readers_find_a_table_with_typed_columns(lake: Lake) -> None:
    archive(history(4), ["lines"], lake.target())
    found = lake.in_table()
    assert set(found.schema.names) == {"topic", "partition", "offset", "timestamp", "key", "value", "headers"}
    [row] = [row for row in found.to_pylist() if row["offset"] == 3 and row["partition"] == 1]
    assert row == {
        "topic": "lines",
        "partition": 1,
        "offset": 3,
        "timestamp": 1003,
        "key": b"k1",
        "value": b"v3",
        "headers": [{"name": "h", "value": b"x"}],
    }


@pytest.mark.parametrize(
    ("new", "after"),
    # What is there before an operation was there after the one before it.
    chosen(product(KINDS, [False, True]), lambda case: case != ("iceberg", False)),
    indirect=["new"],
)
def test_a_run_that_dies_at_any_moment_leaves_nothing_double(new: Callable[[str], Lake], after: bool) -> None:
    """The run that dies has two rounds with several files each."""
    expected = [row[0] for row in rows(9)]
    for moment in range(1, 100):
        lake = new(str(moment))
        with pytest.MonkeyPatch.context() as patch:
            die_at(patch, lake.operations, moment, after=after)
            try:
                archive(history(9), ["lines"], lake.target(), file_offsets_max=3)
                break
            except Killed:
                pass
        _check_a_beginning(lake, expected)
        archive(history(9), ["lines"], lake.target(), file_offsets_max=4)
        for partition in (ONE, OTHER):
            assert lake.archived(partition) == rows(9, partition=partition)
            assert lake.offsets(partition) == expected
    assert moment > 8, "dies at every operation, up to a run that does not"


def _check_a_beginning(lake: Lake, expected: list[int]) -> None:
    """What is there is a beginning of all, each record once, for readers of either kind."""
    if not lake.exists():
        return
    found = [row[0] for row in lake.archived()]
    assert found == expected[: len(found)]
    assert lake.offsets() == found


def test_a_run_that_dies_while_it_merges_leaves_nothing_double(new: Callable[[str], Lake]) -> None:
    last, merged = 10 * FILES_MIN, 0
    for moment in range(1, 100):
        lake = new(str(moment))
        archive(history(last - 10), ["lines"], lake.target(), file_offsets_max=10)
        with pytest.MonkeyPatch.context() as patch:
            die_at(patch, lake.operations, moment, after=True)
            try:
                merged = archive(history(last), ["lines"], lake.target()).merged.before
                break
            except Killed:
                pass
        assert lake.archived() == rows(last)[: len(lake.archived())]
        archive(history(last), ["lines"], lake.target())
        for partition in (ONE, OTHER):
            assert lake.archived(partition) == rows(last, partition=partition)
            assert lake.offsets(partition) == [row[0] for row in rows(last, partition=partition)]
    assert merged == 2 * FILES_MIN
    assert moment > 5


@pytest.mark.parametrize("first", [0, 5], ids=["a new archive", "one that exists"])
@pytest.mark.parametrize("records", [15, 5], ids=["with records", "without"])
def test_of_two_runs_at_once_one_is_refused(lake: Lake, first: int, records: int) -> None:
    class Slow(InlineArchiver):
        def write(self, job: Any, pieces: Any) -> Any:
            files = list(super().write(job, pieces))
            other = in_memory({ONE: rows(records), OTHER: rows(records, partition=OTHER), third: []})
            archive(other, ["lines"], lake.target())
            return files

    third = TopicPartition("lines", 2)
    if first:
        archive(history(first), ["lines"], lake.target())
    with pytest.raises(StateError, match="another run has written"):
        archive(history(20), ["lines"], lake.target(), archiver=Slow())
    assert lake.archived() == rows(records)
    assert lake.offsets() == [row[0] for row in rows(records)]
    assert dict(lake.source().partitions()) == {"lines": 3}
    archive(in_memory({ONE: rows(20), OTHER: rows(20, partition=OTHER), third: []}), ["lines"], lake.target())
    assert lake.archived() == rows(20)


def test_small_files_are_merged_and_who_reads_meanwhile_does_not_notice(lake: Lake) -> None:
    reading: Iterator[Any] = iter(())
    for run in range(1, 2 * FILES_MIN + 1):
        if run == FILES_MIN:
            reader = lake.source()
            reading = reader.read(InputRange(ONE, 0, reader.index.end(ONE)))
            first = next(reading)
        merged = archive(history(10 * run), ["lines"], lake.target()).merged
        assert merged.before in (0, 2 * FILES_MIN)
        assert lake.archived() == rows(10 * run)
        assert lake.offsets() == [row[0] for row in rows(10 * run)]
    assert len(lake.source().index.pieces[ONE]) <= FILES_MIN
    # The files that were merged stay for a while.
    assert first.num_rows + sum(batch.num_rows for batch in reading) == len(rows(10 * (FILES_MIN - 1)))


def test_records_are_in_order_whoever_has_compacted_the_table(lake: Lake) -> None:
    for count in (10, 20, 30):
        archive(in_memory({ONE: rows(count)}), ["lines"], lake.target())
    lake.compact()
    assert len(lake.source().index.pieces[ONE]) == 1
    assert lake.archived() == rows(30)
    source = lake.source()
    assert read(source, ONE, 7, 22) == [row for row in rows(30) if 7 <= row[0] < 22]
    assert source.offsets_at([ONE], 1007) == {ONE: 7}
    archive(in_memory({ONE: rows(40)}), ["lines"], lake.target())
    assert lake.archived() == rows(40)
    assert lake.offsets() == [row[0] for row in rows(40)]


def test_a_run_goes_on_if_the_table_is_compacted_meanwhile(lake: Lake) -> None:
    class Meanwhile(InlineArchiver):
        def write(self, job: Any, pieces: Any) -> Any:
            files = list(super().write(job, pieces))
            lake.compact()
            return files

    archive(in_memory({ONE: rows(10)}), ["lines"], lake.target(), file_offsets_max=5)
    archive(in_memory({ONE: rows(30)}), ["lines"], lake.target(), archiver=Meanwhile(), file_offsets_max=5)
    assert lake.archived() == rows(30)
    assert lake.offsets() == [row[0] for row in rows(30)]


def test_files_that_two_merge_at_once_are_merged_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """delta-rs 1.6 does not notice it by itself: there would be each record twice."""
    last = 10 * FILES_MIN
    archive(in_memory({ONE: rows(last - 10)}), ["lines"], lake.target(), file_offsets_max=10)
    target = lake.target()
    replace = target.replace

    def late(*args: Any) -> bool:
        lake.compact()
        return replace(*args)

    monkeypatch.setattr(target, "replace", late)
    assert archive(in_memory({ONE: rows(last)}), ["lines"], target).merged.before == 0
    assert lake.archived() == rows(last)
    assert lake.offsets() == [row[0] for row in rows(last)]


def test_a_disk_that_is_full_while_files_are_merged_is_a_warning(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """All records are archived: merging can wait."""
    last = 10 * FILES_MIN
    archive(history(last - 10), ["lines"], lake.target(), file_offsets_max=10)

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    target = lake.target()
    from_its_merge_on(monkeypatch, target, pq.ParquetWriter, "write_batch", full)
    archive(history(last), ["lines"], target)
    assert "small files could not be merged" in caplog.text
    assert "No space left" in caplog.text
    assert lake.archived() == rows(last)


def test_records_that_somebody_deletes_are_no_loss(lake: Lake) -> None:
    """Such as those of a person who asks for it."""
    some = [(offset, 1000 + offset, b"a" if offset % 2 else b"b", b"v", ()) for offset in range(20)]
    archive(in_memory({ONE: some[:10]}), ["lines"], lake.target())
    lake.delete_rows("a")
    archive(in_memory({ONE: some}), ["lines"], lake.target())
    assert lake.archived() == [row for row in some if row[2] == b"b" or row[0] >= 10]
    assert lake.source().missing(InputRange(ONE, 0, 20)) == []


def test_what_retention_took_before_it_was_archived_is_a_hole(lake: Lake) -> None:
    archive(history(10), ["lines"], lake.target())
    later: Rows = {ONE: rows(6, start=15), OTHER: rows(15, partition=OTHER)}
    assert archive(in_memory(later), ["lines"], lake.target()).lost == {ONE: (10, 15)}
    source = lake.source()
    assert source.missing(InputRange(ONE, 0, 20)) == [(10, 15)]
    with pytest.raises(OffsetOutOfRangeError, match="does not hold all records of lines-0"):
        list(source.read(InputRange(ONE, 0, 20)))
    assert read(source, ONE, 0, 10) == rows(10)


def test_a_topic_that_was_made_anew_is_refused(lake: Lake) -> None:
    archive(history(10), ["lines"], lake.target())
    with pytest.raises(TopicError, match="not the one that was archived"):
        archive(history(5), ["lines"], lake.target())
    other = [(offset, 1000 + offset, b"k", b"another", ()) for offset in range(20)]
    with pytest.raises(TopicError, match="not the one that was archived"):
        archive(in_memory({ONE: other, OTHER: other}), ["lines"], lake.target())
    with pytest.raises(TopicError, match="no topic words"):
        archive(history(10), ["words"], lake.target())


def test_an_archive_has_offsets_and_is_not_read_approximately(lake: Lake) -> None:
    archive(history(3), ["lines"], lake.target())
    with pytest.raises(ConfigError, match="has offsets"):
        type(lake.source())(lake.source().path, approximate=True)


def test_a_note_that_is_no_note_is_refused(lake: Lake) -> None:
    archive(history(3), ["lines"], lake.target())
    lake.forget()
    for action in (lambda: lake.source().partitions(), lambda: archive(history(5), ["lines"], lake.target())):
        with pytest.raises(StateError, match="does not say what was archived"):
            action()


def test_a_table_of_somebody_else_is_refused(tmp_path: Path) -> None:
    some = pa.table({"a": [1]})
    DeltaTable.create(str(tmp_path / "theirs"), some.schema)
    for action in (
        lambda: archive(history(3), ["lines"], DeltaTarget(str(tmp_path / "theirs"))),
        lambda: DeltaArchive(str(tmp_path / "theirs")).partitions(),
    ):
        with pytest.raises(StateError, match="is not an archive that pystreams wrote"):
            action()
    lake = Iceberg(tmp_path / "lake")
    lake.catalog().create_namespace("shop")
    lake.catalog().create_table("shop.archive", some.schema)
    for action in (
        lambda: archive(history(3), ["lines"], lake.target()),
        lambda: lake.source().partitions(),
    ):
        with pytest.raises(StateError, match="is not an archive that pystreams wrote"):
            action()


def test_an_archive_keeps_its_format(tmp_path: Path) -> None:
    archive(history(3), ["lines"], str(tmp_path / "parquet"))
    with pytest.raises(StateError, match="archive in Parquet"):
        archive(history(5), ["lines"], DeltaTarget(str(tmp_path / "parquet")))
    archive(history(3), ["lines"], DeltaTarget(str(tmp_path / "delta")))
    with pytest.raises(StateError, match="is a table of Delta") as raised:
        archive(history(5), ["lines"], str(tmp_path / "delta"))
    assert "--format delta" in raised.value.hint
    with pytest.raises(ConfigError, match="there is no Delta table"):
        DeltaArchive(str(tmp_path / "parquet")).partitions()


@pytest.mark.parametrize("name", ["archive", "lake.archive"])
def test_a_table_of_iceberg_has_a_catalog_and_a_namespace(name: str) -> None:
    with pytest.raises(ConfigError, match="does not name a table of Iceberg"):
        IcebergArchive(name).partitions()


def test_a_catalog_that_nobody_has_configured_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", "/nowhere")
    with pytest.raises(ConfigError, match="the catalog nolake cannot be reached") as raised:
        IcebergArchive("nolake.shop.archive").partitions()
    assert "PYICEBERG_CATALOG__NOLAKE__URI" in raised.value.hint


@pytest.mark.parametrize(
    ("module", "extra", "source"),
    [
        ("deltalake", "delta", lambda: DeltaArchive("/nowhere")),
        ("pyiceberg", "iceberg", lambda: IcebergArchive("lake.shop.archive")),
    ],
)
def test_a_package_that_is_missing_is_named(
    module: str, extra: str, source: Callable[[], LakeArchive], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pystreams.backfill.sources.lake.libraries.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=f"need {module}") as raised:
        source().partitions()
    assert extra in raised.value.hint
