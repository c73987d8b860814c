"""The restore of one store: its start, its end, its progress, and its errors."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pystreams.errors import StateCorruptedError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.restoring.restorable import ToRestore

log = logging.getLogger(__name__)


@dataclass(slots=True)
class StoreRestore:
    """The progress of one store's restore. A restore that ``follows``, for a standby, continues as its end offset
    grows. With ``open_ended`` this is the end of the changelog as last seen, otherwise it is the group's commit."""

    task_id: TaskId
    store: str
    partition: TopicPartition
    start_offset: int
    end_offset: int
    position: int
    records: int = 0
    follows: bool = False
    open_ended: bool = False

    @property
    def left(self) -> int:
        """The number of remaining offsets."""
        return max(0, self.end_offset - self.position)

    @property
    def goes_on(self) -> bool:
        """Whether to read on."""
        return self.open_ended or self.left > 0


def planned(
    task_id: TaskId, wanted: ToRestore, beginning: int, end: int, *, follows: bool = False
) -> StoreRestore:
    """The restore of a store from a partition that holds offsets ``beginning`` to ``end`` (exclusive); ``follows``: for
    a standby. Raises ``StateCorruptedError`` if the store's offset lies outside of them."""
    store, partition, start, limit, warns_of_gaps = wanted
    if limit is not None:
        # Read an input only as far as the log has records. If some are missing, the task fails when it starts.
        end = min(max(beginning, limit, start or 0 if follows else 0), end)
    if start is not None and not beginning <= start <= end:
        raise outside(task_id, store, partition, start, beginning, end)
    if start is None and beginning == end > 0 and warns_of_gaps:
        log.warning(
            "task %s: store %s starts empty: changelog %s had %d records, and retention has deleted all of "
            "them. If windows are still open for records to come, they lack what was in them; a longer "
            "retention.ms of the changelog (window_changelog_retention_ms for new ones) prevents this",
            task_id,
            store,
            partition,
            end,
        )
    position = beginning if start is None else start
    return StoreRestore(
        task_id, store, partition, position, end, position, 0, follows, follows and limit is None
    )


def outside(
    task_id: TaskId, store: str, partition: TopicPartition, offset: int, beginning: int, end: int
) -> StateCorruptedError:
    """The error for a store, or a restore, whose offset its changelog does not hold."""
    return StateCorruptedError(
        f"the local state of store {store} lies outside of its changelog",
        where=f"task {task_id}, {partition}, offset {offset}",
        why=f"the changelog holds offsets {beginning} to {end} (exclusive)",
        hint="the task's local state is deleted and restored from the changelog",
    )


def cut_short(restore: StoreRestore, end: int) -> StateCorruptedError:
    """The error for a changelog that ends at ``end`` now, before the end that it had when its restore began."""
    return StateCorruptedError(
        f"the changelog of store {restore.store} has lost its last records while it was restored",
        where=f"task {restore.task_id}, {restore.partition}",
        why=f"it ended at offset {restore.end_offset} (exclusive), and ends at {end} now: an unclean leader "
        "election, or the topic was made anew",
        hint="the task's local state is deleted and restored from the remaining records; if the results need the "
        "lost ones, reset the application",
    )
