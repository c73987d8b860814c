"""Each process has its share of each sub-topology, in proportion to its threads. Only a task whose state is not there
yet waits elsewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pystreams.runtime.group.assignor import assign_tasks
from pystreams.runtime.group.even_spread import spread_evenly
from pystreams.runtime.group.situation import AssignorMember, Situation, TaskFacts
from tests.examples import examples
from tests.unit.runtime.group.assignor_kit import (
    Shares,
    facts_of,
    members_of,
    owners_of,
    owning,
    settings,
    settled,
    tasks_of,
)

END = 1_000_000


def test_no_process_gets_all_tasks_of_a_subtopology_because_it_has_as_many_threads() -> None:
    members = members_of(4, 4)
    given = assign_tasks(facts_of(tasks_of(4, 4)), members)
    owners = owners_of(given.active, members)
    assert Counter((m.process_id, task.subtopology) for task, m in owners.items()) == {
        ("p0", 0): 2,
        ("p0", 1): 2,
        ("p1", 0): 2,
        ("p1", 1): 2,
    }


widths = st.lists(st.integers(1, 6), min_size=1, max_size=4)
threads = st.lists(st.integers(1, 3), min_size=1, max_size=4)
#: Any member, or none, for each of up to 24 tasks.
owners = st.lists(st.integers(0, 12), min_size=24, max_size=24)
replicas = st.integers(0, 2)


@given(widths, threads, owners, replicas)
@examples(40)
def test_stateful_tasks_are_even_at_once_if_no_process_lacks_much(
    widths: list[int], threads: list[int], owners: list[int], replicas: int
) -> None:
    tasks, wanted = tasks_of(*widths), settings(num_standby_replicas=replicas)
    facts = facts_of(tasks, wanted.acceptable_recovery_lag)
    members = owning(members_of(*threads), tasks, owners, wanted.acceptable_recovery_lag)
    given = assign_tasks(facts, members, wanted)
    assert Shares(tasks, members).are_kept(owners_of(given.active, members))


def with_progress(members: list[AssignorMember], facts: TaskFacts, random: Random) -> list[AssignorMember]:
    """The members, each with any state and standbys."""
    tasks = sorted(facts.tasks)
    return [
        replace(
            m,
            state={**{task: random.choice((0, END // 2, END)) for task in tasks}, **m.state},
            standbys=frozenset(task for task in tasks if task not in m.owned and random.random() < 0.2),
        )
        for m in members
    ]


@given(widths, threads, owners, replicas, st.randoms(use_true_random=False))
@examples(40)
def test_only_tasks_whose_process_is_not_ready_are_in_another_one_which_is(
    widths: list[int], threads: list[int], owners: list[int], replicas: int, random: Random
) -> None:
    tasks, wanted = tasks_of(*widths), settings(num_standby_replicas=replicas)
    facts = facts_of(tasks, END)
    members = with_progress(owning(members_of(*threads), tasks, owners, END), facts, random)
    situation = Situation(facts, members, wanted)
    spread = {task: situation.members[index] for task, index in spread_evenly(situation).items()}
    assert Shares(tasks, members).are_kept(spread)
    found = assign_tasks(facts, members, wanted)
    for task, m in owners_of(found.active, members).items():
        ready = situation.ready(task)
        assert m.process_id in ready
        assert m.process_id == spread[task].process_id or spread[task].process_id not in ready


@given(widths, threads, owners, replicas, st.randoms(use_true_random=False))
@examples(40)
def test_they_are_even_when_they_have_warmed_up(
    widths: list[int], threads: list[int], owners: list[int], replicas: int, random: Random
) -> None:
    tasks, wanted = tasks_of(*widths), settings(num_standby_replicas=replicas)
    facts = facts_of(tasks, END)
    members = with_progress(owning(members_of(*threads), tasks, owners, END), facts, random)
    assigned, members = settled(facts, members, wanted)
    assert Shares(tasks, members).are_kept(owners_of(assigned.active, members))
