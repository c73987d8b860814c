"""Archives: topics in Parquet or in tables, which backfills read when the log's retention is over.

    ranges     of each partition: from the end of the archive to the end of the source
    rounds     each range in pieces, one file each; some pieces at a time are written, by any process
    commit     the target (target.py) commits the files of a round together, with the ranges that they cover
    merge      at the end, small files of a table are merged

The files of a killed run are either committed or ignored, so no record is archived twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol

from pystreams.backfill.archive.checks import other_topic, require_same_topics
from pystreams.backfill.archive.folder_target import FolderTarget
from pystreams.backfill.archive.pieces import ArchiveJob, write_piece
from pystreams.backfill.archive.target import ArchiveTarget, Merged, RoundContent
from pystreams.backfill.sources.archive_log import ArchivedFile
from pystreams.backfill.sources.file_index import Index
from pystreams.backfill.sources.lake.source import LakeArchive, MarkedAsDeletedError
from pystreams.backfill.sources.parquet_files import ParquetSource
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.sources.source import Source, Span
from pystreams.clock import Clock, SystemClock
from pystreams.errors import OffsetOutOfRangeError, StateError, TopicError
from pystreams.ids import TopicPartition
from pystreams.nearest import not_among

log = logging.getLogger(__name__)

#: The maximum number of offsets in a file.
FILE_OFFSETS_MAX: Final = 2_000_000
#: The number of pieces of a round for each parallel writer.
_ROUND_PIECES: Final = 4


class Archiver(Protocol):
    """Writes pieces, some at a time."""

    @property
    def parallelism(self) -> int: ...

    def write(self, job: ArchiveJob, pieces: Sequence[InputRange]) -> Iterable[ArchivedFile]:
        """Write each piece, in any order. Raises the errors of the source."""
        ...


@dataclass(frozen=True, slots=True)
class InlineArchiver:
    """Writes in this process, one piece after the other."""

    parallelism: int = field(default=1, init=False)

    def write(self, job: ArchiveJob, pieces: Sequence[InputRange]) -> Iterator[ArchivedFile]:
        return (write_piece(job, piece) for piece in pieces)


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """The result of a run. ``lost`` are offsets that the log has deleted before they were archived."""

    records: int
    files: int
    size_bytes: int
    ends: dict[TopicPartition, int]
    lost: dict[TopicPartition, Span]
    merged: Merged


#: Called in the driver: records so far, offsets that are left.
OnArchived = Callable[[int, int], None]
#: Chooses an archiver by the number of offsets to archive.
ChooseArchiver = Callable[[int], Archiver]


def archive(
    source: Source,
    topics: Collection[str],
    to: str | ArchiveTarget,
    *,
    archiver: Archiver | ChooseArchiver | None = None,
    file_offsets_max: int = FILE_OFFSETS_MAX,
    progress: OnArchived | None = None,
    clock: Clock | None = None,
) -> ArchiveResult:
    """Append the records since the last run to the archive at ``to``; the first run archives all records.

    ``to`` is a folder for Parquet files (a path, or a URI that Arrow knows), or a ``DeltaTarget`` or ``IcebergTarget``.
    ``archiver`` may be a function that chooses one by the number of offsets to archive; None: this process.
    For Kafka use ``KafkaSource(..., isolation_level="read_committed")``: archived records are permanent, so they must
    not come from aborted transactions.

    Raises ``TopicError`` for a topic that does not exist, or was created again since the last run; ``StateError`` if
    another run commits at the same time, and for a place with foreign data; and the errors of the source. Records that
    were committed before the error stay in the archive.
    """
    target = FolderTarget(to) if isinstance(to, str) else to
    run = _Run(source, target, archiver or InlineArchiver(), clock or SystemClock(), progress)
    return run.run(topics, file_offsets_max)


class _Run:
    def __init__(
        self,
        source: Source,
        target: ArchiveTarget,
        archiver: Archiver | ChooseArchiver,
        clock: Clock,
        progress: OnArchived | None,
    ) -> None:
        self._source = source
        self._target = target
        self._archiver = archiver
        self._clock = clock
        self._progress = progress

    def run(self, topics: Collection[str], file_offsets_max: int) -> ArchiveResult:
        number = self._target.open(self._clock.now_ms())
        counts = self._counts(topics)
        ranges, lost, archived = self._ranges(counts)
        for partition, (start, end) in lost.items():
            log.warning(
                "%s: offsets %d to %d (exclusive) are gone from the log and were never archived: a backfill cannot "
                "read past this gap",
                partition,
                start,
                end,
            )
        left = sum(one.end - one.start for one in ranges)
        written = list[ArchivedFile]()
        pieces = iter([piece for one in ranges for piece in _pieces(one, file_offsets_max, archived)])
        archiver = self._archiver(left) if callable(self._archiver) else self._archiver
        size = _ROUND_PIECES * archiver.parallelism
        while some := list(islice(pieces, size)):
            for file in self._round(archiver, number, some, counts):
                written.append(file)
                left -= file.end - file.start
                if self._progress is not None:
                    self._progress(sum(one.rows for one in written), left)
            number += 1
        return ArchiveResult(
            sum(file.rows for file in written),
            sum(file.file is not None for file in written),
            sum(file.size_bytes for file in written),
            {one.partition: one.end for one in ranges},
            lost,
            self._target.finish(file_offsets_max),
        )

    def _counts(self, topics: Collection[str]) -> dict[str, int]:
        known = self._source.partitions()
        missing = sorted(set(topics) - set(known))
        if missing:
            raise TopicError(
                f"there is no topic {missing[0]}",
                where=self._source.description,
                **not_among(missing[0], known, "its topics"),
            )
        return {topic: known[topic] for topic in sorted(set(topics))}

    def _ranges(self, counts: dict[str, int]) -> tuple[list[InputRange], dict[TopicPartition, Span], Index]:
        """The ranges to read of each partition, the lost ones, and what is archived already."""
        stored = self._target.stored()
        archived = Index({}, {}) if stored is None else _archived(stored)
        partitions = [TopicPartition(topic, n) for topic, count in counts.items() for n in range(count)]
        beginnings, ends = self._source.beginnings(partitions), self._source.ends(partitions)
        ranges: list[InputRange] = []
        lost: dict[TopicPartition, Span] = {}
        for partition in partitions:
            start, beginning, end = archived.end(partition), beginnings[partition], ends[partition]
            if start > end:
                why = f"{partition} ends at offset {end}, but its archive ends at {start}"
                raise other_topic(self._source, self._target.shown, partition.topic, why)
            if start < beginning:
                if partition in archived.covered:
                    lost[partition] = (start, beginning)
                start = beginning
            ranges.append(InputRange(partition, start, end))
        if stored is not None:
            require_same_topics(self._source, stored, archived, self._target.shown, counts, beginnings)
        return ranges, lost, archived

    def _round(
        self, archiver: Archiver, number: int, pieces: Sequence[InputRange], counts: dict[str, int]
    ) -> Iterator[ArchivedFile]:
        round, files = self._target.begin(self._clock.now_ms()), list[ArchivedFile]()
        try:
            for file in archiver.write(ArchiveJob(self._source, round.files), pieces):
                files.append(file)
                yield file
        except OffsetOutOfRangeError as error:
            error.extend(where="archiving", hint="run it again: it continues after the lost records")
            raise
        files.sort(key=lambda file: (file.partition, file.start))
        content = RoundContent(self._clock.now_ms(), self._source.description, counts, tuple(files))
        if not round.commit(number, content):
            round.discard()
            raise StateError(
                "another run has written to this archive in the meantime",
                where=f"archive {self._target.shown}, commit {number}",
                why="the records that this run has read since its last commit may not be archived",
                hint="run one at a time, and run this one again",
            )


def _archived(stored: ParquetSource) -> Index:
    """The index of the archive. If the table has rows that are only marked as deleted, the index names no files, so
    that the run can still archive the next records before retention deletes them."""
    if not isinstance(stored, LakeArchive):
        return stored.index
    try:
        return stored.index
    except MarkedAsDeletedError as error:
        log.warning("the topics are not compared with those that were archived: %s", error)
        return stored.spans()


def _pieces(range: InputRange, offsets_max: int, archived: Index) -> Iterator[InputRange]:
    """A range in pieces of at most ``offsets_max`` offsets. An empty range stays a piece if the archive does not have
    the partition yet: it records the position of the partition."""
    start = range.start
    if start == range.end and range.partition not in archived.covered:
        yield range
    while start < range.end:
        end = min(start + offsets_max, range.end)
        yield InputRange(range.partition, start, end)
        start = end
