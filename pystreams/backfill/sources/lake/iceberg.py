"""An archive in a table of Iceberg, read by pyiceberg through the table's catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.file_index import Piece
from pystreams.backfill.sources.lake.content import PROPERTY, Content, Note
from pystreams.backfill.sources.lake.packages import require_package
from pystreams.backfill.sources.lake.source import LakeArchive, TableFile
from pystreams.errors import ConfigError, StateError
from pystreams.ids import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table


@dataclass(frozen=True)
class IcebergArchive(LakeArchive):
    """An archive that ``pystreams archive --format iceberg`` has written. ``path`` is ``CATALOG.NAMESPACE.TABLE``.

    Where the catalog is, pyiceberg's configuration says (``~/.pyiceberg.yaml``, ``PYICEBERG_CATALOG__LAKE__URI``), or
    ``properties`` do, as ``pyiceberg.catalog.load_catalog`` takes them.
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
        table = open_table(self.path, self.properties)
        if table is None:
            raise ConfigError(f"there is no Iceberg table {self.shown}", hint="check its name")
        _, content = content_of(table, self.shown)
        self.open_with(table.io)
        return content, files_of(table, self.shown)

    def open_with(self, io: Any) -> None:
        """Open files as the table's catalog wants them opened."""
        self._opener["io"] = io

    def open_file(self, file: str) -> Arrow:
        return self._opener["io"].new_input(file).open()


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
    try:
        return load_catalog(catalog, **properties), tuple(identifier)
    except Exception as error:  # noqa: BLE001 - each kind of catalog has errors of its own
        raise _unreachable(catalog, error) from None


def open_table(name: str, properties: Mapping[str, str]) -> Table | None:
    """The table as it is now; None if there is none. Raises ``ConfigError`` if its catalog cannot be reached."""
    catalog, identifier = catalog_of(name, properties)
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        return catalog.load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except Exception as error:  # noqa: BLE001 - each kind of catalog has errors of its own
        raise _unreachable(catalog.name, error) from None


def content_of(table: Table, where: str) -> tuple[int, Content]:
    """The number of commits, and what they archived. Raises ``StateError`` for a table that is not an archive."""
    text = table.properties.get(PROPERTY)
    if text is None:
        raise StateError(
            f"the Iceberg table {where} is not an archive that pystreams wrote",
            hint="read it as a table, with the names of its columns: --source "
            "'TOPIC=iceberg:NAME?key=COLUMN&timestamp=COLUMN'; archive to another table",
        )
    note = Note.from_text(text, where)
    return note.number + 1, note.after


def files_of(table: Table, where: str) -> list[TableFile]:
    """The table's files. Raises ``StateError`` if rows of them are marked as deleted."""
    from pyiceberg.conversions import from_bytes
    from pyiceberg.types import LongType

    ids = {column.name: column.field_id for column in table.schema().columns}
    files: list[TableFile] = []
    for task in table.scan().plan_files():
        if task.delete_files:
            raise StateError(
                "rows of the archive are marked as deleted, which only Spark and the like can read",
                where=f"Iceberg table {where}",
                hint="have the files rewritten: CALL CATALOG.system.rewrite_data_files(…)",
            )
        of, lower, upper = task.file, task.file.lower_bounds or {}, task.file.upper_bounds or {}
        bounds = lower.get(ids["offset"]), upper.get(ids["offset"]), upper.get(ids["timestamp"])
        numbers = [int(from_bytes(LongType(), bound)) for bound in bounds if bound is not None]
        piece = Piece(of.file_path, of.record_count, *numbers) if len(numbers) == len(bounds) else None
        partition = TopicPartition(of.partition[0], of.partition[1])
        files.append(TableFile(partition, of.file_path, of.file_size_in_bytes, piece))
    return files


def _unreachable(catalog: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"the catalog {catalog} cannot be reached",
        why=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}",
        hint="say where it is in ~/.pyiceberg.yaml, or with variables such as "
        f"PYICEBERG_CATALOG__{catalog.upper()}__URI",
    )
