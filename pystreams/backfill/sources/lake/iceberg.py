"""An archive in a table of Iceberg, read by pyiceberg through the table's catalog.

A round is one commit, which sets the note of what was archived and adds a snapshot with the note's number. Rolled back
to an older snapshot, a table keeps its note: then the numbers differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow
from pystreams.backfill.sources.file_index import Piece
from pystreams.backfill.sources.lake.content import PROPERTY, CommitNote, Content
from pystreams.backfill.sources.lake.libraries import reading, reason, require_package
from pystreams.backfill.sources.lake.source import LakeArchive, MarkedAsDeletedError, TableFile
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_PARTITIONED_BY: Final = ("topic", "partition")
#: The number of a round, in the summary of its snapshot.
COMMIT: Final = f"{PROPERTY}.commit"


@dataclass(frozen=True)
class IcebergArchive(LakeArchive):
    """An archive that ``pystreams archive --format iceberg`` has written. ``path`` is ``CATALOG.NAMESPACE.TABLE``.

    The place of the catalog comes from pyiceberg's configuration (``~/.pyiceberg.yaml``,
    ``PYICEBERG_CATALOG__LAKE__URI``), or from ``properties``, which are those of ``pyiceberg.catalog.load_catalog``.
    """

    properties: Mapping[str, str] = field(default_factory=dict, repr=False, kw_only=True)
    #: How the table's files are opened; workers get it with the index.
    _opener: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    format_name: ClassVar[str] = "Iceberg"

    def __post_init__(self) -> None:
        name = self.path
        super().__post_init__()
        # A name, which is not relative to any folder.
        object.__setattr__(self, "path", name)

    @property
    def shown(self) -> str:
        return self.path

    def look(self) -> tuple[Content, list[TableFile]]:
        table = self._table()
        self.open_with(table.io)
        return content_of(table, self.shown)[1], [file for file, _ in files_of(table, self.shown)]

    def content(self) -> Content:
        return content_of(self._table(), self.shown)[1]

    def open_with(self, io: Any) -> None:
        """Open files as the table's catalog wants them opened."""
        self._opener["io"] = io

    def open_file(self, file: str) -> Arrow:
        return self._opener["io"].new_input(file).open()

    def _table(self) -> Table:
        table = open_table(self.path, self.properties)
        if table is None:
            raise ConfigError(f"there is no Iceberg table {self.shown}", hint="check its name")
        return table


def catalog_of(name: str, properties: Mapping[str, str]) -> tuple[Catalog, tuple[str, ...]]:
    """The catalog of a table, and the table's identifier there. Raises ``ConfigError``."""
    require_package("pyiceberg", "iceberg")
    from pyiceberg.catalog import load_catalog

    catalog, *identifier = name.split(".")
    if len(identifier) < 2:
        raise ConfigError(
            f"{name!r} does not name a table of Iceberg",
            hint="write CATALOG.NAMESPACE.TABLE, as in lake.shop.archive",
        )
    with asking(catalog):
        return load_catalog(catalog, **properties), tuple(identifier)


@contextmanager
def asking(catalog: str) -> Iterator[None]:
    """A context for requests to a catalog. Raises ``ConfigError`` for all of its errors, because each kind of catalog
    has its own."""
    try:
        yield
    except Exception as error:
        raise ConfigError(
            f"the catalog {catalog} cannot be reached, or refuses what was asked",
            why=reason(error),
            hint="give its address and your credentials in ~/.pyiceberg.yaml, or with variables such as "
            f"PYICEBERG_CATALOG__{catalog.upper()}__URI",
        ) from error


