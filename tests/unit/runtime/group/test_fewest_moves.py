"""No even assignment moves fewer tasks: all are tried, for up to six tasks on processes of one to three threads."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from pystreams.ids import TaskId
from pystreams.runtime.group.assignor import assign_tasks
from pystreams.runtime.group.situation import AssignorMember, TaskFacts
from tests.examples import examples
from tests.unit.runtime.group.assignor_kit import (
    Shares,
    few_owners,
    few_tasks,
    few_threads,
    holding,
    members_of,
    owners_of,
    owning,
    settings,
    settled,
    tasks_of,
)

Owners = Mapping[TaskId, AssignorMember]


class Case:
    """Members that hold tasks in any way, also unevenly, with the state of the stateful ones; and what they hold in the
    end."""

    def __init__(
        self, widths: list[int], stateful: set[int], end: int, threads: list[int], owners: list[int]
    ) -> None:
        tasks = tasks_of(*widths)
        self.stateful = frozenset(task for task in tasks if task.subtopology in stateful)
        facts = TaskFacts(frozenset(tasks), self.stateful, self.stateful, dict.fromkeys(self.stateful, end))
        members = owning(members_of(*threads), tasks, owners, end)
        self.before = {task: m for m in members for task in m.owned}
        given, _ = settled(facts, members, settings())
        self.after = owners_of(given.active, members)
        self.even = list(Shares(tasks, members).all_even())

    def to_other_processes(self, owners: Owners) -> tuple[int, int]:
        """How many stateful tasks, and how many at all, change their process."""
        moved = [task for task, before in self.before.items() if owners[task].process_id != before.process_id]
        return len(self.stateful.intersection(moved)), len(moved)

    def to_other_threads(self, owners: Owners) -> int:
        return sum(owners[task].member_id != before.member_id for task, before in self.before.items())


subtopologies = st.sets(st.integers(0, 2))
#: Those with state, and how much it is. While it is nothing, they are like those without.
state = st.one_of(
    st.tuples(subtopologies, st.sampled_from([1, 1_000_000])), st.tuples(st.just({0, 1, 2}), st.just(0))
)


@given(few_tasks, state, few_threads, few_owners)
@examples(60)
def test_no_even_assignment_moves_fewer_stateful_tasks_or_else_fewer_tasks_to_other_processes(
    widths: list[int], state: tuple[set[int], int], threads: list[int], owners: list[int]
) -> None:
    case = Case(widths, *state, threads, owners)
    fewest = min(map(case.to_other_processes, case.even))
    assert case.to_other_processes(case.after) == fewest


@given(few_tasks, subtopologies, few_threads, few_owners)
@examples(60)
def test_with_the_same_tasks_in_each_process_no_even_assignment_moves_fewer_to_other_threads(
    widths: list[int], stateful: set[int], threads: list[int], owners: list[int]
) -> None:
    case = Case(widths, stateful, 1, threads, owners)
    process_of = {task: m.process_id for task, m in case.after.items()}
    alike = [e for e in case.even if {task: m.process_id for task, m in e.items()} == process_of]
    assert case.to_other_threads(case.after) == min(map(case.to_other_threads, alike))


def test_as_many_tasks_leave_each_thread_of_a_process_so_that_the_others_stay() -> None:
    facts = TaskFacts(frozenset(tasks_of(12, 12)))
    two = assign_tasks(facts, members_of(4, 4)).active
    three = assign_tasks(facts, holding(members_of(4, 4, 4), two)).active
    assert all({*three[thread]} <= {*tasks} for thread, tasks in two.items())
