"""The interface that is called with the progress of restores."""

from __future__ import annotations

from typing import Protocol

from pystreams.ids import TopicPartition


class RestoreListener(Protocol):
    """Called by the restoring threads with the progress of each store's restore. ``end_offset`` is exclusive.

    Source: org.apache.kafka.streams.processor.StateRestoreListener.
    """

    def on_restore_start(
        self, partition: TopicPartition, store: str, start_offset: int, end_offset: int
    ) -> None: ...

    def on_batch_restored(
        self, partition: TopicPartition, store: str, next_offset: int, records: int
    ) -> None: ...

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None: ...
