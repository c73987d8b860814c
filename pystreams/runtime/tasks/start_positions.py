"""The offsets from which a task starts to read its inputs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from pystreams.broker.port import Admin, CommittedOffset
from pystreams.clock import Clock
from pystreams.config import reset_duration_ms
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TaskId, TopicPartition

log = logging.getLogger(__name__)


def start_positions(
    task: TaskId,
    committed: Mapping[TopicPartition, CommittedOffset | None],
    beginnings: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    reset_of: Callable[[str], str],
    offset_ago: Callable[[TopicPartition, int], int],
    *,
    stateful: bool,
) -> dict[TopicPartition, int]:
    """The committed offsets; for a partition without one, the offset that ``auto_offset_reset`` (by topic) gives.
    ``latest`` are the ends that this consumer can read: for a consumer that reads only committed records, the end is
    the beginning of the first open transaction, which it then reads if it is committed. ``offset_ago`` returns the
    first offset whose record is at most the given time (ms) old, or the end offset if there is none.

    Raises ``OffsetOutOfRangeError`` if the log does not hold a committed offset any more and the task has state: the
    deleted records would be missing from its state for ever, and no error would show it. A task without state continues
    at the nearest end of the log, with a warning.
    """
    positions: dict[TopicPartition, int] = {}
    for partition, offset in committed.items():
        beginning, end = beginnings[partition], ends[partition]
        if offset is None:
            reset = reset_of(partition.topic)
            if reset == "none":
                raise _no_offset(task, partition)
            positions[partition] = reset_position(partition, reset, beginning, latest[partition], offset_ago)
        elif beginning <= offset.offset <= end:
            positions[partition] = offset.offset
        elif stateful:
            raise _out_of_range(task, partition, offset.offset, beginning, end)
        else:
            positions[partition] = min(max(offset.offset, beginning), end)
            log.warning(
                "task %s: committed offset %d of %s is not in the log any more (%d to %d), going on at %d",
                task,
                offset.offset,
                partition,
                beginning,
                end,
                positions[partition],
            )
    return positions


def reset_position(
    partition: TopicPartition,
    reset: str,
    beginning: int,
    end: int,
    offset_ago: Callable[[TopicPartition, int], int],
) -> int:
    """The offset at which a partition without a committed offset starts, by its ``auto_offset_reset``. With ``none`` it
    is the end: nothing is read."""
    duration_ms = reset_duration_ms(reset)
    if duration_ms is not None:
        return offset_ago(partition, duration_ms)
    return beginning if reset == "earliest" else end


def offset_ago(admin: Admin, clock: Clock, partition: TopicPartition, duration_ms: int) -> int:
    """The first offset whose record is at most ``duration_ms`` old by its timestamp; the end offset if none is."""
    time_ms = max(0, clock.now_ms() - duration_ms)
    return admin.offsets_for_times({partition: time_ms})[partition]


def _no_offset(task: TaskId, partition: TopicPartition) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        f"there is no committed offset to start from for {partition}",
        where=f"task {task}",
        why="its auto_offset_reset is none, so a start without committed offsets is refused",
        hint="set auto_offset_reset to earliest, latest or by_duration:PT1H, or set the group's offsets by hand",
    )


def _out_of_range(
    task: TaskId, partition: TopicPartition, offset: int, beginning: int, end: int
) -> OffsetOutOfRangeError:
    lost = beginning - offset
    return OffsetOutOfRangeError(
        f"the committed offset {offset} of {partition} is not in the log any more",
        where=f"task {task}, {partition} holds offsets {beginning} to {end} (exclusive)",
        why=f"{lost} records were deleted before they were processed"
        if lost > 0
        else "the topic was created anew",
        hint="the stores would lack these records, and nothing would show it: start from the beginning "
        "(pystreams reset), or accept the gap by setting the group's offsets by hand; a longer retention.ms of the "
        "topic prevents this",
    )
