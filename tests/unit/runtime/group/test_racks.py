"""With a rack-aware strategy tasks go where their partitions are, at the least cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.ids import TaskId
from pystreams.runtime.group.assignor import assign_tasks
from pystreams.runtime.group.situation import AssignorMember, Situation, TaskFacts
from tests.examples import examples
from tests.unit.runtime.group.assignor_kit import (
    Shares,
    facts_of,
    few_owners,
    few_tasks,
    few_threads,
    holding,
    members_of,
    owners_of,
    owning,
    processes_of,
    settings,
    settled,
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


def test_traffic_counts_more_than_state_however_many_tasks_have_to_go_elsewhere() -> None:
    """Task 0 can be read in its rack only if each task goes one process further."""
    tasks, racks = tasks_of(6), "abcdef"
    located_twice = {task: [{racks[task.partition], racks[task.partition - 1]}] for task in tasks[1:]}
    facts = facts_of(tasks, BIG, racks={tasks[0]: [{"f"}], **located_twice})
    members = owning(in_racks(*racks), tasks, range(6), BIG)
    wanted = settings(
        rack_aware_assignment_strategy="min_traffic",
        rack_aware_assignment_traffic_cost=7,
        rack_aware_assignment_non_overlap_cost=1,
    )
    given, members = settled(facts, members, wanted)
    owners = {task: m.process_id for task, m in owners_of(given.active, members).items()}
    assert crossing(facts, members, owners) == 0


places = st.frozensets(st.sampled_from("abc"), min_size=1, max_size=2)
#: For each of up to six tasks the racks of the replicas of its input partitions.
partitions = st.lists(st.lists(places, min_size=1, max_size=2), min_size=6, max_size=6)
#: For each of up to six processes.
of_processes = st.lists(st.sampled_from("abc"), min_size=6, max_size=6)


@given(
    few_tasks,
    partitions,
    few_threads,
    of_processes,
    few_owners,
    st.sampled_from([1, BIG]),
    st.sampled_from(["min_traffic", "balance_subtopology"]),
    st.sampled_from([(None, None), (10, 0), (1, 1), (2, 3), (0, 1)]),
)
@examples(80)
def test_no_even_assignment_costs_less(
    widths: list[int],
    partitions: list[list[frozenset[str]]],
    threads: list[int],
    of_processes: list[str],
    owners: list[int],
    end: int,
    strategy: str,
    costs: tuple[int | None, int | None],
) -> None:
    tasks = tasks_of(*widths)
    facts = facts_of(tasks, end, racks=dict(zip(tasks, partitions, strict=False)))
    rack_of = {f"p{number}": rack for number, rack in enumerate(of_processes)}
    members = [
        replace(m, rack=rack_of[m.process_id]) for m in owning(members_of(*threads), tasks, owners, end)
    ]
    before = {task: m.process_id for m in members for task in m.owned}
    wanted = settings(
        rack_aware_assignment_strategy=strategy,
        rack_aware_assignment_traffic_cost=costs[0],
        rack_aware_assignment_non_overlap_cost=costs[1],
    )
    traffic, move = 10 if costs[0] is None else costs[0], 1 if costs[1] is None else costs[1]

    def cost(given: Mapping[TaskId, AssignorMember]) -> int:
        owner_of = {task: m.process_id for task, m in given.items()}
        moves = sum(owner_of[task] != process for task, process in before.items())
        return traffic * crossing(facts, members, owner_of) + move * moves

    assigned, _ = settled(facts, members, wanted)
    after = owners_of(assigned.active, members)
    shares = Shares(tasks, members, within=strategy == "balance_subtopology")
    assert shares.are_kept(after)
    assert cost(after) == min(map(cost, shares.all_even()))
