"""An archive in a table of Delta Lake, read by delta-rs.

The note of what was archived is set before the commit of the files that it is about. The commit has the note's number
as its transaction (``txn``), so a reader knows whether the files are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import unquote

import pyarrow as pa

from pystreams.backfill.locations import shown
from pystreams.backfill.sources.file_index import Piece
from pystreams.backfill.sources.lake.content import PROPERTY, Content, Note
from pystreams.backfill.sources.lake.packages import require_package
from pystreams.backfill.sources.lake.source import LakeArchive, TableFile
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TopicPartition

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: The application of the commits' transactions.
APPLICATION: Final = "pystreams archive"


@dataclass(frozen=True)
class DeltaArchive(LakeArchive):
    """An archive that ``pystreams archive --format delta`` has written. ``path`` is its folder or URL."""

    format_name: ClassVar[str] = "Delta"

    @property
    def shown(self) -> str:
        return shown(self.path)

    def look(self) -> tuple[Content, list[TableFile]]:
        table = open_table(self.path)
        if table is None:
            raise ConfigError(f"there is no Delta table at {self.shown}", hint="check the path")
        _, content = content_of(table, self.shown)
        return content, files_of(table, self.shown)


def open_table(path: str) -> DeltaTable | None:
    """The table as it is now; None if there is none. Raises ``ConfigError`` if the package is missing, or the place
    cannot be reached."""
    require_package("deltalake", "delta")
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        return DeltaTable(url_of(path))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise ConfigError(f"the Delta table at {shown(path)} cannot be read", why=reason(error)) from None


def url_of(path: str) -> str:
    """A path or URL as delta-rs takes it."""
    return path.replace("s3a://", "s3://", 1)


def content_of(table: DeltaTable, where: str) -> tuple[int, Content]:
    """The number of commits, and what they archived. Raises ``StateError`` for a table that is not an archive."""
    text = table.metadata().configuration.get(PROPERTY)
    if text is None:
        raise StateError(
            f"the Delta table at {where} is not an archive that pystreams wrote",
            hint="read it as a table, with the names of its columns: --source "
            "'TOPIC=delta:PLACE?key=COLUMN&timestamp=COLUMN'; archive to another folder",
        )
    note, last = Note.from_text(text, where), table.transaction_version(APPLICATION)
    landed = last is not None and last >= note.number
    return (note.number + 1 if landed else note.number), (note.after if landed else note.before)


def files_of(table: DeltaTable, where: str) -> list[TableFile]:
    """The table's files. Raises ``StateError`` if rows of them are marked as deleted."""
    marked = pa.table(table.deletion_vectors())
    if marked.num_rows:
        raise StateError(
            "rows of the archive are marked as deleted, which only Spark and the like can read",
            where=f"Delta table {where}",
            hint="have the files rewritten: REORG TABLE delta.`PLACE` APPLY (PURGE)",
        )
    return list(_files(pa.table(table.get_add_actions(flatten=True)).to_pylist()))


def _files(actions: list[Mapping[str, Any]]) -> Iterator[TableFile]:
    for action in actions:
        file = unquote(action["path"])
        numbers = [int(action[name]) for name in _NUMBERS if action.get(name) is not None]
        piece = Piece(file, *numbers) if len(numbers) == len(_NUMBERS) else None
        partition = TopicPartition(action["partition.topic"], int(action["partition.partition"]))
        yield TableFile(partition, file, action["size_bytes"], piece)


#: The fields of a ``Piece`` in the table's statistics.
_NUMBERS: Final = ("num_records", "min.offset", "max.offset", "max.timestamp")


def reason(error: Exception) -> str:
    """The first line of an error, for people."""
    return shown((str(error).splitlines() or [type(error).__name__])[0])
