"""With a rack-aware strategy tasks go where their partitions are, at the least cost."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pystreams.ids import TaskId
from pystreams.runtime.group.assignor import assign_tasks
from pystreams.runtime.group.situation import AssignorMember, Situation, TaskFacts
from tests.unit.runtime.group.assignor_kit import (
    facts_of,
    holding,
    members_of,
    processes_of,
    settings,
    tasks_of,
)

BIG = 1_000_000


def in_racks(*racks: str) -> list[AssignorMember]:
    return [replace(m, rack=rack) for m, rack in zip(members_of(*[1] * len(racks)), racks, strict=True)]


def located(tasks: list[TaskId], racks: str, end: int = 0) -> TaskFacts:
    """Each task has one input partition in one rack, and its changelog there, too."""
    of_task = {task: [frozenset({rack})] for task, rack in zip(tasks, racks, strict=True)}
    return facts_of(tasks, end, racks=of_task, changelog_racks=of_task)


def crossing(facts: TaskFacts, members: list[AssignorMember], owner_of: dict[TaskId, str]) -> int:
    rack_of = {m.process_id: m.rack for m in members}
    return sum(
        rack_of[process] not in racks for task, process in owner_of.items() for racks in facts.racks[task]
    )


def test_each_task_goes_to_the_rack_of_its_partition() -> None:
    tasks = tasks_of(4)
    given = assign_tasks(
        located(tasks, "baba"), in_racks("a", "b"), settings(rack_aware_assignment_strategy="min_traffic")
    )
    assert given.active == {"p0-t0": [tasks[1], tasks[3]], "p1-t0": [tasks[0], tasks[2]]}


@pytest.mark.parametrize("strategy,crossing_expected", [("min_traffic", 0), ("balance_subtopology", 4)])
def test_only_balance_subtopology_spreads_each_subtopology(strategy: str, crossing_expected: int) -> None:
    tasks = tasks_of(4, 4)
    facts, members = located(tasks, "aaaabbbb"), in_racks("a", "b")
    given = assign_tasks(facts, members, settings(rack_aware_assignment_strategy=strategy))
    owner_of = {task: processes[0] for task, processes in processes_of(given.active).items()}
    assert crossing(facts, members, owner_of) == crossing_expected
    assert {len(tasks) for tasks in given.active.values()} == {4}


@pytest.mark.parametrize("missing", ["partition", "process"])
def test_racks_that_are_not_all_known_do_not_matter(missing: str) -> None:
    tasks = tasks_of(4)
    facts, members = located(tasks, "baba"), in_racks("a", "b")
    if missing == "partition":
        facts = replace(facts, racks={**facts.racks, tasks[0]: [frozenset()]})
    else:
        members[0] = replace(members[0], rack="")
    wanted = settings(rack_aware_assignment_strategy="min_traffic")
    assert not Situation(facts, members, wanted).rack_aware
    plain = assign_tasks(facts, members, settings()).active
    assert assign_tasks(facts, members, wanted).active == plain


def test_a_task_with_much_state_warms_up_in_the_rack_of_its_partition_before_it_moves() -> None:
    tasks = tasks_of(2)
    facts = located(tasks, "ba", BIG)
    members = holding(in_racks("a", "b"), {"p0-t0": [tasks[0]], "p1-t0": [tasks[1]]})
    given = assign_tasks(facts, members, settings(rack_aware_assignment_strategy="min_traffic"))
    assert given.active == {"p0-t0": [tasks[0]], "p1-t0": [tasks[1]]}
    assert given.warm_ups == {"p0-t0": [tasks[1]], "p1-t0": [tasks[0]]}


def test_a_task_stays_if_moving_costs_more_than_its_traffic() -> None:
    tasks = tasks_of(2)
    members = holding(in_racks("a", "b"), {"p0-t0": [tasks[0]], "p1-t0": [tasks[1]]})
    wanted = settings(
        rack_aware_assignment_strategy="min_traffic",
        rack_aware_assignment_traffic_cost=1,
        rack_aware_assignment_non_overlap_cost=2,
    )
    given = assign_tasks(located(tasks, "ba"), members, wanted)
    assert given.active == {"p0-t0": [tasks[0]], "p1-t0": [tasks[1]]}


def test_a_standby_is_in_another_rack_than_its_task() -> None:
    tasks = tasks_of(8)
    members = in_racks("a", "a", "b", "b")
    wanted = settings(rack_aware_assignment_strategy="min_traffic", num_standby_replicas=1)
    given = assign_tasks(located(tasks, "abababab"), members, wanted)
    rack_of = {m.process_id: m.rack for m in members}
    active, standbys = processes_of(given.active), processes_of(given.standbys)
    assert all(rack_of[active[task][0]] != rack_of[standbys[task][0]] for task in tasks)


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
)
@examples(max_examples=60, deadline=None)
def test_no_even_assignment_has_less_traffic(of_tasks: list[str], of_processes: list[str]) -> None:
    tasks, members = tasks_of(len(of_tasks)), in_racks(*of_processes)
    facts = located(tasks, "".join(of_tasks))
    given = assign_tasks(facts, members, settings(rack_aware_assignment_strategy="min_traffic"))
    found = crossing(facts, members, {task: places[0] for task, places in processes_of(given.active).items()})
    names = [m.process_id for m in members]
    least = min(
        crossing(facts, members, dict(zip(tasks, owners, strict=True)))
        for owners in itertools.product(names, repeat=len(tasks))
        if max(map(owners.count, names)) - min(map(owners.count, names)) <= 1
    )
    assert found == least
