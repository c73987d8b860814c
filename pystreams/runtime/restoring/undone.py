"""Ranges of changelogs whose records were undone. Restores leave them out."""

from __future__ import annotations

from collections.abc import Iterable

from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch


class UndoneStretches:
    """The undone ranges that one restorer knows. The restorer's mutex guards them."""

    def __init__(self) -> None:
        #: Ascending ranges of offsets, each with its start and its end (exclusive).
        self._stretches: dict[TopicPartition, list[tuple[int, int]]] = {}

    def add(self, partition: TopicPartition, start_offset: int, end_offset: int) -> None:
        """The records of a changelog from a start to an end (exclusive) were undone."""
        stretches = self._stretches.setdefault(partition, [])
        if stretches and stretches[-1][1] == start_offset:
            start_offset = stretches.pop()[0]
        stretches.append((start_offset, end_offset))

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Leave out no records of these changelogs any more."""
        for partition in partitions:
            self._stretches.pop(partition, None)

    def without(self, partition: TopicPartition, batch: RecordBatch) -> RecordBatch:
        """The batch without undone records."""
        for start_offset, end_offset in self._stretches.get(partition, ()):
            batch = batch.without(start_offset, end_offset)
        return batch
