"""An archive in a table: the table lists the valid files, which other programs may have rewritten by compaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow, pc
from pystreams.backfill.sources.file_index import Index, Piece
from pystreams.backfill.sources.file_source import LOOKING_THREADS, all_ascend
from pystreams.backfill.sources.lake.content import Content
from pystreams.backfill.sources.parquet_files import ParquetSource
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.sources.source import BATCH_ROWS
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TopicPartition

#: The size of the rows that are sorted at a time, before they are packed.
_WINDOW_BYTES: Final = 256 << 20
#: Files with these names are in order of offsets.
OWN_NAME: Final = re.compile(r"(^|/)\d{20}-[0-9a-f]{8}\.parquet$")


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a table. ``piece`` is None if the table does not know the least and greatest offset of its records."""

    partition: TopicPartition
    file: str
    size_bytes: int
    piece: Piece | None


class MarkedAsDeletedError(StateError):
    """Rows of a table are marked as deleted, apart from the file in which they are."""

    def __init__(self, table: str, remedy: str) -> None:
        super().__init__(
            "rows of the archive are marked as deleted, which only Spark and the like can read",
            where=table,
            hint=f"have the files rewritten: {remedy}",
        )


@dataclass(frozen=True)
class LakeArchive(ParquetSource):
    """An archive in a table. See ``FileSource``.

    Files that another program has rewritten, such as ``OPTIMIZE`` or ``rewrite_data_files``, may hold records in any
    order: those are sorted, as many at a time as fit into memory.
    """

    #: Tables keep topic and partition apart from a file's rows.
    _partitions: dict[str, TopicPartition] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.approximate:
            raise ConfigError(
                f"a {self.format_name} archive has offsets, so it is not read approximately",
                where=self.description,
                hint="leave out --approximate (in Python: approximate=True)",
            )

    @property
    def description(self) -> str:
        return f"{self.format_name} archive {self.shown}"

    @property
    def shown(self) -> str:
        """The table, as messages show it."""
        raise NotImplementedError

    def look(self) -> tuple[Content, list[TableFile]]:
        """What was archived, and the table's files. Raises ``StateError`` for a table that is not an archive."""
        raise NotImplementedError

    def content(self) -> Content:
        """The topics and offsets that were archived, without a look at the files. Raises ``StateError`` for a table
        that is not an archive."""
        raise NotImplementedError

    def spans(self) -> Index:
        """The index without any file."""
        content = self.content()
        return Index(content.counts, {}, content.covered)

    def know(self, files: Iterable[TableFile]) -> None:
        """Files that may be read, beside those of the index."""
        self._partitions.update({file.file: file.partition for file in files})

    def in_order(
        self, pieces: Iterable[Piece], input: InputRange, *, times_only: bool = False
    ) -> Iterator[tuple[Piece, Arrow]]:
        for group in _overlapping(pieces):
            if len(group) == 1 and (OWN_NAME.search(group[0].file) or self._ascends(group[0], input)):
                yield from super().in_order(group, input, times_only=times_only)
                continue
            for batch in self._sorted(group, input):
                yield group[0], batch

    def _sorted(self, group: Sequence[Piece], input: InputRange) -> Iterator[Arrow]:
        """The rows of files in order of offsets, as many at a time as fit into memory."""
        offsets = pa.concat_arrays(
            [
                _inside(rows, input).column("offset")
                for piece in group
                for rows in self.rows(piece.file, input, times_only=True)
            ]
            or [pa.array([], pa.int64())]
        ).sort()
        step = max(1, _WINDOW_BYTES // max(self.row_bytes(piece.file) for piece in group))
        ahead = [(start, min(start + step, len(offsets))) for start in range(0, len(offsets), step)][::-1]
        while ahead:
            start, end = ahead.pop()
            window = InputRange(input.partition, offsets[start].as_py(), offsets[end - 1].as_py() + 1)
            rows = self._within(group, window, _WINDOW_BYTES if end - start > 1 else None)
            if rows is None:
                # Larger than the footers say: values of dictionaries are counted once there.
                middle = (start + end) // 2
                ahead += [(middle, end), (start, middle)]
                continue
            yield from rows.sort_by("offset").to_batches(max_chunksize=BATCH_ROWS)

    def _within(self, group: Sequence[Piece], window: InputRange, bytes_max: int | None) -> Arrow | None:
        """The rows of a range in no order; None if they are larger than ``bytes_max``."""
        found: list[Arrow] = []
        size = 0
        for piece in group:
            if piece.last_offset < window.start or piece.first_offset >= window.end:
                continue
            for rows in self.rows(piece.file, window):
                found.append(_inside(rows, window))
                size += found[-1].nbytes
                if bytes_max is not None and size > bytes_max:
                    return None
        return pa.Table.from_batches(found, RECORD_SCHEMA)

    def _ascends(self, piece: Piece, input: InputRange) -> bool:
        """Whether the records of a file are in order of offsets."""
        batches = [rows.column("offset") for rows in self.rows(piece.file, input, times_only=True)]
        return all_ascend(pa.concat_arrays(batches)) if batches else True

    def _look(self) -> Index:
        content, files = self.look()
        self.know(files)
        # What the table does not know is in a file's footer, or in its rows.
        unknown = [file.file for file in files if file.piece is None]
        with ThreadPoolExecutor(LOOKING_THREADS) as pool:
            looked = dict(zip(unknown, pool.map(self.pieces, unknown), strict=True))
        pieces: dict[TopicPartition, list[Piece]] = {}
        for file in files:
            of_file = [file.piece] if file.piece else [piece for _, piece in looked[file.file]]
            pieces.setdefault(file.partition, []).extend(of_file)
        for of_partition in pieces.values():
            of_partition.sort(key=lambda piece: (piece.first_offset, piece.file))
        return Index(content.counts, pieces, content.covered)

    def _given(self, file: str) -> dict[str, str]:
        topic, partition = self._partitions[file]
        return {"topic": topic, "partition": str(partition)}


def _inside(rows: Arrow, input: InputRange) -> Arrow:
    """The rows of the range, in any order."""
    offsets = rows.column("offset")
    return rows.filter(pc.and_(pc.greater_equal(offsets, input.start), pc.less_equal(offsets, input.end - 1)))


def _overlapping(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces in order of their first offsets, together with those that their offsets reach into."""
    group: list[Piece] = []
    reached = -1
    for piece in pieces:
        if group and piece.first_offset > reached:
            yield group
            group = []
        group.append(piece)
        reached = max(reached, piece.last_offset)
    if group:
        yield group
