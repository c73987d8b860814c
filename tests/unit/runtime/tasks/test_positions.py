"""A task starts at its committed offsets, and never silently behind a gap."""

from __future__ import annotations

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.start_positions import start_positions

P = TopicPartition("in", 0)


def start(committed: int | None, *, reset: str = "earliest", stateful: bool = True) -> int:
    offset = None if committed is None else CommittedOffset(committed)
    positions = start_positions(
        TaskId(0, 0),
        {P: offset},
        {P: 10},
        {P: 20},
        {P: 18},
        lambda topic: reset,
        lambda partition, duration_ms: 20 - duration_ms // 60_000,
        stateful=stateful,
    )
    return positions[P]


def test_the_committed_offset_counts() -> None:
    assert start(10) == 10
    assert start(20) == 20


def test_auto_offset_reset_counts_only_where_nothing_is_committed() -> None:
    assert start(None) == 10
    assert start(None, reset="by_duration:PT3M") == 17
    assert start(15, reset="by_duration:PT3M") == 15


def test_latest_is_before_an_open_transaction_but_a_commit_may_lie_behind_its_beginning() -> None:
    assert start(None, reset="latest") == 18
    assert start(19, reset="latest") == 19


@pytest.mark.parametrize("committed", [9, 21])
def test_a_task_with_state_refuses_a_committed_offset_that_is_gone(committed: int) -> None:
    with pytest.raises(OffsetOutOfRangeError, match=r"in-0.*not in the log any more"):
        start(committed)


def test_a_task_without_state_goes_on_at_the_nearest_end() -> None:
    assert start(9, stateful=False) == 10
    assert start(21, stateful=False) == 20


def test_none_refuses_to_start_without_a_committed_offset() -> None:
    with pytest.raises(OffsetOutOfRangeError, match="no committed offset to start from for in-0"):
        start(None, reset="none")
    assert start(15, reset="none") == 15
