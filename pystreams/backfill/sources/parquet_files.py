"""Archives in Parquet: their content is known from footers, or from the log that ``archive`` keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow
from pystreams.backfill.locations import shown
from pystreams.backfill.sources.archive_log import ArchiveLog, settled
from pystreams.backfill.sources.file_index import Found, Index, Piece, joined, summaries
from pystreams.backfill.sources.file_source import FileSource, of_partition
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.sources.source import BATCH_ROWS
from pystreams.errors import ConfigError, OffsetOutOfRangeError, StateError
from pystreams.ids import TopicPartition

#: The bytes read of a column at once, and the approximate size of a batch.
_BUFFER_BYTES: Final = 1 << 20
_BATCH_BYTES_MAX: Final = 16 << 20

_PLACE: Final = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True)
class ParquetSource(FileSource):
    """An archive in Parquet. See ``FileSource``; timestamps are integers (ms) or moments of any unit.

    A folder that ``python -m pystreams archive`` writes has a log of its content: other files are ignored, and holes
    between the archived ranges are known.
    """

    format_name: ClassVar[str] = "Parquet"
    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".pq")

    def _look(self) -> Index:
        log = ArchiveLog(self.folder)
        return super()._look() if self.approximate or not log.exists() else log.index()

    def pieces(self, file: str) -> list[Found]:
        with self._open(file) as parquet:
            found: dict[TopicPartition, Piece] = {}
            unclear: list[int] = []
            for group in range(parquet.metadata.num_row_groups):
                of_group = self._summary(parquet, group, file)
                if of_group is None:
                    unclear.append(group)
                    continue
                partition, piece = of_group
                found[partition] = joined(found[partition], piece) if partition in found else piece
            if unclear:
                columns = [name for name in _PLACE if name in parquet.schema_arrow.names]
                batches = parquet.iter_batches(BATCH_ROWS, row_groups=unclear, columns=columns)
                for partition, piece in summaries((self.records(batch, file) for batch in batches), file):
                    found[partition] = joined(found[partition], piece) if partition in found else piece
        return list(found.items())

    def rows(self, file: str, input: InputRange, *, times_only: bool = False) -> Iterator[Arrow]:
        with self._open(file) as parquet:
            there = parquet.schema_arrow.names
            wanted: Sequence[str] = _PLACE if times_only else RECORD_SCHEMA.names
            groups = [
                group
                for group in range(parquet.metadata.num_row_groups)
                if self._may_have(_Statistics(parquet.metadata.row_group(group)), input)
            ]
            for batch in parquet.iter_batches(
                batch_rows(parquet.metadata),
                row_groups=groups,
                columns=[name for name in wanted if name in there],
            ):
                yield of_partition(self.records(batch, file), input.partition)

    def _may_have(self, statistics: _Statistics, input: InputRange) -> bool:
        """False if a row group has no record of the range."""
        if not statistics.may_hold("topic", input.partition.topic, input.partition.topic):
            return False
        if not statistics.may_hold("partition", input.partition.partition, input.partition.partition):
            return False
        return self.approximate or statistics.may_hold("offset", input.start, input.end - 1)

    def _summary(self, parquet: Any, group: int, file: str) -> Found | None:
        """The piece in a row group, if its statistics show that it has one partition."""
        footer = parquet.metadata.row_group(group)
        statistics, given = _Statistics(footer), self._given(file)
        place: list[Any] = []
        for name in ("topic", "partition"):
            least, greatest = statistics.of(name, given.get(name))
            if least is None or least != greatest:
                return None
            place.append(least)
        first, last = (0, 0) if self.approximate else statistics.of("offset", None)
        _, latest = statistics.of("timestamp", None)
        if not isinstance(first, int) or not isinstance(last, int) or not isinstance(latest, int):
            return None
        try:
            partition = TopicPartition(place[0], int(place[1]))
        except ValueError:
            return None  # The reader of the rows reports errors in them.
        return partition, Piece(file, footer.num_rows, first, last, latest)

    @contextmanager
    def _open(self, file: str) -> Iterator[Any]:
        try:
            opened = self.open_file(file)
        except FileNotFoundError:
            raise OffsetOutOfRangeError(
                "a file of the archive is gone",
                where=self.where(file),
                hint="restore the file, or begin a new backfill with the remaining records",
            ) from None
        with opened:
            try:
                # Without pre-buffering, which would keep everything that was read in memory.
                parquet = pq.ParquetFile(opened, buffer_size=_BUFFER_BYTES, pre_buffer=False)
            except pa.ArrowInvalid as error:
                raise ConfigError(
                    "a file of the archive is not a Parquet file, or is damaged",
                    where=self.where(file),
                    why=str(error).splitlines()[0],
                ) from None
            try:
                with parquet:
                    yield parquet
            except OSError as error:
                raise StateError(
                    "a file of the archive cannot be read",
                    where=self.where(file),
                    why=shown((str(error).splitlines() or [""])[0]),
                    hint="check disk, network and permissions, and restore the file if it is damaged",
                ) from error

    def row_bytes(self, file: str) -> int:
        """The average size of a file's rows before they were packed, at least 1."""
        with self._open(file) as parquet:
            return _row_bytes(parquet.metadata)

    def open_file(self, file: str) -> Arrow:
        """A file to read at any place of it. Raises ``FileNotFoundError``."""
        try:
            return self.folder.open_file(file)
        except FileNotFoundError:
            # Committed files of an archive move to their places a moment later.
            return self.folder.open_file(settled(file))


def _row_bytes(footer: Any) -> int:
    """The average size of a row before it was packed, at least 1."""
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    return max(1, int(sum(group.total_byte_size for group in groups) // max(footer.num_rows, 1)))


def batch_rows(footer: Any) -> int:
    """How many rows to read at once: fewer of large ones."""
    return max(1, min(BATCH_ROWS, _BATCH_BYTES_MAX // _row_bytes(footer)))


class _Statistics:
    """The least and greatest values of a row group's columns, as far as the footer has them."""

    def __init__(self, footer: Any) -> None:
        columns = (footer.column(number) for number in range(footer.num_columns))
        self._of = {
            column.path_in_schema: column.statistics for column in columns if column.path_in_schema in _PLACE
        }

    def of(self, name: str, given: str | None) -> tuple[Any, Any]:
        """Least and greatest, both None if they are not known; ``given`` for a column that the file does not have."""
        if name not in self._of:
            return given, given
        statistics = self._of[name]
        if statistics is None or not statistics.has_min_max:
            return None, None
        return statistics.min, statistics.max

    def may_hold(self, name: str, least: Any, greatest: Any) -> bool:
        """False if no value of the column lies between the two (inclusive)."""
        first, last = self.of(name, None)
        return not isinstance(first, type(least)) or (first <= greatest and last >= least)
