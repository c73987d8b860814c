"""The assignment is complete, even, and sticky."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pystreams.ids import TaskId
from pystreams.runtime.group.situation import AssignorMember
from tests.examples import examples
from tests.unit.runtime.group.assignor_kit import (
    Active,
    Shares,
    holding,
    members_of,
    owners_of,
    spread_of,
    tasks_of,
)


def moved(before: Active, after: Active) -> set[TaskId]:
    """Tasks that had an owner and have another one."""
    owner = {task: member for member, tasks in before.items() for task in tasks}
    return {task for member, tasks in after.items() for task in tasks if owner.get(task, member) != member}


def test_two_threads_share_three_tasks_in_turn() -> None:
    assert spread_of(tasks_of(3), frozenset(), members_of(2)) == {
        "p0-t0": [TaskId(0, 0), TaskId(0, 2)],
        "p0-t1": [TaskId(0, 1)],
    }


def test_exactly_one_task_moves_to_a_joining_process_and_back() -> None:
    tasks = tasks_of(3)
    alone = spread_of(tasks, frozenset(), members_of(2))
    joined = spread_of(tasks, frozenset(), holding(members_of(2, 1), alone))
    assert len(moved(alone, joined)) == 1
    assert sorted(map(len, joined.values())) == [1, 1, 1]
    left = spread_of(tasks, frozenset(), holding(members_of(2), joined))
    assert sorted(map(len, left.values())) == [1, 2]
    assert moved(joined, left) <= set(joined["p1-t0"])


def test_a_thread_too_many_gets_nothing() -> None:
    assignment = spread_of(tasks_of(5), frozenset(), members_of(6))
    assert sorted(map(len, assignment.values())) == [0, 1, 1, 1, 1, 1]


def test_few_tasks_are_spread_over_processes_not_over_threads_of_one() -> None:
    assignment = spread_of(tasks_of(2), frozenset(), members_of(2, 2))
    assert sum(len(tasks) for member, tasks in assignment.items() if member.startswith("p0")) == 1


def test_only_the_tasks_of_a_member_that_left_move() -> None:
    tasks = tasks_of(2, 2, 2, 2)
    three = spread_of(tasks, frozenset(), members_of(1, 1, 1))
    staying = [m for m in members_of(1, 1, 1) if m.process_id != "p1"]
    two = spread_of(tasks, frozenset(), holding(staying, three))
    assert moved(three, two) == set(three["p1-t0"])


def test_a_stateful_task_goes_where_its_state_has_got_furthest() -> None:
    tasks = tasks_of(2)
    state = {TaskId(0, 0): 100, TaskId(0, 1): 100}
    members = [
        AssignorMember("a", "pa", "a", state=state),
        AssignorMember("b", "pb", "b", state={TaskId(0, 0): 900}),
    ]
    assert spread_of(tasks, frozenset(tasks), members) == {"a": [TaskId(0, 1)], "b": [TaskId(0, 0)]}


def test_members_of_one_process_share_its_state_whichever_of_them_reported_it_last() -> None:
    tasks = [TaskId(0, partition) for partition in range(2)]
    elsewhere = AssignorMember("a", "pa", "a")
    told_early = AssignorMember("b1", "pb", "b1", state={tasks[0]: 5})
    told_late = AssignorMember("b2", "pb", "b2", state=dict.fromkeys(tasks, 900))
    assigned = spread_of(tasks, frozenset(tasks), [elsewhere, told_early, told_late])
    assert assigned == {"a": [], "b1": [tasks[0]], "b2": [tasks[1]]}


def test_a_stateless_task_moves_rather_than_a_stateful_one() -> None:
    tasks = tasks_of(1, 1)
    stateful = frozenset({TaskId(0, 0)})
    alone = {"p0-t0": tasks}
    members = holding(members_of(1, 1), alone)
    with_state = [
        AssignorMember(m.member_id, m.process_id, m.thread, m.owned, {TaskId(0, 0): 5} if m.owned else {})
        for m in members
    ]
    assert spread_of(tasks, stateful, with_state) == {"p0-t0": [TaskId(0, 0)], "p1-t0": [TaskId(1, 0)]}


def test_a_group_without_members_has_no_assignment() -> None:
    assert spread_of(tasks_of(3), frozenset(), []) == {}


widths = st.lists(st.integers(1, 6), min_size=1, max_size=4)
processes = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@given(widths, processes, processes, st.randoms(use_true_random=False))
@examples(60)
def test_every_assignment_is_complete_and_even(
    widths: list[int], before: list[int], now: list[int], random
) -> None:  # type: ignore[no-untyped-def]
    tasks = tasks_of(*widths)
    held = spread_of(tasks, frozenset(), members_of(*before))
    members = holding(members_of(*now), held)
    random.shuffle(members)
    assignment = spread_of(tasks, frozenset(tasks), members)
    assert sorted(task for owned in assignment.values() for task in owned) == tasks
    assert Shares(tasks, members).are_kept(owners_of(assignment, members))


@given(widths, processes, st.booleans())
@examples(40)
def test_an_unchanged_group_keeps_its_assignment(widths: list[int], group: list[int], stateful: bool) -> None:
    tasks = tasks_of(*widths)
    of_state = frozenset(tasks) if stateful else frozenset()
    first = spread_of(tasks, of_state, members_of(*group))
    assert spread_of(tasks, of_state, holding(members_of(*group), first)) == first


@given(widths, st.lists(processes, min_size=2, max_size=5))
@examples(25)
def test_a_group_that_comes_and_goes_always_ends_even_and_owned_once(
    widths: list[int], groups: list[list[int]]
) -> None:
    tasks = tasks_of(*widths)
    assignment: Active = {}
    for group in groups:
        assignment = spread_of(tasks, frozenset(tasks), holding(members_of(*group), assignment))
        assert sorted(task for owned in assignment.values() for task in owned) == tasks
