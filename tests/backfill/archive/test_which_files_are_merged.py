"""A table that grows by a small file each night has few files, and a record is written again only a few times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pystreams.backfill.archive.merging import FILES_MIN, due_of
from pystreams.backfill.sources.file_index import Piece
from pystreams.backfill.sources.lake.source import TableFile
from pystreams.ids import TopicPartition

PARTITION = TopicPartition("orders", 0)
FILE_OFFSETS_MAX = 2_000_000


def file(first: int, rows: int, *, row_bytes: int = 20, partition: TopicPartition = PARTITION) -> TableFile:
    piece = Piece(f"{partition}-{first}-{rows}", rows, first, first + rows - 1, 0)
    return TableFile(partition, piece.file, rows * row_bytes, piece)


def rows_of(files: list[TableFile]) -> list[int]:
    return [one.piece.rows for one in files if one.piece]


def after_nights(rows: list[int]) -> tuple[list[TableFile], int]:
    """The files after all nights, and how many rows were written again."""
    files: list[TableFile] = []
    first = again = 0
    for of_night in rows:
        files.append(file(first, of_night))
        first += of_night
        for due in due_of(files, FILE_OFFSETS_MAX):
            merged = file(min(one.piece.first_offset for one in due if one.piece), sum(rows_of(due)))
            again += sum(rows_of(due))
            files = [*(one for one in files if one not in due), merged]
    return files, again


def test_a_thousand_nights_are_few_files() -> None:
    files, again = after_nights([30_000] * 1_000)
    assert sum(rows_of(files)) == 30_000_000
    assert len(files) < 30_000_000 // FILE_OFFSETS_MAX + 16
    assert again < 8 * 30_000_000


def test_nights_may_differ() -> None:
    weeks = [40_000, 50_000, 45_000, 60_000, 55_000, 8_000, 5_000] * 20
    files, again = after_nights(weeks)
    assert len(files) < sum(weeks) // FILE_OFFSETS_MAX + 16
    assert again < 8 * sum(weeks)


def test_full_files_are_left_alone() -> None:
    files, again = after_nights([FILE_OFFSETS_MAX] * 20)
    assert (len(files), again) == (20, 0)


@given(st.lists(st.integers(1, 1_000_000), max_size=200))
def test_no_night_is_lost_and_no_file_grows_without_end(rows: list[int]) -> None:
    files, _ = after_nights(rows)
    assert sum(rows_of(files)) == sum(rows)
    assert all(of <= FILE_OFFSETS_MAX for of in rows_of(files))
    reached = 0
    for one in sorted(files, key=lambda one: one.piece.first_offset if one.piece else 0):
        assert one.piece is not None
        assert one.piece.first_offset == reached
        reached = one.piece.last_offset + 1


def test_partitions_are_merged_for_themselves() -> None:
    other = TopicPartition("orders", 1)
    ones = [file(10 * n, 10) for n in range(FILES_MIN)]
    others = [file(10 * n, 10, partition=other) for n in range(FILES_MIN - 1)]
    assert due_of([*others, *reversed(ones)], FILE_OFFSETS_MAX) == [ones]


def test_large_records_do_not_make_huge_files() -> None:
    files = [file(100 * n, 100, row_bytes=1 << 20) for n in range(2 * FILES_MIN)]
    assert due_of(files, FILE_OFFSETS_MAX) == []


def test_files_that_overlap_are_not_merged_apart() -> None:
    """As somebody may have written them who has compacted the table: one file has records between those of others."""
    around = file(0, 1_000)
    within = [file(500 + 10 * n, 5) for n in range(FILES_MIN - 1)]
    assert due_of([around, *within], FILE_OFFSETS_MAX) == []


def test_files_of_which_the_table_knows_no_offsets_are_left_alone() -> None:
    files = [TableFile(PARTITION, str(n), 10, None) for n in range(2 * FILES_MIN)]
    assert due_of(files, FILE_OFFSETS_MAX) == []
