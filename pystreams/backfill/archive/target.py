"""Where an archive is kept: a folder with a log of its own, or a table. It knows what is committed, and commits."""

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
    """Where the files of one round are written, before its commit. Picklable: any process may write some."""

    @property
    def schema(self) -> Arrow:
        """The columns of the files."""
        ...

    def name(self, partition: TopicPartition, start: int) -> str:
        """A new name for a file with records from an offset on."""
        ...

    def create(self, file: str) -> Arrow:
        """The file, to write. Raises ``StateError`` if that cannot be."""
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
        """Commit number ``number``; False if somebody else has committed in the meantime. Raises ``StateError``."""
        ...

    def discard(self) -> None:
        """Delete what was written, if it is certain that it was not committed."""
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
        """The files stay: they could be those of a commit that has landed without a word."""


@dataclass(frozen=True, slots=True)
class Merged:
    """How many small files were merged into how many."""

    before: int = 0
    after: int = 0


class ArchiveTarget(Protocol):
    """An archive, as its one writer sees it."""

    @property
    def shown(self) -> str:
        """The place, as messages show it."""
        ...

    def open(self, now_ms: int) -> int:
        """Finish what a killed run has left. The number of commits so far.

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
        """All rounds are committed: merge small files, if readers of the format do not notice it."""
        ...
