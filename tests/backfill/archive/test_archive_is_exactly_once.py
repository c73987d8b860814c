"""An archive holds each record once, whenever a run dies, however often it is run; each run adds what is new."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from pystreams.backfill.archive.archive import InlineArchiver, archive
from pystreams.backfill.sources import MemorySource, ParquetSource
from pystreams.backfill.sources.archive_log import ArchiveLog
from pystreams.backfill.sources.folder import Folder
from pystreams.backfill.sources.ranges import InputRange
from pystreams.clock import ManualClock
from pystreams.errors import OffsetOutOfRangeError, StateError, TopicError
from pystreams.ids import TopicPartition
from tests.backfill.archive.kit import ONE, OTHER, Killed, die_at, history, rows
from tests.backfill.sources.files_kit import Row, Rows, in_memory, read, table


def archived(folder: Path, partition: TopicPartition) -> list[Row]:
    source = ParquetSource(str(folder))
    return read(
        source, partition, source.beginnings([partition])[partition], source.ends([partition])[partition]
    )


def in_plain_files(folder: Path, partition: TopicPartition = ONE) -> list[int]:
    """The offsets of a partition as a reader sees them who knows nothing of the log."""
    files = (folder / "topic=lines" / f"partition={partition.partition}").glob("*.parquet")
    return sorted(offset for file in files for offset in pq.read_table(file).column("offset").to_pylist())


def test_each_run_adds_what_is_new(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    for count in (0, 10, 10, 31, 32):
        source = history(count)
        archive(source, ["lines"], str(folder), file_offsets_max=7)
        assert dict(ParquetSource(str(folder)).partitions()) == {"lines": 2}
        for partition in (ONE, OTHER):
            assert archived(folder, partition) == rows(count, partition=partition)
    assert in_plain_files(folder) == [row[0] for row in rows(32)]


def test_an_archive_may_be_anywhere_that_arrow_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its URI; and on a file system that is not this machine's, which has no links."""
    for count in (5, 20):
        archive(history(count), ["lines"], f"file://{tmp_path}/by-uri")
    source = ParquetSource(f"file://{tmp_path}/by-uri")
    assert read(source, ONE, 0, 20) == rows(20) == archived(tmp_path / "by-uri", ONE)
    elsewhere = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    monkeypatch.setattr(Folder, "_resolved", lambda folder: (elsewhere, folder.path.removeprefix("its://")))
    for count in (5, 20):
        archive(history(count), ["lines"], "its://bucket/archive")
    assert read(ParquetSource("its://bucket/archive"), OTHER, 0, 20) == rows(20, partition=OTHER)
    assert in_plain_files(tmp_path / "bucket" / "archive") == [row[0] for row in rows(20)]


def test_a_run_says_what_it_added(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    result = archive(
        history(10), ["lines"], str(tmp_path), file_offsets_max=4, progress=lambda *now: told.append(now)
    )
    files = list(tmp_path.rglob("*.parquet"))
    assert (result.records, result.files) == (14, len(files))
    assert result.size_bytes == sum(file.stat().st_size for file in files)
    assert result.ends == {ONE: 10, OTHER: 10}
    assert told[-1] == (14, 0)
    assert [left for _, left in told] == sorted((left for _, left in told), reverse=True)
    again = archive(history(10), ["lines"], str(tmp_path))
    assert (again.records, again.files, again.lost) == (0, 0, {})


#: The operations on files during a run, each a point at which it may die.
OPERATIONS = [(Folder, name) for name in ("create", "publish", "move", "delete")]


@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_dies_at_any_moment_leaves_nothing_double(after: bool, tmp_path: Path) -> None:
    """The run that dies has two rounds with several files each."""
    expected = [row[0] for row in rows(14)]
    for moment in range(1, 100):
        folder = tmp_path / str(moment)
        archive(history(5), ["lines"], str(folder))
        with pytest.MonkeyPatch.context() as patch:
            die_at(patch, OPERATIONS, moment, after=after)
            try:
                archive(history(14), ["lines"], str(folder), file_offsets_max=3)
                break
            except Killed:
                pass
        # What is there is a beginning of all, each record once, for readers of either kind.
        found = [row[0] for row in archived(folder, ONE)]
        assert found == expected[: len(found)]
        in_files = in_plain_files(folder)
        assert set(in_files) <= set(found)
        assert len(in_files) == len(set(in_files))
        archive(history(14), ["lines"], str(folder), file_offsets_max=4)
        for partition in (ONE, OTHER):
            assert archived(folder, partition) == rows(14, partition=partition)
        assert in_plain_files(folder) == expected
    assert moment > 15, "dies at every operation, up to a run that does not"


SCRIPT = """
import os, signal
from pystreams.backfill.archive.archive import archive
from pystreams.backfill.sources import archive_log
from tests.backfill.archive.kit import history

settle = archive_log.ArchiveLog.settle
def settle_half(log, entry):
    if entry.files and entry.files[0].start == 5:
        settle(log, entry.__class__(entry.time_ms, entry.source, entry.drafts, entry.counts, entry.files[:1]))
        os.kill(os.getpid(), signal.SIGKILL)
    settle(log, entry)
archive_log.ArchiveLog.settle = settle_half
archive(history(20), ["lines"], {folder!r}, file_offsets_max=15)
"""


def test_a_process_that_is_killed_right_after_a_commit(tmp_path: Path) -> None:
    """Half of the committed files have not come to their places: readers find them all the same."""
    archive(history(5), ["lines"], str(tmp_path))
    root = Path(__file__).parents[3]
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(folder=str(tmp_path))],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    assert archived(tmp_path, ONE) == rows(20)
    assert archived(tmp_path, OTHER) == rows(20, partition=OTHER)
    assert len(in_plain_files(tmp_path)) == len(rows(20))
    assert len(in_plain_files(tmp_path, OTHER)) == len(rows(5))
    reading = ParquetSource(str(tmp_path)).read(InputRange(OTHER, 0, 20))
    first = next(reading)
    archive(history(20), ["lines"], str(tmp_path))
    assert in_plain_files(tmp_path, OTHER) == [row[0] for row in rows(20)]
    # Whoever was reading while the files moved goes on with them where they are now.
    assert first.num_rows + sum(batch.num_rows for batch in reading) == len(rows(20))


