"""Of two living members with one transactional id, one gives up, and says where the other one is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pystreams.broker.port import GroupDescription, MemberDescription
from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError, SupersededError
from pystreams.runtime.recovery.rivals import Rivals

GROUP, ID, SESSION_TIMEOUT_MS = "app", "app-8f14e45f-1-1", 6_000
ONE = MemberDescription(f"{ID}-one", ID, "10.0.0.1")
TWO = MemberDescription(f"{ID}-two", ID, "10.0.0.2")
ELSE = MemberDescription("app-else-1-1-three", "app-else-1-1", "10.0.0.3")


class Group:
    """The members as the group shows them."""

    def __init__(self, *members: MemberDescription) -> None:
        self.members = members
        self.away = False

    def describe_group(self, group: str) -> GroupDescription:
        assert group == GROUP
        if self.away:
            raise BrokerUnavailableError("the coordinator does not answer")
        return GroupDescription(self.members)


class Fenced:
    """A thread whose transaction others have ended."""

    def __init__(self, group: Any, member: MemberDescription) -> None:
        self.clock = ManualClock()
        self._member: Any = member
        self._rivals = Rivals(
            GROUP, ID, Path("/state/app/process.json"), group, self.clock, SESSION_TIMEOUT_MS
        )

    def look(self, later_ms: int = 0) -> None:
        self.clock.advance_ms(later_ms)
        self._rivals.look(self._member)


def test_one_of_two_gives_up_when_the_other_one_is_certainly_alive() -> None:
    group = Group(ONE, TWO, ELSE)
    stays, gives_up = Fenced(group, ONE), Fenced(group, TWO)
    for thread in (stays, gives_up):
        thread.look()
        thread.look(SESSION_TIMEOUT_MS)
    stays.look(SESSION_TIMEOUT_MS)
    with pytest.raises(SupersededError) as raised:
        gives_up.look(1)
    message = str(raised.value)
    assert "(10.0.0.2), the other one on 10.0.0.1" in message
    assert "/state/app/process.json" in message
    assert "delete the file" in message


def test_a_member_that_was_left_behind_is_gone_before_it_counts() -> None:
    group = Group(ONE, TWO)
    thread = Fenced(group, TWO)
    thread.look()
    group.members = (TWO,)
    thread.look(SESSION_TIMEOUT_MS)
    group.members = (ONE, TWO)  # another one, with a session of its own
    thread.look(1)
    thread.look(SESSION_TIMEOUT_MS)


def test_members_with_other_ids_are_no_rivals() -> None:
    thread = Fenced(Group(ELSE, TWO), TWO)
    thread.look()
    thread.look(2 * SESSION_TIMEOUT_MS)


def test_without_an_answer_nobody_gives_up() -> None:
    group = Group(ONE, TWO)
    thread = Fenced(group, TWO)
    thread.look()
    group.away = True
    thread.look(2 * SESSION_TIMEOUT_MS)
    group.away = False
    with pytest.raises(SupersededError):
        thread.look()


def test_who_is_no_member_at_the_moment_does_not_judge() -> None:
    group = Group(ONE)
    thread = Fenced(group, TWO)
    thread.look()
    thread.look(2 * SESSION_TIMEOUT_MS)
