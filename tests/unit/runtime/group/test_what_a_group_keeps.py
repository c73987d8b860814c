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
    decode_subscription,
    encode,
    whereabouts_of,
)
from pystreams.runtime.group.subscribing import TOPOLOGIES_BYTES_MAX
from tests.unit.runtime.group.large_group_kit import ASSIGN, TASKS, TOPOLOGY, kept_bytes, threads_of

PROCESSES = 50


def rebalanced(threads: int, processes: int = PROCESSES) -> list[tuple[MemberInfo, MemberAssignment]]:
    """What each member has sent and got, when the group has its tasks and joins again."""
    group = threads_of(processes, threads)
    for _ in range(2):
        said = [thread.says() for thread in group]
        given = ASSIGN(said)
        for thread in group:
            thread.hears(given[thread.member_id])
    return [(one, given[one.member_id]) for one in said]


@pytest.mark.parametrize(
    ("threads", "data_kb", "kept_kb"), [(1, 420, 540), (4, 560, 880)], ids=["one thread", "four threads"]
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


@pytest.mark.parametrize(("processes", "sent"), [(PROCESSES, 0), (7, 7)], ids=["large", "small"])
def test_one_thread_of_each_process_sends_its_topology_in_a_small_group(processes: int, sent: int) -> None:
    topologies = [decode_subscription(said.user_data).topology for said, _ in rebalanced(4, processes)]
    assert [one for one in topologies if one] == [TOPOLOGY] * sent
    assert sum(map(len, topologies)) <= TOPOLOGIES_BYTES_MAX


def test_one_thread_of_each_process_is_told_where_all_tasks_are() -> None:
    told = [whereabouts_of(decode_assignment_info(given.user_data)) for _, given in rebalanced(4)]
    knowing = [one for one in told if one.threads]
    assert len(knowing) == PROCESSES
    assert all(one == knowing[0] for one in knowing)
    placed = {TaskId(sub, p) for sub in knowing[0].owners for p in knowing[0].owners_of(sub)}
    assert placed == TASKS


def test_a_member_with_an_older_version_is_told_in_the_fields_that_it_knows() -> None:
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


def told(*says: Subscription) -> list[int]:
    """The places of those members that are told where all tasks are."""
    inputs = {TaskId(0, p): frozenset({TopicPartition("T", p)}) for p in range(4)}
    members = [MemberInfo(str(place), encode(said), frozenset()) for place, said in enumerate(says)]
    given = GroupAssignor(inputs, frozenset(inputs), "f", b"")(members)
    return [
        place for place in range(len(says)) if decode_assignment_info(given[str(place)].user_data).whereabouts
    ]


def said(thread: str, worker: int = 1, endpoint: str = "") -> Subscription:
    """What a thread of a process with the process id ``p`` says."""
    return Subscription("f", "p", f"app-p-{worker}-StreamThread-{thread}", worker=worker, endpoint=endpoint)


def test_processes_that_share_a_disk_are_told_each() -> None:
    assert told(said("1", worker=1), said("2", worker=1), said("1", worker=2), said("2", worker=2)) == [0, 2]


def test_processes_whose_state_directory_was_copied_are_told_each() -> None:
    """They have the same process id, and their threads the same names."""
    assert told(said("1"), said("2"), said("2"), said("1")) == [0, 3]


def test_they_are_told_apart_by_their_endpoints_also_if_their_threads_have_other_names() -> None:
    one, two = "one:8080", "two:8080"
    assert told(said("1", 1, one), said("2", 1, one), said("2", 1, two), said("3", 1, two)) == [0, 2]