def test_of_two_runs_at_once_one_is_refused(tmp_path: Path) -> None:
    class Slow(InlineArchiver):
        def write(self, job: Any, pieces: Any) -> Any:
            files = list(super().write(job, pieces))
            archive(history(15), ["lines"], str(tmp_path))
            return files

    with pytest.raises(StateError, match="another run has written"):
        archive(history(20), ["lines"], str(tmp_path), archiver=Slow())
    assert archived(tmp_path, ONE) == rows(15)
    assert in_plain_files(tmp_path) == [row[0] for row in rows(15)]


def test_what_dead_runs_wrote_is_deleted_after_a_day(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000_000)
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, OPERATIONS, 3, after=True)
        with pytest.raises(Killed):
            archive(history(9), ["lines"], str(tmp_path), file_offsets_max=3, clock=clock)
    drafts = tmp_path / "_pystreams_archive" / "drafts"
    archive(history(9), ["lines"], str(tmp_path), clock=clock)
    assert len(list(drafts.iterdir())) == 1, "it may belong to a run that is at work"
    clock.advance_ms(25 * 3_600_000)
    archive(history(9), ["lines"], str(tmp_path), clock=clock)
    assert list(drafts.iterdir()) == []
    assert archived(tmp_path, ONE) == rows(9)


def test_what_retention_took_before_it_was_archived_is_a_hole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    archive(history(10), ["lines"], str(tmp_path))
    later: Rows = {ONE: rows(6, start=15), OTHER: rows(15, partition=OTHER)}
    result = archive(in_memory(later), ["lines"], str(tmp_path))
    assert result.lost == {ONE: (10, 15)}
    assert "lines-0: offsets 10 to 15 (exclusive) are gone" in caplog.text
    source = ParquetSource(str(tmp_path))
    assert source.missing(InputRange(ONE, 0, 20)) == [(10, 15)]
    assert source.missing(InputRange(ONE, 15, 20)) == []
    with pytest.raises(OffsetOutOfRangeError, match="does not hold all records of lines-0") as raised:
        list(source.read(InputRange(ONE, 0, 20)))
    assert "offsets 10 to 15" in raised.value.why
    assert read(source, ONE, 0, 10) == rows(10)


def test_where_an_empty_partition_stands_is_known(tmp_path: Path) -> None:
    """Its records were deleted before it was archived: a live application goes on behind them."""

    class Emptied(MemorySource):
        def beginnings(self, partitions: Any) -> Any:
            return {**super().beginnings(partitions), OTHER: 7}

        def ends(self, partitions: Any) -> Any:
            return {**super().ends(partitions), OTHER: 7}

    source = Emptied({"lines": 2}, {ONE: history(5).batches[ONE]})
    archive(source, ["lines"], str(tmp_path))
    assert archive(source, ["lines"], str(tmp_path)).files == 0
    found = ParquetSource(str(tmp_path))
    assert found.beginnings([ONE, OTHER]) == {ONE: 0, OTHER: 7}
    assert found.ends([ONE, OTHER]) == {ONE: 5, OTHER: 7}
    assert read(found, OTHER, 7, 7) == []


