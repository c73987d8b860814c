"""Where a task starts to read its inputs. Pure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from pystreams.broker.port import CommittedOffset
from pystreams.config import reset_duration_ms
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TaskId, TopicPartition

log = logging.getLogger(__name__)


def start_positions(
    task: TaskId,
    committed: Mapping[TopicPartition, CommittedOffset | None],
    beginnings: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    reset_of: Callable[[str], str],
    offset_ago: Callable[[TopicPartition, int], int],
    *,
    stateful: bool,
) -> dict[TopicPartition, int]:
    """The committed offsets, and what ``auto_offset_reset`` (by topic) says where there are none. ``offset_ago`` gives
    the first offset whose record is at most so many milliseconds old, the end offset if there is none.

    Raises ``OffsetOutOfRangeError`` for a committed offset that the log does not hold any more if the task has state:
    the records in between would be missing from it for ever, without anybody knowing. A task without state goes on at
    the nearest end with a warning.
    """
    positions: dict[TopicPartition, int] = {}
    for partition, offset in committed.items():
        beginning, end = beginnings[partition], ends[partition]
        if offset is None:
            reset = reset_of(partition.topic)
            duration_ms = reset_duration_ms(reset)
            if duration_ms is not None:
                positions[partition] = offset_ago(partition, duration_ms)
            else:
                positions[partition] = _reset(task, partition, reset, beginning, end)
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


def _reset(task: TaskId, partition: TopicPartition, reset: str, beginning: int, end: int) -> int:
    if reset == "none":
        raise OffsetOutOfRangeError(
            f"there is no committed offset to start from for {partition}",
            where=f"task {task}",
            why="its auto_offset_reset is none, so a start without committed offsets is refused",
            hint="set auto_offset_reset to earliest, latest or by_duration:PT1H, or set the group's offsets by hand",
        )
    return beginning if reset == "earliest" else end


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
        hint="the state that is made of them would miss them without a word: start afresh (pystreams reset), or accept "
        "the gap by setting the group's offsets by hand; a longer retention.ms of the topic prevents this",
    )
