"""What a thread does about an assignment comes in the order that the protocol needs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.errors import TopicError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.assignment_plan import (
    AbortAll,
    Claim,
    CloseTask,
    CommitAll,
    OpenTask,
    plan_assignment,
    plan_loss,
)
from pystreams.runtime.tasks.task import TaskStatus

INPUTS = {TaskId(0, i): frozenset({TopicPartition("a", i), TopicPartition("b", i)}) for i in range(4)}
RUNNING, RESTORING = TaskStatus.RUNNING, TaskStatus.RESTORING


def partitions(*numbers: int) -> frozenset[TopicPartition]:
    return frozenset[TopicPartition]().union(*(INPUTS[TaskId(0, n)] for n in numbers))


def at_hand(
    *numbers: int, status: TaskStatus = RUNNING
) -> dict[TaskId, tuple[TaskStatus, frozenset[TopicPartition]]]:
    return {TaskId(0, n): (status, INPUTS[TaskId(0, n)]) for n in numbers}


def test_what_leaves_is_committed_and_closed_before_anything_is_claimed() -> None:
    assert plan_assignment(at_hand(0, 1), partitions(1, 2), INPUTS) == [
        CommitAll(),
        CloseTask(TaskId(0, 0)),
        AbortAll(),
        OpenTask(TaskId(0, 2), INPUTS[TaskId(0, 2)]),
        Claim(partitions(1, 2)),
    ]


def test_a_task_that_never_ran_leaves_without_a_commit() -> None:
    plan = plan_assignment(at_hand(0, status=RESTORING), frozenset(), INPUTS)
    assert plan == [CloseTask(TaskId(0, 0)), Claim(frozenset())]


def test_a_task_waits_until_all_its_inputs_are_free() -> None:
    half = frozenset({TopicPartition("a", 0)})
    assert plan_assignment({}, half, INPUTS) == [Claim(half)]


def test_the_same_assignment_again_changes_nothing() -> None:
    assert plan_assignment(at_hand(0, 1), partitions(0, 1), INPUTS) == [Claim(partitions(0, 1))]


def test_a_partition_that_no_task_reads_is_an_error() -> None:
    grown = TopicPartition("a", 4)
    with pytest.raises(TopicError, match="a-4"):
        plan_assignment(at_hand(0), partitions(0) | {grown}, INPUTS)


def test_after_a_loss_nothing_is_committed() -> None:
    assert plan_loss([TaskId(0, 1), TaskId(0, 0)]) == [
        AbortAll(),
        CloseTask(TaskId(0, 0)),
        CloseTask(TaskId(0, 1)),
        AbortAll(),
        Claim(frozenset()),
    ]


numbers = st.sets(st.integers(0, 3))


@given(numbers, numbers, st.sampled_from([RUNNING, RESTORING]))
def test_any_plan_leads_to_the_assignment(before: set[int], after: set[int], status: TaskStatus) -> None:
    plan = plan_assignment(at_hand(*before, status=status), partitions(*after), INPUTS)
    tasks = {TaskId(0, n) for n in before}
    for instruction in plan[:-1]:
        match instruction:
            case CommitAll():
                assert tasks == {TaskId(0, n) for n in before}
            case CloseTask(task):
                tasks.remove(task)
            case OpenTask(task):
                assert task not in tasks
                tasks.add(task)
    assert tasks == {TaskId(0, n) for n in after}
    assert plan[-1] == Claim(partitions(*after))
    assert (CommitAll() in plan) == (status is RUNNING and bool(before - after))
