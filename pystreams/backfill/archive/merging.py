"""Merges small files of a table into larger ones, because each nightly run adds one for each partition.

The last files of a partition are merged if there are at least eight of them, and none is more than twice as large as
all files behind it together. So the number of times that a record is rewritten grows with the logarithm of the
archive's size.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, Protocol

from pystreams.backfill.archive.pieces import write_file
from pystreams.backfill.archive.target import Merged, RoundFiles
from pystreams.backfill.sources.archive_log import ArchivedFile
from pystreams.backfill.sources.file_index import Piece
from pystreams.backfill.sources.lake.libraries import reading
from pystreams.backfill.sources.lake.source import LakeArchive, TableFile
from pystreams.backfill.sources.ranges import InputRange
from pystreams.errors import StateError, StreamsError
from pystreams.ids import TopicPartition

log = logging.getLogger(__name__)

FILES_MIN: Final = 8
#: The maximum size of a merged file.
_BYTES_MAX: Final = 256 << 20
#: Files with less than this share of the maximal number of records are merged in any case.
_TINY: Final = 1 / 100
#: So many partitions are committed together.
_TOGETHER: Final = 100

#: Files, and the one that has their records.
Merge = tuple[Sequence[TableFile], ArchivedFile]


class Mergeable(Protocol):
    """A table, whose files may be replaced."""

    @property
    def shown(self) -> str: ...

    def files(self) -> tuple[LakeArchive, Sequence[TableFile]]:
        """The files of the last commit, and what reads them."""
        ...

    def new_files(self) -> RoundFiles:
        """Where merged files are written."""
        ...

    def replace(self, merges: Sequence[Merge]) -> bool:
        """Commit files in place of others that have the same records; False if somebody else has changed the table
        since ``files``. Raises ``StateError``."""
        ...

    def clean(self) -> None:
        """Delete files that were replaced long ago, where the table lets it be done. Raises ``StateError``."""
        ...


def merge(table: Mergeable, file_offsets_max: int) -> Merged:
    """Merge the files that are due. If that is not possible now, they stay as they are, and the next run tries
    again."""
    before = after = 0
    try:
        archive, files = table.files()
        merges = ((due, _merged(archive, table.new_files(), due)) for due in due_of(files, file_offsets_max))
        while some := list(islice(merges, _TOGETHER)):
            if not table.replace(some):
                log.info("%s: somebody else has changed the table; small files are merged later", table.shown)
                break
            before, after = before + sum(len(due) for due, _ in some), after + len(some)
        if after:
            table.clean()
    except StreamsError as error:
        log.warning("%s: small files could not be merged: %s", table.shown, error)
    return Merged(before, after)


def due_of(files: Iterable[TableFile], file_offsets_max: int) -> list[list[TableFile]]:
    """The files of each partition that are to be merged, in order of their offsets."""
    by_partition: dict[TopicPartition, list[tuple[Piece, TableFile]]] = defaultdict(list)
    for file in files:
        if file.piece is not None:
            by_partition[file.partition].append((file.piece, file))
    due = (_last(of_partition, file_offsets_max) for _, of_partition in sorted(by_partition.items()))
    return [some for some in due if some]


def _last(files: list[tuple[Piece, TableFile]], file_offsets_max: int) -> list[TableFile]:
    found: list[TableFile] = []
    rows = size = 0
    beginning = 1 << 63
    for piece, file in sorted(files, key=lambda one: one[0].first_offset, reverse=True):
        large = found and piece.rows > max(2 * rows, _TINY * file_offsets_max)
        rows, size = rows + piece.rows, size + file.size_bytes
        if large or rows > file_offsets_max or size > _BYTES_MAX or piece.last_offset >= beginning:
            break
        beginning = piece.first_offset
        found.append(file)
    return found[::-1] if len(found) >= FILES_MIN else []


def _merged(archive: LakeArchive, files: RoundFiles, due: Sequence[TableFile]) -> ArchivedFile:
    """One file with the records of several. Raises ``StateError`` if their content contradicts the table."""
    pieces = [file.piece for file in due if file.piece is not None]
    input = InputRange(due[0].partition, pieces[0].first_offset, pieces[-1].last_offset + 1)
    with reading(archive.description):
        new = write_file(files, input, archive.ascending(pieces, input))
    if new.rows != sum(piece.rows for piece in pieces):
        raise StateError(
            f"files of {input.partition} have other records than the table says",
            where=archive.description,
            why=f"there are {new.rows:,} records at offsets {input.start} to {input.end} (exclusive)",
        )
    return new
