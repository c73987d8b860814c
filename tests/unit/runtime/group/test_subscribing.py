"""A thread sends what it has, and one thread of each process what all of them know."""

from __future__ import annotations

import pytest

from pystreams.ids import TaskId
from pystreams.runtime.group.membership_data import (
    AssignmentInfo,
    Subscription,
    pack_offsets,
    pack_tasks,
)
from pystreams.runtime.group.subscribing import (
    TOPOLOGIES_BYTES_MAX,
    OfProcess,
    OwnTasks,
    subscription_now,
)

BASE = Subscription("f", "p", "t", worker=2, rack="a")
A, B, C = (TaskId(0, partition) for partition in range(3))


def test_a_thread_says_what_it_has_and_what_it_was_told_to_run() -> None:
    own = OwnTasks(frozenset({A, B}), frozenset({C}), {A: 3, B: 4, C: 5})
    told = AssignmentInfo(coming=pack_tasks([B, C]))
    said = subscription_now(BASE, told, own, OfProcess(), 3)
    assert said == Subscription(
        "f",
        "p",
        "t",
        worker=2,
        rack="a",
        reached={0: {0: 3, 1: 4, 2: 5}},
        standbys={0: [0, 1]},
        coming={0: [1]},
        restoring={0: [2]},
    )


def test_state_that_a_thread_fills_is_not_said_twice() -> None:
    own = OwnTasks(reached={A: 3})
    said = subscription_now(BASE, AssignmentInfo(), own, OfProcess({A: 2, B: 7}), 3)
    assert said.on_disk == pack_offsets({B: 7})


@pytest.mark.parametrize("members", [1, 4, 5])
@pytest.mark.parametrize("known", [True, False], ids=["members are known", "one for each task"])
def test_a_topology_is_sent_if_those_of_all_members_fit(members: int, known: bool) -> None:
    topology = bytes(TOPOLOGIES_BYTES_MAX // 4)
    told = AssignmentInfo(members=members if known else 0)
    said = subscription_now(BASE, told, OwnTasks(), OfProcess({}, topology), 1_000 if known else members)
    assert said.topology == (topology if members <= 4 else b"")
