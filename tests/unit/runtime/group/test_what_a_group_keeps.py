"""What the members of a large group send and get fits into the megabyte that Kafka keeps of it, however many threads
they have, and what one process knows is said once."""

from __future__ import annotations

import pytest

from pystreams.broker.port import MemberAssignment, MemberInfo
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.group_assignor import GroupAssignor
from pystreams.runtime.group.membership_data import (
    Subscription,
    decode_assignment_info,
    encode,
    whereabouts_of,
)
from tests.unit.runtime.group.large_group_kit import ASSIGN, TASKS, kept_bytes, threads_of

PROCESSES = 50


def rebalanced(threads: int) -> list[tuple[MemberInfo, MemberAssignment]]:
    """What each member has sent and got, when the group has its tasks and joins again."""
    group = threads_of(PROCESSES, threads)
    for _ in range(2):
        said = [thread.says() for thread in group]
        given = ASSIGN(said)
        for thread in group:
            thread.hears(given[thread.member_id])
    return [(one, given[one.member_id]) for one in said]


@pytest.mark.parametrize(
    ("threads", "data_kb", "kept_kb"), [(1, 420, 600), (4, 560, 900)], ids=["one thread", "four threads"]
)
def test_a_group_of_a_thousand_tasks_that_all_have_state_everywhere_is_kept_by_kafka(
    threads: int, data_kb: int, kept_kb: int
) -> None:
    """``data_kb`` is what pystreams sends and gives, ``kept_kb`` with what Kafka's protocol adds."""
    both = rebalanced(threads)
    assert sum(len(said.user_data) + len(given.user_data) for said, given in both) < data_kb * 1_000
    assert sum(kept_bytes(said, given) for said, given in both) < kept_kb * 1_000


def test_more_threads_do_not_multiply_what_is_said_of_all_tasks() -> None:
    one, four = (sum(len(given.user_data) for _, given in rebalanced(threads)) for threads in (1, 4))
    assert four < 2 * one


def test_one_thread_of_each_process_is_told_where_all_tasks_are() -> None:
    told = [whereabouts_of(decode_assignment_info(given.user_data)) for _, given in rebalanced(4)]
    knowing = [one for one in told if one.threads]
    assert len(knowing) == PROCESSES
    assert all(one == knowing[0] for one in knowing)
    placed = {TaskId(sub, p) for sub in knowing[0].owners for p in knowing[0].owners_of(sub)}
    assert placed == TASKS


def test_a_member_of_before_is_told_in_its_own_words() -> None:
    """Its subscription does not say which worker it is."""
    inputs = {TaskId(0, p): frozenset({TopicPartition("T", p)}) for p in range(2)}
    assign = GroupAssignor(inputs, frozenset(inputs), "f", b"")
    old = MemberInfo("a", encode(Subscription("f", "p", "a-thread", {0: {0: 5}})), frozenset())
    new = MemberInfo("b", encode(Subscription("f", "q", "b-thread", worker=1)), frozenset())
    given = {name: decode_assignment_info(one.user_data) for name, one in assign([old, new]).items()}
    assert given["a"].threads == ["a-thread", "b-thread"]
    assert (given["a"].owners, given["a"].whereabouts) == ({0: [0, 1]}, b"")
    assert given["b"].threads == []
    assert whereabouts_of(given["b"]) == whereabouts_of(given["a"])


def test_processes_that_share_a_disk_are_told_each() -> None:
    inputs = {TaskId(0, p): frozenset({TopicPartition("T", p)}) for p in range(4)}
    said = [
        MemberInfo(f"{worker}-{thread}", encode(Subscription("f", "p", "t", worker=worker)), frozenset())
        for worker in (1, 2)
        for thread in (1, 2)
    ]
    given = GroupAssignor(inputs, frozenset(inputs), "f", b"")(said)
    told = [name for name, one in given.items() if decode_assignment_info(one.user_data).whereabouts]
    assert told == ["1-1", "2-1"]