def open_table(name: str, properties: Mapping[str, str]) -> Table | None:
    """The table as it is now; None if there is none. Raises ``ConfigError`` if its catalog cannot be reached."""
    catalog, identifier = catalog_of(name, properties)
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    with asking(catalog.name):
        try:
            return catalog.load_table(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None


def content_of(table: Table, where: str) -> tuple[int, Content]:
    """The number of commits, and what they archived. Raises ``StateError`` for a table that is not an archive, or was
    rolled back."""
    text = table.properties.get(PROPERTY)
    if text is None:
        raise StateError(
            f"the Iceberg table {where} is not an archive that pystreams wrote",
            hint="read it as a table, with the names of its columns: --source "
            "'TOPIC=iceberg:NAME?key=COLUMN&timestamp=COLUMN'; archive to another table",
        )
    note = CommitNote.from_text(text, where)
    _require_form(table, where)
    if _is_rolled_back(table, note):
        raise StateError(
            "the table was rolled back to an older snapshot",
            where=f"Iceberg table {where}",
            why="its newest archived records are in no current snapshot, and nothing says where they end",
            hint="make the newest snapshot current again, or archive to another table",
        )
    return note.number + 1, note.after


def _is_rolled_back(table: Table, note: CommitNote) -> bool:
    """Snapshots that have expired do not say it; the present one has a sequence number."""
    from pyiceberg.table.snapshots import ancestors_of

    current = table.current_snapshot()
    if current is not None and (current.sequence_number or 0) <= note.sequence:
        return True

    def number(snapshot: Any) -> int | None:
        text = snapshot.summary and snapshot.summary.additional_properties.get(COMMIT)
        return None if text is None else int(text)

    numbers = (number(snapshot) for snapshot in ancestors_of(current, table.metadata))
    newest = next((one for one in numbers if one is not None), None)
    if newest is not None:
        return newest < note.number
    return any(number(snapshot) == note.number for snapshot in table.snapshots())


def files_of(table: Table, where: str) -> list[tuple[TableFile, DataFile]]:
    """The table's files. Raises ``MarkedAsDeletedError``; ``StateError`` for a table that is partitioned otherwise than
    pystreams did it."""
    from pyiceberg.conversions import from_bytes
    from pyiceberg.types import LongType

    files: list[tuple[TableFile, DataFile]] = []
    with reading(f"Iceberg table {where}"):
        ids = {column.name: column.field_id for column in table.schema().columns}
        for task in table.scan().plan_files():
            if task.delete_files:
                remedy = "CALL CATALOG.system.rewrite_data_files(…)"
                raise MarkedAsDeletedError(f"Iceberg table {where}", remedy)
            of, lower, upper = task.file, task.file.lower_bounds or {}, task.file.upper_bounds or {}
            bounds = lower.get(ids["offset"]), upper.get(ids["offset"]), upper.get(ids["timestamp"])
            numbers = [int(from_bytes(LongType(), bound)) for bound in bounds if bound is not None]
            piece = Piece(of.file_path, of.record_count, *numbers) if len(numbers) == len(bounds) else None
            topic, partition = _places(table, of.spec_id, where)
            place = TopicPartition(of.partition[topic], of.partition[partition])
            files.append((TableFile(place, of.file_path, of.file_size_in_bytes, piece), of))
    return files


def _require_form(table: Table, where: str) -> None:
    """Raises ``StateError`` for a table to which nothing can be added: without a column of a record, or partitioned
    otherwise than pystreams did it."""
    from pyiceberg.transforms import VoidTransform

    there = {column.name for column in table.schema().columns}
    fields = [part for part in table.spec().fields if not isinstance(part.transform, VoidTransform)]
    _places(table, table.metadata.default_spec_id, where)
    if len(fields) > len(_PARTITIONED_BY) or not there.issuperset(RECORD_SCHEMA.names):
        raise _other_form(where)


def _places(table: Table, spec_id: int, where: str) -> tuple[int, int]:
    """Where a partition of the table has topic and number. Raises ``StateError`` if it lacks one."""
    from pyiceberg.transforms import IdentityTransform

    ids = {column.name: column.field_id for column in table.schema().columns}
    found = {
        part.source_id: place
        for place, part in enumerate(table.specs()[spec_id].fields)
        if isinstance(part.transform, IdentityTransform)
    }
    topic, partition = (found.get(ids.get(name, -1)) for name in _PARTITIONED_BY)
    if topic is None or partition is None:
        raise _other_form(where)
    return topic, partition


def _other_form(where: str) -> StateError:
    return StateError(
        "the table is not partitioned by topic and partition any more, or lacks a column of a record",
        where=f"Iceberg table {where}",
        hint="undo that change of the table, or archive to another one",
    )
