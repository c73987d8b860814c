"""Of two living processes with one process id, one gives up with all its threads, and says where the other one is."""

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
    """A thread whose transaction others have ended. ``process`` are the members of its process."""

    def __init__(self, group: Any, member: MemberDescription, *process: MemberDescription) -> None:
        self.clock = ManualClock()
        self._member: Any = member
        self._rivals = Rivals(
            GROUP,
            member.client_id,
            Path("/state/app/process.json"),
            group,
            self.clock,
            SESSION_TIMEOUT_MS,
            lambda: [one.member_id for one in process],
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


def two_threads(host: str, *member_ids: str) -> tuple[MemberDescription, ...]:
    """The members of a process with two threads."""
    return tuple(
        MemberDescription(member_id, f"app-8f14e45f-1-{thread}", host)
        for thread, member_id in enumerate(member_ids, 1)
    )


def gives_up(thread: Fenced) -> bool:
    thread.look()
    try:
        thread.look(SESSION_TIMEOUT_MS + 1)
    except SupersededError:
        return True
    return False


@pytest.mark.parametrize("hosts", [("h", "h"), ("g", "h")], ids=["one host", "two hosts"])
@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        (("a", "z"), ("b", "y")),
        (("z", "a"), ("y", "b")),
        (("a", "b"), ("y", "z")),
        (("a",), ("b", "c")),
        (("b", "a"), ("c",)),
    ],
)
@pytest.mark.parametrize("lower_is_first", [True, False])
def test_all_threads_of_a_process_decide_alike(
    hosts: tuple[str, str], lower: tuple[str, ...], higher: tuple[str, ...], *, lower_is_first: bool
) -> None:
    stays, ends = two_threads(hosts[0], *lower), two_threads(hosts[1], *higher)
    group = Group(*stays, *ends, ELSE) if lower_is_first else Group(*ends, ELSE, *stays)
    common = min(len(stays), len(ends))
    assert [gives_up(Fenced(group, member, *stays)) for member in stays] == [False] * len(stays)
    decided = [gives_up(Fenced(group, member, *ends)) for member in ends]
    assert decided == [True] * common + [False] * (len(ends) - common), (
        "a thread without a rival just goes on"
    )


def test_of_three_processes_one_goes_on() -> None:
    processes = [two_threads("h", *ids) for ids in (("c", "x"), ("b", "y"), ("z", "a"))]
    group = Group(*(member for process in processes for member in process))
    decided = [[gives_up(Fenced(group, member, *process)) for member in process] for process in processes]
    assert decided == [[True, True], [True, True], [False, False]]


def test_a_thread_that_has_just_joined_does_not_count_yet() -> None:
    one, two = two_threads("h", "b", "y"), two_threads("h", "c", "a")
    group = Group(*one, two[0])
    thread = Fenced(group, one[0], *one)
    thread.look()
    group.members = (*one, *two)
    thread.look(SESSION_TIMEOUT_MS)
    thread.look(1)
    with pytest.raises(SupersededError):
        thread.look(SESSION_TIMEOUT_MS)


def test_another_worker_of_the_same_state_directory_is_no_rival() -> None:
    own = two_threads("h", "b", "c")
    neighbour = MemberDescription("a", "app-8f14e45f-11-1", "h")
    assert not gives_up(Fenced(Group(neighbour, *own), own[0], *own))
