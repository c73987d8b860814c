"""An archive in a table of Delta Lake, written through delta-rs: no Spark is needed.

A round takes two commits of the table. The first one sets the note of what will be archived (``sources/lake/content``),
the second one adds the files, with the note's number as its transaction. If somebody else has set a note in between,
Delta refuses the second one. So each round counts once, and readers know whether its files are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pystreams.backfill.archive.checks import require_room_for_table
from pystreams.backfill.archive.merging import merge
from pystreams.backfill.archive.pieces import FILE_SCHEMA, file_name
from pystreams.backfill.archive.target import Merged, RoundContent, RoundFiles
from pystreams.backfill.exchange.rows import RECORD_SCHEMA, Arrow
from pystreams.backfill.locations import absolute, shown
from pystreams.backfill.sources.archive_log import ArchivedFile
from pystreams.backfill.sources.folder import Folder, hive_folder
from pystreams.backfill.sources.lake.content import PROPERTY, Content, Note
from pystreams.backfill.sources.lake.delta import (
    APPLICATION,
    DeltaArchive,
    content_of,
    files_of,
    open_table,
    reason,
    url_of,
)
from pystreams.backfill.sources.lake.source import LakeArchive, TableFile
from pystreams.clock import SystemClock
from pystreams.errors import StateError
from pystreams.ids import TopicPartition

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction

_PARTITIONED_BY: Final = ["topic", "partition"]


@dataclass(frozen=True, slots=True)
class TableFolder:
    """Implements ``RoundFiles``: files are where they will be. Before the commit no reader knows of them."""

    folder: Folder

    @property
    def schema(self) -> Arrow:
        return FILE_SCHEMA

    def name(self, partition: TopicPartition, start: int) -> str:
        return f"{hive_folder(topic=partition.topic, partition=partition.partition)}/{file_name(start)}"

    def create(self, file: str) -> Arrow:
        return self.folder.create(file)

    def written(self) -> AbstractContextManager[None]:
        return self.folder.written()


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

    def begin(self, now_ms: int) -> _DeltaRound:
        self._made()
        return _DeltaRound(self, TableFolder(self._folder))

    def commit(self, number: int, content: RoundContent) -> bool:
        """See ``Round.commit``."""
        from deltalake import CommitProperties, Transaction

        added = [(file.partition, (file.start, file.end)) for file in content.files]
        note = Note(number, self._content.grown(content.counts, added), self._content)
        actions = [_added(file) for file in content.files if file.file is not None]
        with _committing(self.shown) as outcome:
            table = self._made()
            table.update_incremental()
            if content_of(table, self.shown) != (number, self._content):
                return False
            table.alter.set_table_properties({PROPERTY: note.to_text()}, raise_if_not_exists=False)
            landing = CommitProperties(app_transactions=[Transaction(APPLICATION, number)])
            self._write(actions, landing)
            self._content = note.after
        return outcome.landed

    def merge(self, file_offsets_max: int) -> Merged:
        if self._table is None:
            return Merged()
        merged = merge(self, file_offsets_max)
        if merged.after:
            # What the table replaced longer ago than its property says, a week if it says nothing.
            self._table.vacuum(dry_run=False)
        return merged

    # For Mergeable

    def files(self) -> tuple[LakeArchive, Sequence[TableFile]]:
        table, archive = self._made(), DeltaArchive(self._path)
        table.update_incremental()
        files = files_of(table, self.shown)
        archive.know(files)
        return archive, files

    def new_files(self) -> RoundFiles:
        return TableFolder(self._folder)

    def replace(self, old: Sequence[TableFile], new: ArchivedFile) -> bool:
        from deltalake import CommitProperties
        from deltalake.transaction import RemoveAction

        now_ms = SystemClock().now_ms()
        removed = [
            RemoveAction(file.file, False, now_ms, file.size_bytes, _values(file.partition)) for file in old
        ]
        with _committing(self.shown) as outcome:
            # Without another try: delta-rs 1.6 does not notice that somebody else has merged the same files.
            self._write([*removed, _added(new, data_change=False)], CommitProperties(max_commit_retries=0))
            self._made().update_incremental()
        return outcome.landed

    def _write(self, actions: list[Any], properties: CommitProperties) -> None:
        self._made().create_write_transaction(
            actions, "append", RECORD_SCHEMA, _PARTITIONED_BY, commit_properties=properties
        )

    def _made(self) -> DeltaTable:
        """The table, which is made if there is none; if another run has just made one, it is that."""
        from deltalake import DeltaTable

        if self._table is None:
            note = Note(0, Content(), Content())
            self._table = DeltaTable.create(
                url_of(self._path),
                RECORD_SCHEMA,
                mode="ignore",
                partition_by=_PARTITIONED_BY,
                configuration={PROPERTY: note.to_text()},
                raise_if_key_not_exists=False,
            )
        return self._table


@dataclass(frozen=True, slots=True)
class _DeltaRound:
    """Implements ``Round``."""

    target: DeltaTarget
    files: TableFolder

    def commit(self, number: int, content: RoundContent) -> bool:
        return self.target.commit(number, content)

    def discard(self, written: Sequence[ArchivedFile]) -> None:
        for file in written:
            if file.file is not None:
                self.files.folder.remove(file.file)


@dataclass(slots=True)
class _Outcome:
    landed: bool = True


@contextmanager
def _committing(where: str) -> Iterator[_Outcome]:
    """While something is committed; ``landed`` is False if somebody else's commit was in the way.

    Raises ``StateError`` if it is not known what came of it.
    """
    from deltalake.exceptions import CommitFailedError, DeltaError

    outcome = _Outcome()
    try:
        yield outcome
    except CommitFailedError:
        outcome.landed = False
    except (DeltaError, OSError) as error:
        raise StateError(
            "the table does not take the commit",
            where=f"Delta table {where}",
            why=reason(error),
            hint="correct that, and run it again: what was committed is not archived twice",
        ) from None


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
