"""A large group is rebalanced in under a second of the leader's time."""

from __future__ import annotations

import random
import time

import pytest

from pystreams.ids import TaskId
from pystreams.runtime.group.assignor import AssignorMember, assign_tasks

TASKS = [TaskId(subtopology, partition) for subtopology in range(10) for partition in range(100)]


def group_of(processes: range, held: dict[str, list[TaskId]]) -> list[AssignorMember]:
    """One thread a process, each with its tasks, and with old state of others on its disk."""
    choose = random.Random(7)
    return [
        AssignorMember(
            f"m{p:02}",
            f"p{p:02}",
            f"t{p:02}",
            frozenset(held.get(f"m{p:02}", ())),
            dict.fromkeys(held.get(f"m{p:02}", ()), 100)
            | {task: choose.choice((50, 100)) for task in choose.sample(TASKS, 100)},
        )
        for p in processes
    ]


@pytest.mark.parametrize(
    "now", [range(50), range(1, 50), range(51), range(10, 50)], ids=["same", "left", "came", "ten left"]
)
def test_a_thousand_tasks_are_given_to_fifty_members_in_a_second(now: range) -> None:
    held = assign_tasks(TASKS, frozenset(TASKS), group_of(range(50), {}))
    members = group_of(now, held)
    began = time.process_time()
    assigned = assign_tasks(TASKS, frozenset(TASKS), members)
    assert time.process_time() - began < 1
    assert sorted(task for tasks in assigned.values() for task in tasks) == TASKS