def test_a_topic_that_was_made_anew_is_refused(tmp_path: Path) -> None:
    archive(history(10), ["lines"], str(tmp_path))
    with pytest.raises(TopicError, match="not the one that was archived"):
        archive(history(5), ["lines"], str(tmp_path))


def test_a_topic_that_was_made_anew_and_has_grown_past_its_archive_is_refused(tmp_path: Path) -> None:
    """Two topics in one archive would be a history that never was."""
    archive(history(10), ["lines"], str(tmp_path))
    other = [(offset, 1000 + offset, b"k", b"another", ()) for offset in range(20)]
    for anew in ({ONE: other, OTHER: rows(20, partition=OTHER)}, {ONE: rows(5, start=15), OTHER: other}):
        with pytest.raises(TopicError, match="not the one that was archived") as raised:
            archive(in_memory(anew), ["lines"], str(tmp_path))
        assert "has a different record at offset 9" in raised.value.why
    with pytest.raises(TopicError, match="not the one that was archived") as raised:
        archive(in_memory({ONE: rows(20)}), ["lines"], str(tmp_path))
    assert "has 1 partitions, but its archive has 2" in raised.value.why
    # Partitions that are added, and records that compaction took, say nothing of the kind.
    third = TopicPartition("lines", 2)
    grown = {ONE: rows(5, start=12), OTHER: rows(20, partition=OTHER), third: rows(3, partition=third)}
    archive(in_memory(grown), ["lines"], str(tmp_path))
    assert dict(ParquetSource(str(tmp_path)).partitions()) == {"lines": 3}
    assert archived(tmp_path, third) == rows(3, partition=third)


def test_a_topic_without_records_that_has_fewer_partitions_is_refused(tmp_path: Path) -> None:
    archive(in_memory({ONE: [], OTHER: []}), ["lines"], str(tmp_path))
    with pytest.raises(TopicError, match="not the one that was archived") as raised:
        archive(in_memory({ONE: []}), ["lines"], str(tmp_path))
    assert "has 1 partitions, but its archive has 2" in raised.value.why


def test_a_place_with_files_of_others_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "topic=lines" / "partition=0"
    place.mkdir(parents=True)
    pq.write_table(table({ONE: rows(3)}), place / "mine.parquet")
    with pytest.raises(StateError, match="that no archive run wrote") as raised:
        archive(history(5), ["lines"], str(tmp_path))
    assert "mine.parquet" in raised.value.why
    with pytest.raises(StateError, match="is a file, not a folder"):
        archive(history(5), ["lines"], str(place / "mine.parquet"))
    assert not ArchiveLog(Folder(str(tmp_path))).exists()


def test_a_disk_that_is_full_is_reported_and_costs_nothing_that_is_there(tmp_path: Path) -> None:
    archive(history(5), ["lines"], str(tmp_path))

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_batch", full)
        with pytest.raises(StateError, match="nothing can be written to") as raised:
            archive(history(9), ["lines"], str(tmp_path))
    assert "No space left" in raised.value.why
    assert archived(tmp_path, ONE) == rows(5)
    archive(history(9), ["lines"], str(tmp_path))
    assert archived(tmp_path, ONE) == rows(9)


def test_a_topic_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TopicError, match="no topic words"):
        archive(history(5), ["lines", "words"], str(tmp_path))
    assert not ArchiveLog(Folder(str(tmp_path))).exists()


def test_a_log_that_lacks_an_entry_is_refused(tmp_path: Path) -> None:
    for count in (5, 10):
        archive(history(count), ["lines"], str(tmp_path))
    (tmp_path / "_pystreams_archive" / "00000000.json").unlink()
    with pytest.raises(StateError, match="lacks its entry 0"):
        ParquetSource(str(tmp_path)).partitions()
    (tmp_path / "_pystreams_archive" / "00000000.json").write_text("{}")
    with pytest.raises(StateError, match="not an entry of an archive's log"):
        ParquetSource(str(tmp_path)).partitions()
    (tmp_path / "_pystreams_archive" / "00000000.json").write_text('{"format": 9}')
    with pytest.raises(StateError, match="format 9"):
        ParquetSource(str(tmp_path)).partitions()


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    archive(history(10), ["lines"], str(tmp_path))
    [file] = (tmp_path / "topic=lines" / "partition=0").iterdir()
    file.unlink()
    with pytest.raises(OffsetOutOfRangeError, match="a file of the archive is gone") as raised:
        archived(tmp_path, ONE)
    assert file.name in raised.value.where
