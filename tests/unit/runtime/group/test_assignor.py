"""Standbys, warm-ups and active tasks: who gets what, for any group, and that it settles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pystreams.runtime.group.assignor import Assignment, assign_tasks
from pystreams.runtime.group.situation import AssignorMember, AssignorSettings, Situation, TaskFacts
from tests.examples import examples
from tests.unit.runtime.group.assignor_kit import (
    Shares,
    facts_of,
    lived,
    members_of,
    owners_of,
    processes_of,
    settings,
    settled,
    tasks_of,
)

BIG = 1_000_000
T0, T1, T2, T3 = tasks_of(4)


# Examples


def test_a_standby_is_in_the_other_process() -> None:
    given = assign_tasks(facts_of(tasks_of(4)), members_of(1, 1), settings(num_standby_replicas=1))
    assert given.active == {"p0-t0": [T0, T2], "p1-t0": [T1, T3]}
    assert given.standbys == {"p0-t0": [T1, T3], "p1-t0": [T0, T2]}
    assert not given.pending


def test_a_standby_takes_over_when_its_process_is_left_alone() -> None:
    facts, wanted = facts_of(tasks_of(4), BIG), settings(num_standby_replicas=1)
    both = assign_tasks(facts, members_of(1, 1), wanted)
    alone = assign_tasks(facts, lived(both, members_of(1, 1), facts.ends)[1:], wanted)
    assert alone.active == {"p1-t0": tasks_of(4)}
    assert not alone.pending


def test_each_task_of_the_process_that_left_goes_to_its_standby_not_to_another_process() -> None:
    facts, wanted = facts_of(tasks_of(6), BIG), settings(num_standby_replicas=1)
    three = assign_tasks(facts, members_of(1, 1, 1), wanted)
    later = lived(three, members_of(1, 1, 1), facts.ends)
    standbys = processes_of(three.standbys)
    two = assign_tasks(facts, later[1:], wanted)
    for task in three.active["p0-t0"]:
        assert processes_of(two.active)[task] == standbys[task]


def test_a_task_with_much_state_goes_on_where_it_is_while_another_process_warms_up() -> None:
    facts = facts_of(tasks_of(2), BIG)
    alone = assign_tasks(facts, members_of(1))
    members = [*lived(alone, members_of(1), facts.ends), *members_of(1, 1)[1:]]
    joined = assign_tasks(facts, members)
    assert joined.active == {"p0-t0": [T0, T1], "p1-t0": []}
    assert sum(map(len, joined.warm_ups.values())) == 1
    assert joined.pending
    (warm_up,) = joined.warm_ups["p1-t0"]
    ready = assign_tasks(facts, lived(joined, members, facts.ends))
    assert ready.active["p1-t0"] == [warm_up]
    assert not ready.pending
    assert not any(ready.warm_ups.values())


def test_a_task_with_little_state_moves_at_once() -> None:
    facts = facts_of(tasks_of(2), 10_000)
    members = [*lived(assign_tasks(facts, members_of(1)), members_of(1), facts.ends), *members_of(1, 1)[1:]]
    assert sorted(map(len, assign_tasks(facts, members).active.values())) == [1, 1]


def test_no_more_than_max_warmup_replicas_warm_up_at_a_time() -> None:
    facts = facts_of(tasks_of(12), BIG)
    members = [*lived(assign_tasks(facts, members_of(1)), members_of(1), facts.ends), *members_of(1, 1)[1:]]
    for limit in (1, 2, 5):
        joined = assign_tasks(facts, members, settings(max_warmup_replicas=limit))
        assert sum(map(len, joined.warm_ups.values())) == limit


def test_a_warm_up_that_has_begun_goes_on() -> None:
    facts = facts_of(tasks_of(12), BIG)
    members = [*lived(assign_tasks(facts, members_of(1)), members_of(1), facts.ends), *members_of(1, 1)[1:]]
    first = assign_tasks(facts, members)
    again = assign_tasks(facts, lived(first, members, facts.ends, read=0.5))
    assert again == first


def test_without_end_offsets_a_task_stays_where_it_is_and_the_group_tries_again() -> None:
    tasks = frozenset(tasks_of(2))
    known = facts_of(tasks, BIG)
    members = [*lived(assign_tasks(known, members_of(1)), members_of(1), known.ends), *members_of(1, 1)[1:]]
    given = assign_tasks(replace(known, ends=None), members)
    assert given.active == {"p0-t0": [T0, T1], "p1-t0": []}
    assert given.pending
    assert not any(given.warm_ups.values())


def test_a_task_that_is_still_being_restored_goes_where_its_state_is_complete() -> None:
    facts = facts_of([T0], BIG)
    restores = AssignorMember("p0-t0", "p0", "p0-t0", frozenset({T0}), {T0: 5}, restoring=frozenset({T0}))
    has_it = AssignorMember("p1-t0", "p1", "p1-t0", state={T0: BIG})
    assert assign_tasks(facts, [restores, has_it]).active["p1-t0"] == [T0]


def test_state_that_is_ahead_of_its_changelog_counts_as_none() -> None:
    facts = facts_of([T0], BIG)
    of_another_topic = AssignorMember("p0-t0", "p0", "p0-t0", state={T0: 2 * BIG})
    behind = AssignorMember("p1-t0", "p1", "p1-t0", state={T0: BIG // 2})
    assert assign_tasks(facts, [of_another_topic, behind]).active["p1-t0"] == [T0]


def test_the_threads_of_a_process_share_its_standbys() -> None:
    given = assign_tasks(facts_of(tasks_of(8)), members_of(2, 2), settings(num_standby_replicas=1))
    assert {len(tasks) for tasks in given.standbys.values()} == {2}


def test_a_standby_stays_with_its_thread() -> None:
    facts, wanted = facts_of(tasks_of(8), BIG), settings(num_standby_replicas=1)
    first = assign_tasks(facts, members_of(2, 2), wanted)
    again = assign_tasks(facts, lived(first, members_of(2, 2), facts.ends), wanted)
    assert again == first


def test_a_task_without_a_changelog_has_no_standby() -> None:
    facts = TaskFacts(frozenset({T0, T1}), frozenset({T0, T1}), frozenset({T1}), {T1: 5})
    given = assign_tasks(facts, members_of(1, 1), settings(num_standby_replicas=1))
    assert [task for tasks in given.standbys.values() for task in tasks] == [T1]


def test_a_lone_process_has_no_standbys_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    given = assign_tasks(facts_of([T0]), members_of(2), settings(num_standby_replicas=1))
    assert not any(given.standbys.values())
    assert "1 of 1 standby replicas of each task have no place" in caplog.text


def test_standbys_are_spread_over_the_values_of_a_tag() -> None:
    members = [
        replace(member, tags={"zone": zone, "cluster": cluster})
        for member, (zone, cluster) in zip(
            members_of(*[1] * 6), [(z, c) for c in "kl" for z in "abc"], strict=True
        )
    ]
    wanted = settings(num_standby_replicas=2, rack_aware_assignment_tags=("zone", "cluster"))
    given = assign_tasks(facts_of(tasks_of(12)), members, wanted)
    tags_of = {member.process_id: member.tags for member in members}
    active, standbys = processes_of(given.active), processes_of(given.standbys)
    for task in tasks_of(12):
        places = [tags_of[process] for process in (*active[task], *standbys[task])]
        assert {tags["zone"] for tags in places} == {"a", "b", "c"}
        assert {tags["cluster"] for tags in places} == {"k", "l"}


def test_a_tag_that_is_the_same_everywhere_does_not_hinder() -> None:
    members = [replace(member, tags={"zone": "a"}) for member in members_of(1, 1)]
    wanted = settings(num_standby_replicas=1, rack_aware_assignment_tags=("zone",))
    given = assign_tasks(facts_of(tasks_of(2)), members, wanted)
    assert [len(tasks) for tasks in given.standbys.values()] == [1, 1]


# Laws

groups = st.lists(st.integers(1, 3), min_size=1, max_size=4)
widths = st.lists(st.integers(1, 5), min_size=1, max_size=3)
replicas = st.integers(0, 3)
zones = st.sampled_from([(), ("a",), ("a", "b"), ("a", "b", "c")])


def in_zones(members: list[AssignorMember], names: tuple[str, ...]) -> list[AssignorMember]:
    return [
        replace(m, tags={"zone": names[int(m.process_id[1:]) % len(names)]}) if names else m for m in members
    ]


def check(
    given: Assignment, facts: TaskFacts, members: list[AssignorMember], wanted: AssignorSettings
) -> None:
    active, standbys, warm_ups = (
        processes_of(given.active),
        processes_of(given.standbys),
        processes_of(given.warm_ups),
    )
    assert sorted(task for tasks in given.active.values() for task in tasks) == sorted(facts.tasks)
    processes = {member.process_id for member in members}
    situation = Situation(facts, members, wanted)
    for task in facts.tasks:
        places = [*active[task], *standbys.get(task, ()), *warm_ups.get(task, ())]
        assert len(set(places)) == len(places), "one copy in a process"
        assert len(standbys.get(task, ())) == min(wanted.num_standby_replicas, len(processes) - 1)
        assert active[task][0] in situation.ready(task)
    assert sum(map(len, given.warm_ups.values())) <= wanted.max_warmup_replicas


@given(widths, groups, groups, replicas, zones, st.integers(0, 2 * BIG), st.integers(1, 3), st.randoms())
@examples(80)
def test_every_task_runs_once_where_it_is_ready_and_its_copies_are_elsewhere(
    widths: list[int],
    before: list[int],
    now: list[int],
    standbys: int,
    zones: tuple[str, ...],
    end: int,
    warm_ups: int,
    random,  # type: ignore[no-untyped-def]
) -> None:
    facts = facts_of(tasks_of(*widths), end)
    wanted = settings(
        num_standby_replicas=standbys, max_warmup_replicas=warm_ups, rack_aware_assignment_tags=("zone",)
    )
    held = assign_tasks(facts, in_zones(members_of(*before), zones), wanted)
    members = lived(held, in_zones(members_of(*now), zones), facts.ends, read=random.random())
    given = assign_tasks(facts, members, wanted)
    check(given, facts, members, wanted)
    random.shuffle(members)
    assert assign_tasks(facts, members, wanted) == given


@given(widths, groups, groups, replicas, zones, st.integers(1, 3))
@examples(40)
def test_warm_ups_lead_to_an_even_assignment_that_lasts(
    widths: list[int], before: list[int], now: list[int], standbys: int, zones: tuple[str, ...], warm_ups: int
) -> None:
    facts = facts_of(tasks_of(*widths), BIG)
    wanted = settings(
        num_standby_replicas=standbys, max_warmup_replicas=warm_ups, rack_aware_assignment_tags=("zone",)
    )
    members = in_zones(members_of(*before), zones)
    members = lived(assign_tasks(facts, members, wanted), members, facts.ends)
    known = {member.member_id: member for member in members}
    members = [known.get(m.member_id, m) for m in in_zones(members_of(*now), zones)]
    given, members = settled(facts, members, wanted)
    assert Shares(facts.tasks, members).are_kept(owners_of(given.active, members))
    assert assign_tasks(facts, lived(given, members, facts.ends), wanted) == given


@given(widths, groups, groups, replicas)
# A standby of another task moves, so that there is one warm-up more than may begin.
@example([5, 1, 3], [1], [1, 1, 2], 1)
# Two threads of the first process exchange a task, which moves no state.
@example([3, 3, 2], [1], [3, 3, 2], 0)
@examples(40)
def test_a_process_that_prepares_to_run_a_task_is_not_replaced_by_another(
    widths: list[int], before: list[int], now: list[int], standbys: int
) -> None:
    facts = facts_of(tasks_of(*widths), BIG)
    wanted = settings(num_standby_replicas=standbys)
    held = lived(assign_tasks(facts, members_of(*before), wanted), members_of(*before), facts.ends)
    known = {member.member_id: member for member in held}
    members = [known.get(m.member_id, m) for m in members_of(*now)]
    first = assign_tasks(facts, members, wanted)
    again = assign_tasks(facts, lived(first, members, facts.ends, read=0), wanted)
    assert processes_of(again.active) == processes_of(first.active)
    coming = processes_of(again.coming)
    assert all(coming.get(task) == processes for task, processes in processes_of(first.coming).items())


@given(widths, st.integers(2, 5), st.integers(1, 2))
@examples(25)
def test_standbys_are_spread_evenly(widths: list[int], processes: int, standbys: int) -> None:
    facts, members = facts_of(tasks_of(*widths)), members_of(*[1] * processes)
    given = assign_tasks(facts, members, settings(num_standby_replicas=standbys))
    counts = [len(given.active[m.member_id]) + len(given.standbys[m.member_id]) for m in members]
    assert max(counts) - min(counts) <= 1
