"""A failed thread that asks all others to stop leaves the group only when the group has passed its request on."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from pystreams.broker.port import Assigned, Member, MemberEvent
from pystreams.clock import SystemClock
from pystreams.ids import TopicPartition
from pystreams.runtime.group.membership_data import AssignmentInfo, encode
from pystreams.runtime.threads.thread_end import ask_all_to_stop


class Group:
    """The member of a group that makes the given assignments, one a poll."""

    def __init__(self, *infos: AssignmentInfo) -> None:
        self.coming = list(infos)
        self.claims: list[Collection[TopicPartition]] = []
        self.rejoins = 0

    def request_rejoin(self) -> None:
        self.rejoins += 1

    def claim(self, partitions: Collection[TopicPartition]) -> None:
        self.claims.append(partitions)

    def poll(self) -> list[MemberEvent]:
        assert self.coming, "asked for more after the others have left"
        return [Assigned(1, (), encode(self.coming.pop(0)))]


BEFORE_THE_REQUEST = AssignmentInfo(tasks=2, members=1)
OTHERS_ARE_ASKED = AssignmentInfo(tasks=2, members=2, shutdown=True)
OTHERS_HAVE_LEFT = AssignmentInfo(tasks=2, members=1, shutdown=True)


@pytest.mark.parametrize(
    "assignments",
    [
        pytest.param((OTHERS_HAVE_LEFT,), id="alone"),
        pytest.param((OTHERS_ARE_ASKED, OTHERS_HAVE_LEFT), id="others stop"),
        pytest.param((BEFORE_THE_REQUEST, OTHERS_HAVE_LEFT), id="an assignment from before"),
        pytest.param((BEFORE_THE_REQUEST, OTHERS_ARE_ASKED, OTHERS_HAVE_LEFT), id="both"),
    ],
)
def test_it_stays_until_the_request_is_known_and_the_others_have_left(
    assignments: tuple[AssignmentInfo, ...],
):
    group = Group(*assignments)
    member: Member = group  # type: ignore[assignment]
    ask_all_to_stop(member, SystemClock(), "a thread")
    assert group.coming == []
    assert group.rejoins == 1
    assert set(group.claims) == {()}
