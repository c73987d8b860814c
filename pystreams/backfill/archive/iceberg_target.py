"""An archive in a table of Iceberg, written through pyiceberg: no Spark is needed.

A round is one commit, which adds its files and sets the note of the archived ranges (``sources/lake/content``). If
there was another commit meanwhile, the note shows whether it came from another run, or only from a compaction of the
table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pystreams.backfill.archive.merging import Merge, merge
from pystreams.backfill.archive.pieces import file_name
from pystreams.backfill.archive.target import Merged, RoundContent, RoundFiles, TableRound
from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow
from pystreams.backfill.sources.folder import hive_folder, writing_to
from pystreams.backfill.sources.lake.content import PROPERTY, CommitNote, Content
from pystreams.backfill.sources.lake.iceberg import (
    COMMIT,
    IcebergArchive,
    asking,
    catalog_of,
    content_of,
    files_of,
    open_table,
)
from pystreams.backfill.sources.lake.libraries import busy, changing
from pystreams.backfill.sources.lake.source import LakeArchive, TableFile
from pystreams.ids import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

log = logging.getLogger(__name__)

#: Few manifests, and old files of metadata are deleted, however many runs there are.
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
        #: The files of the last look, as the library knows them.
        self._data_files: dict[str, DataFile] = {}

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

    def begin(self, now_ms: int) -> TableRound:
        return TableRound(self, self._location())

    def commit(self, number: int, content: RoundContent) -> bool:
        """See ``Round.commit``."""
        from pyiceberg.exceptions import CommitFailedException

        added = [(file.partition, (file.start, file.end)) for file in content.files]
        records = sum(file.rows for file in content.files)
        after = self._content.grown(content.counts, added)
        files = [file.file for file in content.files if file.file is not None]
        expected, where = (number, self._content), self.shown

        def look() -> None:
            text = table.properties.get(PROPERTY)
            if text != note.to_text() and content_of(table, where) != expected:
                raise _OtherRunError

        with changing(self._where):
            table = self._made()
            note = CommitNote(number, after, records=records, sequence=table.last_sequence_number)
            try:
                look()
                _watch_commits(table, look)
                with table.transaction() as change:
                    change.set_properties({PROPERTY: note.to_text()})
                    if files:
                        change.add_files(files, {COMMIT: str(number)}, check_duplicate_files=False)
                    else:
                        # Add a snapshot nevertheless, because two concurrent runs cannot both add it.
                        change.update_snapshot({COMMIT: str(number)}).fast_append().commit()
            except (_OtherRunError, CommitFailedException):
                self._load()
                if self._made().properties.get(PROPERTY) != note.to_text():
                    return self._refused(expected)
            self._load()
        self._content = note.after
        return True

    def _refused(self, expected: tuple[int, Content]) -> bool:
        if content_of(self._made(), self.shown) != expected:
            return False
        raise busy(self._where)

    def finish(self, file_offsets_max: int) -> Merged:
        return Merged() if self._table is None else merge(self, file_offsets_max)

    # For Mergeable

    def files(self) -> tuple[LakeArchive, Sequence[TableFile]]:
        with changing(self._where):
            self._load()
        table, archive = self._made(), IcebergArchive(self._name, properties=self._properties)
        found = files_of(table, self.shown)
        self._data_files = {file.file: data_file for file, data_file in found}
        files = [file for file, _ in found]
        archive.know(files)
        archive.open_with(table.io)
        return archive, files

    def new_files(self) -> RoundFiles:
        return self._location()

    def replace(self, merges: Sequence[Merge]) -> bool:
        from pyiceberg.exceptions import CommitFailedException, ValidationException
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        with changing(self._where):
            table = self._made()
            _watch_commits(table)
            try:
                with table.transaction() as change, change.update_snapshot().overwrite() as snapshot:
                    for old, new in merges:
                        assert new.file is not None
                        for file in old:
                            snapshot.delete_data_file(self._data_files[file.file])
                        snapshot.append_data_file(
                            parquet_file_to_data_file(table.io, table.metadata, new.file)
                        )
            except (CommitFailedException, ValidationException):
                return False
        return True

    def clean(self) -> None:
        """Old snapshots have the files still, and expire as the owner of the table wants."""

    @property
    def _where(self) -> str:
        return f"Iceberg table {self.shown}"

    def _location(self) -> TableLocation:
        table = self._made()
        return TableLocation(self.shown, table.location(), table.io)

    def _load(self) -> None:
        """The table as it is now."""
        self._table = open_table(self._name, self._properties)

    def _made(self) -> Table:
        """The table, which is made if there is none; if another run has just made one, it is that."""
        from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, TableAlreadyExistsError

        if self._table is None:
            catalog, identifier = catalog_of(self._name, self._properties)
            with asking(catalog.name):
                try:
                    try:
                        _make(catalog, identifier)
                    except NoSuchNamespaceError:
                        catalog.create_namespace_if_not_exists(identifier[:-1])
                        _make(catalog, identifier)
                except (TableAlreadyExistsError, CommitFailedException):
                    log.info("another run has just made the table %s", self._name)
                self._table = catalog.load_table(identifier)
        return self._table


class _OtherRunError(Exception):
    """Another run has committed meanwhile."""


def _watch_commits(table: Table, look: Callable[[], None] = lambda: None) -> None:
    """A commit that was refused may have landed, if it was sent twice: then it counts, and pyiceberg does not delete
    its files. Otherwise have a ``look`` at the table before pyiceberg commits again, behind somebody else's commit."""
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.table.update import AddSnapshotUpdate

    commit = table._do_commit

    def commit_and_look(updates: tuple[Any, ...], requirements: tuple[Any, ...]) -> None:
        try:
            commit(updates, requirements)
        except CommitFailedException:
            table.refresh()
            added = [one.snapshot.snapshot_id for one in updates if isinstance(one, AddSnapshotUpdate)]
            if not any(table.metadata.snapshot_by_id(number) for number in added):
                look()
                raise

    vars(table)["_do_commit"] = commit_and_look


def _make(catalog: Catalog, identifier: tuple[str, ...]) -> None:
    properties = {**_PROPERTIES, PROPERTY: CommitNote(-1, Content()).to_text()}
    made = catalog.create_table_transaction(identifier, RECORD_SCHEMA, properties=properties)
    with made.update_spec() as spec:
        spec.add_identity("topic").add_identity("partition")
    made.commit_transaction()
