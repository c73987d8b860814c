"""An archive in a table of Delta Lake, read by delta-rs.

A round is two commits: the first one sets the note of what it archives, the second one adds the files. At its end a
run settles the last note. Before that, a reader looks whether the files are there. That also holds for a table that
somebody has restored to an older version: its note is restored as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import unquote

import pyarrow as pa

from pystreams.backfill.locations import is_url, shown
from pystreams.backfill.sources.file_index import Piece
from pystreams.backfill.sources.lake.content import PROPERTY, CommitNote, Content
from pystreams.backfill.sources.lake.libraries import reading, reason, require_package
from pystreams.backfill.sources.lake.source import LakeArchive, MarkedAsDeletedError, TableFile
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TopicPartition

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: The application of the commits' transactions; their versions are the notes' ids.
APPLICATION: Final = "pystreams archive"
#: The fields of a ``Piece`` in the table's statistics.
_NUMBERS: Final = ("num_records", "min.offset", "max.offset", "max.timestamp")


@dataclass(frozen=True)
class DeltaArchive(LakeArchive):
    """An archive that ``pystreams archive --format delta`` has written. ``path`` is its folder or URL."""

    format_name: ClassVar[str] = "Delta"

    @property
    def shown(self) -> str:
        return shown(self.path)

    def look(self) -> tuple[Content, list[TableFile]]:
        table = self._table()
        return content_of(table, self.shown)[1], files_of(table, self.shown)

    def content(self) -> Content:
        return content_of(self._table(), self.shown)[1]

    def _table(self) -> DeltaTable:
        table = open_table(self.path)
        if table is None:
            raise ConfigError(f"there is no Delta table at {self.shown}", hint="check the path")
        return table


def open_table(path: str) -> DeltaTable | None:
    """The table as it is now; None if there is none. Raises ``ConfigError`` if the package is missing, or the place
    cannot be reached."""
    require_package("deltalake", "delta")
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    url = url_of(path)
    try:
        return DeltaTable(url)
    except TableNotFoundError:
        return None
    except Exception as error:  # noqa: BLE001 - each store has errors of its own
        raise ConfigError(
            f"the Delta table at {shown(path)} cannot be opened", why=reason(error), hint="check the place"
        ) from None


def url_of(path: str) -> str:
    """A path or URL as delta-rs takes it. Raises ``ConfigError`` for one of which it would make another place."""
    if not is_url(path):
        if "%" in path:
            raise ConfigError(
                f"the path {path} has a %",
                why="delta-rs takes it for the beginning of an escape, and would write elsewhere",
                hint="choose a folder without it",
            )
        return path
    login, at, _ = path.partition("://")[2].partition("/")[0].rpartition("@")
    # A container of Azure stands before the sign, too.
    if "?" in path or (at and ":" in login):
        raise ConfigError(
            f"the URL {shown(path)} has settings or a login",
            why="a Delta table is reached by two libraries, which have only the environment in common",
            hint="give them as variables of the environment (of S3: AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL)",
        )
    return path.replace("s3a://", "s3://", 1)


def content_of(table: DeltaTable, where: str) -> tuple[int, Content]:
    """The number of commits, and what they archived. Raises ``StateError`` for a table that is not an archive."""
    with reading(f"Delta table {where}"):
        text = table.metadata().configuration.get(PROPERTY)
    if text is None:
        raise StateError(
            f"the Delta table at {where} is not an archive that pystreams wrote",
            hint="read it as a table, with the names of its columns: --source "
            "'TOPIC=delta:PLACE?key=COLUMN&timestamp=COLUMN'; archive to another folder",
        )
    note = CommitNote.from_text(text, where)
    if note.before is None or landed(table, note, where):
        return note.number + 1, note.after
    return note.number, note.before


def landed(table: DeltaTable, note: CommitNote, where: str) -> bool:
    """Whether the files of a note were committed."""
    before = note.before or Content()
    ends = {p: before.end(p) for p in note.after.covered if note.after.end(p) > before.end(p)}
    with reading(f"Delta table {where}"):
        if not note.records:
            return table.transaction_version(APPLICATION) == note.id
        files = [file for file in _files(table) if file.partition in ends]
    known = [file for file in files if file.piece is not None]
    if any(file.piece.last_offset >= ends[file.partition] for file in known if file.piece is not None):
        return True
    others = DeltaArchive(table.table_uri)
    others.know(files)
    return any(
        piece.last_offset >= ends[file.partition]
        for file in files
        if file.piece is None
        for _, piece in others.pieces(file.file)
    )


def files_of(table: DeltaTable, where: str) -> list[TableFile]:
    """The table's files. Raises ``MarkedAsDeletedError``."""
    with reading(f"Delta table {where}"):
        if pa.table(table.deletion_vectors()).num_rows:
            raise MarkedAsDeletedError(f"Delta table {where}", "REORG TABLE delta.`PLACE` APPLY (PURGE)")
        return list(_files(table))


def _files(table: DeltaTable) -> Iterator[TableFile]:
    actions: Sequence[Mapping[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    for action in actions:
        file = unquote(action["path"])
        numbers = [int(action[name]) for name in _NUMBERS if action.get(name) is not None]
        piece = Piece(file, *numbers) if len(numbers) == len(_NUMBERS) else None
        partition = TopicPartition(action["partition.topic"], int(action["partition.partition"]))
        yield TableFile(partition, file, action["size_bytes"], piece)
