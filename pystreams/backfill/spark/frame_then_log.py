"""A topic whose history before a boundary is in a table, and from then on in its log."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from pyspark.sql import DataFrame

from pystreams.backfill.compute.task import TaskWork
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.frames.source import LogAfter
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.backfill.sources.source import Span
from pystreams.backfill.spark.frames import FrameTopic
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from pystreams.times import show_time


class FrameThenLog:
    """Implements ``sources.Source`` for the driver, as ``FrameTopic`` does.

    The log is read from its first record at or after the boundary; later ones whose timestamps are before it are passed
    over. The rows of the table are numbered so that the last one has the offset before that record: from there on
    offsets are those of the log, and a live application can go on at its end.
    """

    def __init__(self, frame: FrameTopic, after: LogAfter) -> None:
        self._frame = frame.before(after.boundary_ms)
        self._after = after
        self._log = after.log

    @property
    def description(self) -> str:
        boundary = show_time(self._after.boundary_ms)
        return f"{self._frame.description} before {boundary}, {self._log.description} from then on"

    @property
    def approximate(self) -> bool:
        return False

    def partitions(self) -> Mapping[str, int]:
        return self._frame.partitions()

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        records = self._frame.records()
        return {p: self._starts[p] - records.get(p.partition, 0) for p in partitions}

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._log.ends(partitions)

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        """Of times from the boundary on."""
        return self._log.offsets_at(partitions, max(time_ms, self._after.boundary_ms))

    def missing(self, input: InputRange) -> list[Span]:
        return self._log.missing(InputRange(input.partition, self._starts[input.partition], input.end))

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        return self._log.last_before(ends)

    def read(self, input: InputRange) -> Iterator[Arrow]:
        return self._frame.read(input)

    def packed_rows(self, work: TaskWork, times: Mapping[int, int]) -> DataFrame:
        """As ``FrameTopic.packed_rows``."""
        return self._frame.packed_rows(work, times, self._after)

    @cached_property
    def _starts(self) -> dict[TopicPartition, int]:
        """By partition, the first offset of the log that is read. Raises ``OffsetOutOfRangeError`` if the log may have
        lost records after the boundary."""
        topic = self._frame.topic
        partitions = [TopicPartition(topic, p) for p in range(self._frame.partitions()[topic])]
        beginnings = self._log.beginnings(partitions)
        starts = self._log.offsets_at(partitions, self._after.boundary_ms)
        for partition, start in starts.items():
            if 0 < start == beginnings[partition]:
                raise OffsetOutOfRangeError(
                    f"the log may have lost records of {partition} after the boundary",
                    where=self._log.description,
                    why=f"its first record, at offset {start}, is at or after {show_time(self._after.boundary_ms)}, so "
                    "retention may have deleted others from after the boundary",
                    hint="choose a boundary that is later than the first record of the log",
                )
        return starts
