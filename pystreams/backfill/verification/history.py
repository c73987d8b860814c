"""The moment of the live application as the end of history: the same offsets, in sources that hold everything before
them."""

from __future__ import annotations

from collections.abc import Mapping

from pystreams.backfill.compute.driver import Planned
from pystreams.backfill.sources.ranges import InputRange
from pystreams.errors import ConfigError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition


def until_cut(planned: Planned, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The ends of history by input partition, for a backfill that was ``planned`` up to now.

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
    tables = planned.plan.global_topics
    inputs = [one for one in manifest.inputs if one.partition.topic not in tables]
    for one in inputs:
        if one.partition in offsets:
            _require_all(one, offsets[one.partition], planned.source.description)
    # A partition without a committed offset is not processed yet.
    return {one.partition: offsets.get(one.partition, one.start) for one in inputs}


def _require_all(input: InputRange, reached: int, where: str) -> None:
    if input.start > 0 and reached > 0:
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
