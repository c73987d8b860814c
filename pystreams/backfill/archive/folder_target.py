"""An archive in a folder, whose log pystreams keeps (``sources/archive_log``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from pystreams.backfill.archive.checks import require_own
from pystreams.backfill.archive.pieces import FilesInFolder
from pystreams.backfill.archive.target import Merged, RoundContent
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.archive_log import ArchiveEntry, ArchiveLog, draft_of
from pystreams.backfill.sources.folder import Folder
from pystreams.backfill.sources.parquet_files import ParquetSource

#: A round is shorter than this: older drafts are leftovers.
_STALE_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Drafts(FilesInFolder):
    """Files before their commit. ``name_of_round`` is the folder of the round among the drafts."""

    name_of_round: str

    def create(self, file: str) -> Arrow:
        return self.folder.create(draft_of(self.name_of_round, file))


class FolderTarget:
    """Implements ``ArchiveTarget``."""

    def __init__(self, place: str) -> None:
        self._folder = Folder(place)
        self._log = ArchiveLog(self._folder)

    @property
    def shown(self) -> str:
        return self._folder.shown

    def open(self, now_ms: int) -> int:
        entries = self._log.entries()
        if entries:
            self._log.settle(entries[-1])
        else:
            require_own(self._folder)
        self._log.clean(before_ms=now_ms - _STALE_MS)
        return len(entries)

    def stored(self) -> ParquetSource | None:
        return ParquetSource(self._folder.path) if self._log.exists() else None

    def begin(self, now_ms: int) -> _FolderRound:
        return _FolderRound(self._log, Drafts(self._folder, f"{now_ms}-{uuid4().hex[:8]}"))

    def finish(self, file_offsets_max: int) -> Merged:
        # No merging: readers without the log would see records twice, or not at all, while files change places.
        return Merged()


@dataclass(frozen=True, slots=True)
class _FolderRound:
    """Implements ``Round``."""

    log: ArchiveLog
    files: Drafts

    def commit(self, number: int, content: RoundContent) -> bool:
        name = self.files.name_of_round
        entry = ArchiveEntry(content.time_ms, content.source, name, content.counts, content.files)
        if not self.log.append(number, entry):
            return False
        self.log.settle(entry)
        self.log.discard(name)
        return True

    def discard(self) -> None:
        self.log.discard(self.files.name_of_round)
