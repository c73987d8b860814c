"""The moment of the live application as the end of history: the same offsets, in sources that hold everything before
them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pystreams.backfill.compute.driver import Planned
from pystreams.backfill.compute.opening import Sources, without_offsets
from pystreams.backfill.plan.manifest import Manifest
from pystreams.backfill.sources import Source
from pystreams.backfill.sources.ranges import InputRange
from pystreams.errors import ConfigError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from pystreams.take_over.hand_over_record import HandOverRecord
from pystreams.times import show_time


@dataclass(frozen=True, slots=True)
class FromTables:
    """What a hand-over says of history that came from tables without offsets: by topic the boundary (ms), and the
    offsets from which on the application has read the log itself, whatever the times of its records are."""

    boundaries: Mapping[str, int] = field(default_factory=dict)
    whole_from: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def of(cls, record: HandOverRecord | None) -> FromTables:
        """Nothing without a record, or with one of an incomplete hand-over."""
        if record is None or not record.complete:
            return cls()
        boundaries = Manifest.from_json(record.manifest, f"backfill {record.backfill_id}").boundaries
        return cls(boundaries, {p: at for p, at in record.offsets.items() if p.topic in boundaries})

    def require_boundary(self, application_id: str, sources: Sources, boundary_ms: int | None) -> None:
        """Raises ``ConfigError`` if history would be read from the log alone."""
        named = sources.keys() if isinstance(sources, Mapping) else ()
        missing = [topic for topic in sorted(self.boundaries) if topic not in named]
        if boundary_ms is not None or not missing:
            return
        topic = missing[0]
        time = show_time(self.boundaries[topic])
        raise ConfigError(
            f"{application_id} was handed over from a table before {time}",
            where=f"topic {topic}",
            why="history from the log alone cannot equal it",
            hint="give the table and the boundary of the backfill: "
            f"--source '{topic}=table:NAME?key=...&timestamp=...' --boundary {time} (in Python "
            f"boundary='{time}'). If a log or an archive has all records of the topic, name it for "
            f"the topic: --source {topic}=parquet:FOLDER",
        )


def require_offsets(sources: Sources, boundary_ms: int | None) -> None:
    """Raises ``ConfigError`` for tables without offsets where no log goes on behind them: history cannot end where the
    application has come to."""
    without = without_offsets(sources)
    if without and boundary_ms is None:
        raise ConfigError(
            "the records of a source have no offsets, so history cannot end where the application has come to",
            where=f"the table of topic {without[0]}",
            hint="if the application was handed over from this table, give the boundary of that backfill, behind which "
            "the log counts: --boundary TIME, boundary=; otherwise read history from the log, from an archive, or name "
            "the table's columns partition and offset",
        )


def until_cut(
    planned: Planned, offsets: Mapping[TopicPartition, int], boundary_ms: int | None, tables: Collection[str]
) -> dict[TopicPartition, int]:
    """The ends of history by input partition, for a backfill that was ``planned`` up to now. Topics of ``tables`` come
    from tables before the boundary.

    Raises ``ConfigError`` for sources without offsets, ``OffsetOutOfRangeError`` for those that lack the beginning, or
    the end.
    """
    manifest = planned.manifest
    if manifest.approximate:
        raise ConfigError(
            "the records of a source have no offsets, so history cannot end where the application has come to",
            where=planned.source.description,
            hint="read history from the log, or from an archive or a table that has the offsets of its records",
        )
    inputs = [one for one in manifest.inputs if one.partition.topic not in planned.plan.global_topics]
    bounded = [one.partition for one in inputs if boundary_ms is not None and one.partition.topic in tables]
    _require_beyond(bounded, planned.source, boundary_ms or 0, offsets)
    for one in inputs:
        if one.partition in offsets:
            of_table = one.partition in bounded
            _require_all(one, offsets[one.partition], planned.source.description, of_table=of_table)
    # A partition without a committed offset is not processed yet.
    return {one.partition: offsets.get(one.partition, one.start) for one in inputs}


def _require_beyond(
    partitions: Collection[TopicPartition],
    source: Source,
    boundary_ms: int,
    offsets: Mapping[TopicPartition, int],
) -> None:
    """Raises ``OffsetOutOfRangeError`` if the application has not read the log up to the boundary, so that it cannot
    have what the table has."""
    begins = source.offsets_at(partitions, boundary_ms) if partitions else {}
    ends = source.ends(partitions) if partitions else {}
    for partition, begin in begins.items():
        reached = offsets.get(partition, 0)
        if reached < begin < ends[partition]:
            raise OffsetOutOfRangeError(
                f"the application has not come to the boundary in {partition}",
                where=source.description,
                why=f"it has processed records up to offset {reached} (exclusive), and the log's first record at or "
                f"after {show_time(boundary_ms)} has offset {begin}",
                hint="give the boundary of the backfill that was handed over",
            )


def _require_all(input: InputRange, reached: int, where: str, *, of_table: bool) -> None:
    # The rows of a table are numbered so that the log goes on behind them; the first number says nothing.
    if input.start > 0 and reached > 0 and not of_table:
        raise OffsetOutOfRangeError(
            f"the history of {input.partition} has lost its beginning",
            where=where,
            why=f"its first offset there is {input.start}, and the application has processed records before it, or may "
            "have",
            hint=f"read the topic from an archive that has all of it: --source {input.partition.topic}=parquet:FOLDER",
        )
    if input.end < reached:
        raise OffsetOutOfRangeError(
            f"the history of {input.partition} ends before the application",
            where=where,
            why=f"it ends at offset {input.end}, the application has processed records up to {reached} (exclusive)",
            hint="archive the later records first (pystreams archive), or read the topic from the log",
        )
