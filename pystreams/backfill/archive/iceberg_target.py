"""An archive in a table of Iceberg, written through pyiceberg: no Spark is needed.

A round is one commit, which adds its files and sets the note of what was archived (``sources/lake/content``). It is
made for the snapshot that this run has seen last: if somebody else has added one, Iceberg refuses it. Then the note
says whether that was another run, or only somebody who has compacted the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pystreams.backfill.archive.merging import merge
from pystreams.backfill.archive.pieces import file_name
from pystreams.backfill.archive.target import Merged, RoundContent, RoundFiles
from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow
from pystreams.backfill.sources.archive_log import ArchivedFile
from pystreams.backfill.sources.folder import hive_folder, writing_to
from pystreams.backfill.sources.lake.content import PROPERTY, Content, Note
from pystreams.backfill.sources.lake.iceberg import (
    IcebergArchive,
    catalog_of,
    content_of,
    files_of,
    open_table,
)
from pystreams.backfill.sources.lake.source import LakeArchive, TableFile
from pystreams.errors import StateError
from pystreams.ids import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.table import Table, Transaction

_ATTEMPTS_MAX: Final = 5
#: Metadata does not grow with each run.
_PROPERTIES: Final = {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class TableLocation:
    """Implements ``RoundFiles``: files are where they will be. Before the commit no reader knows of them. ``io`` opens
    files as the table's catalog wants them opened."""

    place: str
    location: str
    io: Any

    @property
    def schema(self) -> Arrow:
        return RECORD_SCHEMA

    def name(self, partition: TopicPartition, start: int) -> str:
        folder = hive_folder(topic=partition.topic, partition=partition.partition)
        return f"{self.location}/data/{folder}/{file_name(start)}"

    def create(self, file: str) -> Arrow:
        with self.written():
            return self.io.new_output(file).create()

    def written(self) -> AbstractContextManager[None]:
        return writing_to(self.place)


class IcebergTarget:
    """Implements ``ArchiveTarget`` and ``Mergeable``: the table ``CATALOG.NAMESPACE.TABLE``. It is made if there is
    none, its namespace as well. For ``properties`` see ``IcebergArchive``."""

    def __init__(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        self._name = name
        self._properties = properties or {}
        self._table: Table | None = None
        self._content = Content()

    @property
    def shown(self) -> str:
        return self._name

    def open(self, now_ms: int) -> int:
        self._table = open_table(self._name, self._properties)
        if self._table is None:
            return 0
        number, self._content = content_of(self._table, self.shown)
        return number

    def stored(self) -> IcebergArchive | None:
        return None if self._table is None else IcebergArchive(self._name, properties=self._properties)

    def begin(self, now_ms: int) -> _IcebergRound:
        return _IcebergRound(self, self._location())

    def commit(self, number: int, content: RoundContent) -> bool:
        """See ``Round.commit``."""
        added = [(file.partition, (file.start, file.end)) for file in content.files]
        note = Note(number, self._content.grown(content.counts, added), self._content)
        files = [file.file for file in content.files if file.file is not None]
        for _ in range(_ATTEMPTS_MAX):
            if self._add(files, number, note):
                self._content = note.after
                return True
            if content_of(self._made().refresh(), self.shown) != (number, self._content):
                return False
        raise StateError(
            "the table changes all the time",
            where=f"Iceberg table {self.shown}, commit {number}",
            hint="run it again when nobody compacts the table",
        )

    def _add(self, files: list[str], number: int, note: Note) -> bool:
        summary = {f"{PROPERTY}.commit": str(number)}
        with self._changing() as change:
            change.transaction.set_properties({PROPERTY: note.to_text()})
            if files:
                change.transaction.add_files(files, summary, check_duplicate_files=False)
            else:
                # A snapshot all the same: it is what two runs at once cannot both add.
                change.transaction.update_snapshot(summary).fast_append().commit()
        return change.landed

    def merge(self, file_offsets_max: int) -> Merged:
        return Merged() if self._table is None else merge(self, file_offsets_max)

    # For Mergeable

    def files(self) -> tuple[LakeArchive, Sequence[TableFile]]:
        table = self._made()
        archive = IcebergArchive(self._name, properties=self._properties)
        files = files_of(table, self.shown)
        archive.know(files)
        archive.open_with(table.io)
        return archive, files

    def new_files(self) -> RoundFiles:
        return self._location()

    def replace(self, old: Sequence[TableFile], new: ArchivedFile) -> bool:
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        table = self._made()
        assert new.file is not None
        names = {file.file for file in old}
        removed = [task.file for task in table.scan().plan_files() if task.file.file_path in names]
        added = parquet_file_to_data_file(table.io, table.metadata, new.file)
        with self._changing() as change, change.transaction.update_snapshot().overwrite() as snapshot:
            for file in removed:
                snapshot.delete_data_file(file)
            snapshot.append_data_file(added)
        return change.landed

    def _location(self) -> TableLocation:
        table = self._made()
        return TableLocation(self.shown, table.location(), table.io)

    @contextmanager
    def _changing(self) -> Iterator[_Change]:
        """A transaction, committed at the end. Raises ``StateError`` if it is not known what came of it."""
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        table = self._made()
        # pyiceberg would try again behind somebody else's commit. Only this object has the property, not the table.
        once = {**table.metadata.properties, "commit.retry.num-retries": "0"}
        table.metadata = table.metadata.model_copy(update={"properties": once})
        change = _Change(table.transaction())
        try:
            yield change
            change.transaction.commit_transaction()
        except (CommitFailedException, ValidationException):
            change.landed = False
        except Exception as error:
            raise StateError(
                "the table does not take the commit",
                where=f"Iceberg table {self.shown}",
                why=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}",
                hint="correct that, and run it again: what was committed is not archived twice",
            ) from error

    def _made(self) -> Table:
        """The table, which is made if there is none."""
        if self._table is None:
            catalog, identifier = catalog_of(self._name, self._properties)
            catalog.create_namespace_if_not_exists(identifier[:-1])
            note = Note(-1, Content(), Content())
            properties = {**_PROPERTIES, PROPERTY: note.to_text()}
            made = catalog.create_table_transaction(identifier, RECORD_SCHEMA, properties=properties)
            with made.update_spec() as spec:
                spec.add_identity("topic").add_identity("partition")
            made.commit_transaction()
            self._table = catalog.load_table(identifier)
        return self._table


@dataclass(frozen=True, slots=True)
class _IcebergRound:
    """Implements ``Round``."""

    target: IcebergTarget
    files: TableLocation

    def commit(self, number: int, content: RoundContent) -> bool:
        return self.target.commit(number, content)

    def discard(self, written: Sequence[ArchivedFile]) -> None:
        for file in written:
            if file.file is not None:
                self.files.io.delete(file.file)


@dataclass(slots=True)
class _Change:
    """``landed`` is False if somebody else's commit was in the way."""

    transaction: Transaction
    landed: bool = True
