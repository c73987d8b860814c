"""An archive in a table of Delta Lake, written through delta-rs: no Spark is needed.

A round takes two commits of the table. The first one sets the note of what will be archived (``sources/lake/content``),
only for the version of the table that this run has read. The second one adds the files: Delta refuses it if another run
has set a note in between. So one of two concurrent runs is refused, and readers can find out whether a note's files
are committed (``sources/lake/delta``). At its end a run settles its last note, so that readers need not check it any
more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pystreams.backfill.archive.checks import require_room_for_table
from pystreams.backfill.archive.merging import Merge, merge
from pystreams.backfill.archive.pieces import FilesInFolder
from pystreams.backfill.archive.target import Merged, RoundContent, RoundFiles, TableRound
from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow
from pystreams.backfill.locations import absolute, shown
from pystreams.backfill.sources.archive_log import ArchivedFile
from pystreams.backfill.sources.folder import Folder
from pystreams.backfill.sources.lake.content import PROPERTY, CommitNote, Content
from pystreams.backfill.sources.lake.delta import (
    APPLICATION,
    DeltaArchive,
    content_of,
    files_of,
    landed,
    open_table,
    url_of,
)
from pystreams.backfill.sources.lake.libraries import busy, changing
from pystreams.backfill.sources.lake.source import LakeArchive, TableFile
from pystreams.clock import SystemClock
from pystreams.ids import TopicPartition

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction

_PARTITIONED_BY: Final = ["topic", "partition"]
#: Delta on Spark refuses tables in whose lists something must not be null.
_TABLE_SCHEMA: Final[Arrow] = pa.schema(
    [
        *(column for column in RECORD_SCHEMA if column.name != "headers"),
        ("headers", pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))),
    ]
)
_ATTEMPTS_MAX: Final = 10


class DeltaTarget:
    """Implements ``ArchiveTarget`` and ``Mergeable``: the table in a folder, or at a URL. It is made if there is
    none."""

    def __init__(self, place: str) -> None:
        self._path = absolute(place)
        self._folder = Folder(self._path)
        self._table: DeltaTable | None = None
        self._content = Content()

    @property
    def shown(self) -> str:
        return shown(self._path)

    def open(self, now_ms: int) -> int:
        self._table = open_table(self._path)
        if self._table is None:
            require_room_for_table(self._folder)
            return 0
        number, self._content = content_of(self._table, self.shown)
        return number

    def stored(self) -> DeltaArchive | None:
        return None if self._table is None else DeltaArchive(self._path)

    def begin(self, now_ms: int) -> TableRound:
        self._made()
        return TableRound(self, FilesInFolder(self._folder))

    def commit(self, number: int, content: RoundContent) -> bool:
        """See ``Round.commit``."""
        from deltalake import CommitProperties, Transaction
        from deltalake.exceptions import CommitFailedError

        added = [(file.partition, (file.start, file.end)) for file in content.files]
        records = sum(file.rows for file in content.files)
        note = CommitNote(number, self._content.grown(content.counts, added), self._content, records)
        if not self._announce(note):
            return False
        files = [_added(file) for file in content.files if file.file is not None]
        properties = CommitProperties(app_transactions=[Transaction(APPLICATION, note.id)])
        with changing(self._where):
            try:
                self._write(files, properties)
            except CommitFailedError:
                # Perhaps of a commit that was sent twice, and has landed at the first time.
                if not self._is_there(note):
                    return self._refused(note)
        self._content = note.after
        return True

    def finish(self, file_offsets_max: int) -> Merged:
        if self._table is None:
            return Merged()
        self._settle(self._table)
        return merge(self, file_offsets_max)

    # For Mergeable

    def files(self) -> tuple[LakeArchive, Sequence[TableFile]]:
        table, archive = self._made(), DeltaArchive(self._path)
        with changing(self._where):
            table.update_incremental()
        files = files_of(table, self.shown)
        archive.know(files)
        return archive, files

    def new_files(self) -> RoundFiles:
        return FilesInFolder(self._folder)

    def replace(self, merges: Sequence[Merge]) -> bool:
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import RemoveAction

        now_ms = SystemClock().now_ms()
        actions: list[Any] = []
        for old, new in merges:
            for file in old:
                place = _values(file.partition)
                actions.append(RemoveAction(file.file, False, now_ms, file.size_bytes, place))
            actions.append(_added(new, data_change=False))
        with changing(self._where):
            try:
                # Once, for the version that was read: delta-rs 1.6 does not notice that somebody else has merged the
                # same files, and would keep each record twice.
                self._write(actions, CommitProperties(max_commit_retries=0))
            except CommitFailedError:
                return False
        return True

    def clean(self) -> None:
        """Deletes files that were replaced longer ago than the table's property says, and files of killed runs; a week
        if the property says nothing."""
        with changing(self._where):
            self._made().vacuum(dry_run=False, full=True)

    @property
    def _where(self) -> str:
        return f"Delta table {self.shown}"

    def _announce(self, note: CommitNote) -> bool:
        """Set the note; False if another run has committed in the meantime."""
        table = self._made()
        for _ in range(_ATTEMPTS_MAX):
            with changing(self._where):
                table.update_incremental()
            if content_of(table, self.shown) != (note.number, self._content):
                return False
            if self._set_once(note):
                return True
        raise busy(self._where)

    def _settle(self, table: DeltaTable) -> None:
        """The files of the last note are there, whatever becomes of them. If the table changes now, the next run says
        it."""
        with changing(self._where):
            table.update_incremental()
            note = CommitNote.from_text(table.metadata().configuration[PROPERTY], self.shown)
        if note.before is not None and landed(table, note, self.shown):
            self._set_once(replace(note, before=None))

    def _set_once(self, note: CommitNote) -> bool:
        """Set the note for the version of the table that was looked at: behind another commit it has to be looked at
        again. False if there is one."""
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError

        properties, once = {PROPERTY: note.to_text()}, CommitProperties(max_commit_retries=0)
        with changing(self._where):
            try:
                self._made().alter.set_table_properties(
                    properties, raise_if_not_exists=False, commit_properties=once
                )
            except CommitFailedError:
                return False
        return True

    def _refused(self, note: CommitNote) -> bool:
        if content_of(self._made(), self.shown) == (note.number, note.before):
            raise busy(self._where)
        return False

    def _is_there(self, note: CommitNote) -> bool:
        table = self._made()
        table.update_incremental()
        text = table.metadata().configuration.get(PROPERTY)
        return text == note.to_text() and landed(table, note, self.shown)

    def _write(self, actions: list[Any], properties: CommitProperties) -> None:
        self._made().create_write_transaction(
            actions, "append", _TABLE_SCHEMA, _PARTITIONED_BY, commit_properties=properties
        )

    def _made(self) -> DeltaTable:
        """The table, which is made if there is none; if another run has just made one, it is that."""
        from deltalake import DeltaTable

        if self._table is None:
            note = CommitNote(-1, Content())
            with changing(self._where):
                self._table = DeltaTable.create(
                    url_of(self._path),
                    _TABLE_SCHEMA,
                    mode="ignore",
                    partition_by=_PARTITIONED_BY,
                    configuration={PROPERTY: note.to_text()},
                    raise_if_key_not_exists=False,
                )
        return self._table


def _added(file: ArchivedFile, *, data_change: bool = True) -> AddAction:
    from deltalake.transaction import AddAction

    assert file.file is not None
    numbers = {
        "offset": (file.first_offset, file.last_offset),
        "timestamp": (file.min_timestamp, file.max_timestamp),
    }
    statistics = {
        "numRecords": file.rows,
        "minValues": {name: least for name, (least, _) in numbers.items()},
        "maxValues": {name: greatest for name, (_, greatest) in numbers.items()},
        "nullCount": dict.fromkeys(numbers, 0),
    }
    return AddAction(
        file.file,
        file.size_bytes,
        _values(file.partition),
        SystemClock().now_ms(),
        data_change,
        json.dumps(statistics),
    )


def _values(partition: TopicPartition) -> dict[str, str | None]:
    return {"topic": partition.topic, "partition": str(partition.partition)}
