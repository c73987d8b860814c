"""Checks before records are added to an archive: no foreign files, and the same topics as those that were archived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pystreams.backfill.sources.archive_log import ArchiveLog
from pystreams.backfill.sources.file_index import Index
from pystreams.backfill.sources.file_source import FileSource
from pystreams.backfill.sources.folder import Folder
from pystreams.backfill.sources.parquet_files import ParquetSource
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.sources.source import Source
from pystreams.errors import OffsetOutOfRangeError, StateError, TopicError
from pystreams.ids import TopicPartition


def require_own(folder: Folder) -> None:
    """Raises ``StateError`` for a place where an archive cannot begin: a file, or a folder with Parquet files. Beside
    an archive's own, backfills would not see those, and all other readers would see their records twice."""
    found = folder.files(ParquetSource.suffixes) if folder.exists("") else []
    if found == [""]:
        raise StateError(f"{folder.shown} is a file, not a folder", hint="archive to another place")
    if folder.exists("_delta_log"):
        raise StateError(f"{folder.shown} is a table of Delta", hint="archive to it with --format delta")
    if found:
        raise StateError(
            f"the folder {folder.shown} has Parquet files that no archive run wrote",
            why=f"there is {found[0]}",
            hint="archive to a separate folder",
        )


def require_room_for_table(folder: Folder) -> None:
    """Raises ``StateError`` for a place where no table can begin: like ``require_own``, and for an archive's folder."""
    if ArchiveLog(folder).exists():
        raise StateError(
            f"{folder.shown} is an archive in Parquet, not a table",
            hint="go on with --format parquet, or archive to another place",
        )
    require_own(folder)


def require_same_topics(
    source: Source,
    stored: FileSource,
    archived: Index,
    place: str,
    counts: Mapping[str, int],
    beginnings: Mapping[TopicPartition, int],
) -> None:
    """Raises ``TopicError`` for topics that are not those in the archive, because they were created again, or belong to
    another cluster: they have fewer partitions, or another record at the end of the archive. Compares one record of
    each topic."""
    for topic, count in counts.items():
        before = archived.counts.get(topic, 0)
        if count < before:
            raise other_topic(
                source, place, topic, f"it has {count} partitions, but its archive has {before}"
            )
        for number in range(count):
            partition = TopicPartition(topic, number)
            last = max((piece.last_offset for piece in archived.pieces.get(partition, ())), default=-1)
            if last < max(beginnings[partition], 0):
                continue
            then, now = _record(stored, partition, last), _record(source, partition, last)
            if then and now and then != now:
                raise other_topic(
                    source, place, topic, f"{partition} has a different record at offset {last}"
                )
            if then and now:
                break


def other_topic(source: Source, place: str, topic: str, why: str) -> TopicError:
    """The error for a topic that is not the one in the archive."""
    return TopicError(
        f"topic {topic} is not the one that was archived",
        where=f"{source.description}, archive {place}",
        why=f"{why}: it was created again, or belongs to another cluster",
        hint="archive it to another place",
    )


def _record(source: Source, partition: TopicPartition, offset: int) -> list[dict[str, Any]]:
    """The record at an offset; None if compaction or retention has deleted it."""
    try:
        batches = [*source.read(InputRange(partition, offset, offset + 1))]
    except OffsetOutOfRangeError:
        return []
    return [row for batch in batches for row in batch.select(["timestamp", "key", "value"]).to_pylist()]
