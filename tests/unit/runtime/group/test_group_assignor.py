"""The assignor over members' bytes: tasks become partitions, and members that do not fit are told why."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from pystreams.broker.port import MemberInfo
from pystreams.errors import TopologyError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.group_assignor import GroupAssignor
from pystreams.runtime.group.membership_data import (
    AssignmentInfo,
    Subscription,
    decode_assignment_info,
    decode_subscription,
    encode,
    pack_topology,
    unpack_tasks,
    unpack_topology,
    whereabouts_of,
)
from pystreams.runtime.group.situation import AssignorSettings

INPUTS = {TaskId(0, i): frozenset({TopicPartition("A", i), TopicPartition("B", i)}) for i in range(3)}
TOPOLOGY = pack_topology([{"nodes": []}])
ASSIGN = GroupAssignor(INPUTS, frozenset(), "f", TOPOLOGY)


class Log:
    """A log whose changelogs end there, and that has no racks."""

    def __init__(self, ends: Mapping[TaskId, int]) -> None:
        self.ends = ends
        self.asked: list[int] = []

    def end_sums(self, tasks: Collection[TaskId]) -> dict[TaskId, int]:
        self.asked.append(len(tasks))
        return {task: self.ends[task] for task in tasks}

    def racks(self, partitions: object) -> dict[TaskId, list[frozenset[str]]]:
        return {}


def member(
    name: str,
    *,
    fingerprint: str = "f",
    owned: frozenset[TopicPartition] = frozenset(),
    shutdown: bool = False,
    process: str = "p",
) -> MemberInfo:
    subscription = Subscription(fingerprint, process, name, shutdown=shutdown)
    return MemberInfo(name, encode(subscription), owned)


def test_both_inputs_of_a_task_go_to_one_member() -> None:
    result = ASSIGN([member("t1"), member("t2")])
    assert [str(p) for p in result["t1"].partitions] == ["A-0", "A-2", "B-0", "B-2"]
    assert [str(p) for p in result["t2"].partitions] == ["A-1", "B-1"]
    assert decode_assignment_info(result["t1"].user_data) == AssignmentInfo(tasks=3, members=2)


def test_all_get_to_know_who_has_which_task_with_stores() -> None:
    inputs = {TaskId(sub, i): frozenset({TopicPartition(f"T{sub}", i)}) for sub in (0, 1) for i in range(3)}
    stateful = frozenset(task for task in inputs if task.subtopology == 1)
    assign = GroupAssignor(inputs, stateful, "f", TOPOLOGY)
    result = assign([member("t1"), member("t2")])
    for name in ("t1", "t2"):
        told = whereabouts_of(decode_assignment_info(result[name].user_data))
        assert told.owners_of(0) == {}
        for partition, owner in told.owners_of(1).items():
            assert TopicPartition("T1", partition) in result[owner].partitions
        assert len(told.owners_of(1)) == 3


def test_a_thousand_tasks_of_two_hundred_threads_cost_less_than_a_kilobyte_in_what_a_process_gets() -> None:
    inputs = {TaskId(0, i): frozenset({TopicPartition("T", i)}) for i in range(1_000)}
    names = [f"t{number}" for number in range(200)]
    members = [
        MemberInfo(name, encode(Subscription("f", name, name, worker=1)), frozenset()) for name in names
    ]
    told = GroupAssignor(inputs, frozenset(inputs), "f", TOPOLOGY)(members)["t0"].user_data
    assert len(told) < 1_000


def test_end_offsets_are_asked_for_only_if_state_could_move() -> None:
    log = Log(dict.fromkeys(INPUTS, 0))
    assign = GroupAssignor(INPUTS, frozenset(INPUTS), "f", TOPOLOGY, INPUTS, log=log)
    assign([member("t1"), member("t2")])
    assert not log.asked
    assign([member("t1"), member("t2", process="q")])
    assert log.asked == [3]


def grown(settings: AssignorSettings | None = None) -> tuple[GroupAssignor, list[MemberInfo]]:
    """One process has all tasks, with much state; another one has come."""
    ends = dict.fromkeys(INPUTS, 10**6)
    tasks = frozenset(INPUTS)
    assign = GroupAssignor(
        INPUTS,
        tasks,
        "f",
        TOPOLOGY,
        INPUTS,
        settings or AssignorSettings(),
        Log(ends),
        follow_up_ms=60_000,
    )
    owned = frozenset[TopicPartition]().union(*INPUTS.values())
    return assign, [member("t1", owned=owned), member("t2", process="q")]


def test_a_member_that_warms_up_has_to_ask_again() -> None:
    assign, members = grown()
    result = assign(members)
    assert len(result["t1"].partitions) == 6
    info = decode_assignment_info(result["t2"].user_data)
    assert result["t2"].partitions == ()
    assert len(unpack_tasks(info.standbys)) == 1
    assert info.awaited == info.coming == info.standbys
    assert info.follow_up_ms == 60_000
    assert decode_assignment_info(result["t1"].user_data).follow_up_ms == 0


def test_a_standby_goes_on_until_its_task_arrives_from_another_process() -> None:
    assign, members = grown()
    first = decode_assignment_info(assign(members)["t2"].user_data)
    (task,) = unpack_tasks(first.standbys)
    ready = Subscription(
        "f", "q", "t2", {task.subtopology: {task.partition: 10**6}}, first.standbys, first.coming
    )
    result = assign([members[0], MemberInfo("t2", encode(ready), frozenset())])
    assert set(result["t2"].partitions) == INPUTS[task]
    info = decode_assignment_info(result["t2"].user_data)
    assert unpack_tasks(info.standbys) == {task}
    assert not info.awaited
    assert not info.follow_up_ms


def test_an_assignment_that_does_not_say_where_tasks_are_names_nobody() -> None:
    assert whereabouts_of(decode_assignment_info(encode(AssignmentInfo(tasks=3, members=2)))).owners == {}


def test_a_member_with_another_topology_gets_nothing_but_the_reason() -> None:
    running = member("old", owned=INPUTS[TaskId(0, 0)])
    result = ASSIGN([member("a-new", fingerprint="g"), member("b-new", fingerprint="g"), running])
    assert len(result["old"].partitions) == 6
    assert result["a-new"].partitions == ()
    info = decode_assignment_info(result["a-new"].user_data)
    assert info.error == "the topology of a-new differs from the one that the group runs"
    assert unpack_topology(info.topology) == [{"nodes": []}]
    assert decode_assignment_info(result["old"].user_data).topology == b""


def test_a_leader_that_is_refused_itself_passes_on_what_the_others_have_said() -> None:
    leader = GroupAssignor(INPUTS, frozenset(), "g", pack_topology([]))
    told = Subscription("f", "p", "old", topology=TOPOLOGY)
    running = MemberInfo("old", encode(told), INPUTS[TaskId(0, 0)])
    result = leader([member("new", fingerprint="g"), running])
    assert decode_assignment_info(result["new"].user_data).topology == TOPOLOGY


def test_a_member_that_speaks_another_protocol_gets_nothing_but_the_reason() -> None:
    result = ASSIGN([member("t1"), MemberInfo("alien", b"\x63{}", frozenset())])
    assert len(result["t1"].partitions) == 6
    assert "another version of the protocol" in decode_assignment_info(result["alien"].user_data).error


def test_a_member_whose_state_cannot_be_read_gets_nothing_but_the_reason() -> None:
    broken = encode(Subscription("f", "q", "broken", on_disk=b"no deflated bytes"))
    result = ASSIGN([member("t1"), MemberInfo("broken", broken, frozenset())])
    assert len(result["t1"].partitions) == 6
    assert "cannot be read" in decode_assignment_info(result["broken"].user_data).error


def test_one_member_can_ask_all_to_stop() -> None:
    result = ASSIGN([member("t1"), member("t2", shutdown=True)])
    assert all(decode_assignment_info(assignment.user_data).shutdown for assignment in result.values())


@pytest.mark.parametrize("data", [b"", b"\x01not msgpack", b"\x02\x80", b"\x01\x80"])
def test_bytes_that_are_no_subscription_are_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(TopologyError):
        decode_subscription(data)


def test_unknown_entries_are_skipped_so_that_later_versions_can_add_some() -> None:
    import msgspec

    data = b"\x01" + msgspec.msgpack.encode(
        {"fingerprint": "f", "process_id": "p", "thread": "t", "of later": {"z": "1"}}
    )
    assert decode_subscription(data) == Subscription("f", "p", "t")
