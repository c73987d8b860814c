"""The interface of the place of an archive: a folder with its own log, or a table. It commits files, and lists the
committed ones."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.archive_log import ArchivedFile
from pystreams.backfill.sources.parquet_files import ParquetSource
from pystreams.ids import TopicPartition


class RoundFiles(Protocol):
    """Writes the files of one round before its commit. Picklable, because any process may write some."""

    @property
    def schema(self) -> Arrow:
        """The columns of the files."""
        ...

    def name(self, partition: TopicPartition, start: int) -> str:
        """A new name for a file with records from an offset on."""
        ...

    def create(self, file: str) -> Arrow:
        """The file, opened for writing. Raises ``StateError`` if this is not possible."""
        ...

    def written(self) -> AbstractContextManager[None]:
        """While something is written. Raises ``StateError`` if the file system refuses it."""
        ...


@dataclass(frozen=True, slots=True)
class RoundContent:
    """What one commit adds. ``counts`` are the partitions of the topics at that time (ms)."""

    time_ms: int
    source: str
    counts: Mapping[str, int]
    files: tuple[ArchivedFile, ...]


class Round(Protocol):
    """Files that are committed together."""

    @property
    def files(self) -> RoundFiles: ...

    def commit(self, number: int, content: RoundContent) -> bool:
        """Commit as number ``number``; False if another run has committed meanwhile. Raises ``StateError``."""
        ...

    def discard(self) -> None:
        """Delete the written files, if it is certain that they were not committed."""
        ...


class RoundTable(Protocol):
    """A table that takes rounds."""

    def commit(self, number: int, content: RoundContent) -> bool:
        """See ``Round.commit``."""
        ...


@dataclass(frozen=True, slots=True)
class TableRound:
    """Implements ``Round``: files of a table, of which no reader knows before the commit."""

    table: RoundTable
    files: RoundFiles

    def commit(self, number: int, content: RoundContent) -> bool:
        return self.table.commit(number, content)

    def discard(self) -> None:
        """Keep the files, because a commit without an answer may have succeeded."""


@dataclass(frozen=True, slots=True)
class Merged:
    """How many small files were merged into how many."""

    before: int = 0
    after: int = 0


class ArchiveTarget(Protocol):
    """An archive, for its single writer."""

    @property
    def shown(self) -> str:
        """The place, as messages show it."""
        ...

    def open(self, now_ms: int) -> int:
        """Finish the work of a killed run. Returns the number of commits so far.

        Raises ``StateError`` for a place with data of others, and before anything is written.
        """
        ...

    def stored(self) -> ParquetSource | None:
        """Reads what is committed; None before the first commit."""
        ...

    def begin(self, now_ms: int) -> Round:
        """A new round."""
        ...

    def finish(self, file_offsets_max: int) -> Merged:
        """Called when all rounds are committed: merge small files, if readers of the format are not disturbed."""
        ...
