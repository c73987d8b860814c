"""The log of an archive: one file for each commit, beside the Parquet files.

    <archive>/_pystreams_archive/00000003.json                              an entry; its appearance is the commit
    <archive>/_pystreams_archive/drafts/<run>/topic=.../partition=.../...   the files of a run before its commit
    <archive>/topic=lines/partition=0/...parquet                            their place after the commit

Readers of Parquet folders ignore names that begin with ``_``. Committed files are moved to their place right after the
commit. If this fails for some, readers and the next run find them among the drafts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pystreams.backfill.sources.file_index import Index, Piece
from pystreams.backfill.sources.folder import Folder
from pystreams.backfill.sources.source import Span
from pystreams.errors import StateError
from pystreams.ids import TopicPartition

FORMAT_VERSION: Final = 1

_LOG: Final = "_pystreams_archive"
_DRAFTS: Final = f"{_LOG}/drafts"


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """Offsets ``start`` to ``end`` (exclusive) of a partition. ``file`` is None if no record lies within; then the
    offsets of the first and last record and the times (ms) are -1."""

    partition: TopicPartition
    start: int
    end: int
    file: str | None = None
    rows: int = 0
    first_offset: int = -1
    last_offset: int = -1
    min_timestamp: int = -1
    max_timestamp: int = -1
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """The files that one commit added. ``drafts`` is the folder in which the files were written (``<time in
    ms>-<random>``), ``counts`` the number of partitions of the topics at that time."""

    time_ms: int
    source: str
    drafts: str
    counts: Mapping[str, int]
    files: tuple[ArchivedFile, ...]

    def to_json(self) -> bytes:
        files = [
            [
                *file.partition,
                file.start,
                file.end,
                file.file,
                file.rows,
                file.first_offset,
                file.last_offset,
                file.min_timestamp,
                file.max_timestamp,
                file.size_bytes,
            ]
            for file in self.files
        ]
        content = {
            "format": FORMAT_VERSION,
            "time_ms": self.time_ms,
            "source": self.source,
            "drafts": self.drafts,
            "partitions": dict(sorted(self.counts.items())),
            "files": files,
        }
        return json.dumps(content).encode()

    @classmethod
    def from_json(cls, text: bytes, where: str) -> ArchiveEntry:
        """Raises ``StateError`` for text that is not an entry, or one of another format."""
        try:
            content: dict[str, Any] = json.loads(text)
            version = content["format"]
            if version == FORMAT_VERSION:
                return cls(
                    content["time_ms"],
                    content["source"],
                    content["drafts"],
                    content["partitions"],
                    tuple(ArchivedFile(TopicPartition(t, p), *rest) for t, p, *rest in content["files"]),
                )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                "this is not an entry of an archive's log",
                where=where,
                why=f"{type(error).__name__}: {error}",
            ) from error
        raise StateError(
            f"the archive's log has format {version}, this version of pystreams reads {FORMAT_VERSION}",
            where=where,
            hint="read it with the version that wrote it",
        )


class ArchiveLog:
    """The log of one archive."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def exists(self) -> bool:
        """Whether the folder is an archive with a log."""
        return self.folder.exists(_LOG)

    def entries(self) -> list[ArchiveEntry]:
        """All entries, in order. Raises ``StateError`` for one that is missing or damaged."""
        names = [name for name in self.folder.names(_LOG) if name.endswith(".json")]
        for number, name in enumerate(names):
            if name != _name(number):
                raise StateError(
                    f"the archive's log lacks its entry {number}",
                    where=self.folder.shown,
                    hint="restore the file: without it the content of the archive is unknown",
                )
        where = self.folder.shown
        return [ArchiveEntry.from_json(self.folder.read(f"{_LOG}/{n}"), f"{where}, {n}") for n in names]

    def append(self, number: int, entry: ArchiveEntry) -> bool:
        """Commit; False if another run has committed an entry with that number."""
        return self.folder.publish(f"{_LOG}/{_name(number)}", entry.to_json())

    def settle(self, entry: ArchiveEntry) -> None:
        """Move the files of a committed entry to their places, unless they are there."""
        for file in entry.files:
            if file.file is None:
                continue
            draft = draft_of(entry.drafts, file.file)
            if self.folder.exists(draft):
                try:
                    self.folder.move(draft, file.file)
                except FileNotFoundError:
                    if not self.folder.exists(file.file):  # nobody else was quicker
                        raise

    def discard(self, drafts: str) -> None:
        """Delete the rest of a round's drafts."""
        self.folder.delete(f"{_DRAFTS}/{drafts}")

    def clean(self, before_ms: int) -> None:
        """Delete the drafts of rounds that began before a time and did not come to their commit; their names begin with
        the time. Committed entries must be settled."""
        for drafts in self.folder.folders(_DRAFTS):
            if int(drafts.partition("-")[0]) < before_ms:
                self.discard(drafts)

    def index(self) -> Index:
        """The records that are committed."""
        entries = self.entries()
        counts: dict[str, int] = {}
        pieces: dict[TopicPartition, list[Piece]] = {}
        covered: dict[TopicPartition, list[Span]] = {}
        for entry in entries:
            for topic, count in entry.counts.items():
                counts[topic] = max(counts.get(topic, 0), count)
            for file in entry.files if entry is not entries[-1] else self._where_they_are(entry):
                cover(covered.setdefault(file.partition, []), (file.start, file.end))
                if file.file is not None:
                    piece = Piece(
                        file.file, file.rows, file.first_offset, file.last_offset, file.max_timestamp
                    )
                    pieces.setdefault(file.partition, []).append(piece)
        return Index(counts, pieces, covered)

    def _where_they_are(self, entry: ArchiveEntry) -> Sequence[ArchivedFile]:
        """Earlier entries are settled before a later one is committed; the last one may not be yet."""
        found = []
        for file in entry.files:
            draft = None if file.file is None else draft_of(entry.drafts, file.file)
            found.append(replace(file, file=draft) if draft and self.folder.exists(draft) else file)
        return found


def draft_of(drafts: str, file: str) -> str:
    """The path to which a run writes a file."""
    return f"{_DRAFTS}/{drafts}/{file}"


def settled(file: str) -> str:
    """The path of a draft after its commit; other files keep their path."""
    return file.removeprefix(f"{_DRAFTS}/").partition("/")[2] if file.startswith(f"{_DRAFTS}/") else file


def cover(spans: list[Span], span: Span) -> None:
    """Add a span behind all others; those that touch become one."""
    if spans and spans[-1][1] == span[0]:
        spans[-1] = (spans[-1][0], span[1])
    elif not spans or span[0] < span[1]:
        spans.append(span)


def _name(number: int) -> str:
    return f"{number:08}.json"
