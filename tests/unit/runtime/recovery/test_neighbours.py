"""Processes that share a state directory remove each other's members from the group when one of them has died."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams.errors import BrokerUnavailableError
from pystreams.ids import MemberName
from pystreams.runtime.recovery.neighbours import STATIC_RETURN_MS, Neighbours
from pystreams.state.disk.member_notes import MemberNotes
from tests.live.support import eventually
from tests.unit.runtime.watched_clock import WatchedClock

GROUP = "app"
DYNAMIC, STATIC = MemberName("app-1-abc"), MemberName("app-2-def", "host-1-2")
SESSION_TIMEOUT_MS = 45_000


class Group:
    """What the group is asked to do without."""

    def __init__(self) -> None:
        self.removed: list[MemberName] = []
        self.attempts = 0
        self.away = False
        #: The static members whose places others have taken.
        self.back: set[str | None] = set()

    def remove_members(self, group: str, members: Collection[MemberName]) -> list[MemberName]:
        assert group == GROUP
        self.attempts += 1
        if self.away:
            raise BrokerUnavailableError("the coordinator does not answer")
        gone = [member for member in members if member.instance_id not in self.back]
        self.removed += gone
        return gone


Start = Callable[..., Neighbours]


@pytest.fixture
def group() -> Group:
    return Group()


@pytest.fixture
def clock() -> WatchedClock:
    return WatchedClock()


@pytest.fixture
def changes() -> list[str]:
    """The clients that were told of a change."""
    return []


@pytest.fixture
def start(tmp_path: Path, group: Group, clock: WatchedClock, changes: list[str]) -> Iterator[Start]:
    started: list[Neighbours] = []

    def start(name: str = "", *, supervised: bool = False, member: MemberName = DYNAMIC) -> Neighbours:
        admin: Any = group
        notes = MemberNotes(tmp_path)
        neighbours = Neighbours(notes, admin, GROUP, clock, SESSION_TIMEOUT_MS, supervised=supervised)
        started.append(neighbours)
        neighbours.begin(lambda: changes.append(name))
        neighbours.note(member)
        return neighbours

    yield start
    for neighbours in started:
        neighbours.close()


def dead(path: Path, *members: MemberName) -> None:
    """The notes of a process that has died: nobody holds their lock."""
    notes = MemberNotes(path)
    for member in members:
        notes.add(member)
    release(notes)


def release(notes: MemberNotes) -> None:
    """The lock of a process that dies goes with it."""
    assert notes._descriptor is not None
    fcntl.flock(notes._descriptor, fcntl.LOCK_UN)


def die(neighbours: Neighbours) -> None:
    """Leave everything as the death of the process does."""
    neighbours._closing.set()
    neighbours._thread.join()
    release(neighbours._notes)


def test_the_members_of_a_process_that_dies_are_removed_and_all_others_look(
    start: Start, group: Group, changes: list[str]
):
    one, *others = (start(name, member=MemberName(name)) for name in "abc")
    eventually(lambda: all(len(other._known) == 2 for other in others), "they know each other")
    die(one)
    eventually(lambda: set(changes) == {"b", "c"}, "both look")
    assert group.removed == [MemberName("a")]


def test_several_that_die_at_once_are_removed(start: Start, group: Group):
    started = [start(name, member=MemberName(name)) for name in "abcde"]
    for neighbours in started[:4]:
        neighbours._closing.set()
    for neighbours in started[:4]:
        die(neighbours)
    eventually(lambda: sorted(group.removed) == [MemberName(name) for name in "abcd"], "four are removed")


def test_members_that_died_before_the_start_are_removed_once_this_client_joins(
    tmp_path: Path, group: Group, start: Start
):
    dead(tmp_path, DYNAMIC, MemberName("app-1-ghi"))
    start(member=MemberName("new"))
    eventually(lambda: group.removed == [DYNAMIC, MemberName("app-1-ghi")], "both are removed")


def test_who_is_closed_in_order_is_not_removed_but_the_others_look(
    start: Start, group: Group, changes: list[str]
):
    one, other = start("a"), start("b")
    eventually(lambda: other._known, "it is known")
    one.close()
    eventually(lambda: changes == ["b"], "the other looks")
    assert group.removed == []


def test_a_removal_that_fails_is_tried_again(tmp_path: Path, group: Group, start: Start):
    dead(tmp_path, DYNAMIC)
    group.away = True
    start(member=MemberName("new"))
    eventually(lambda: group.attempts >= 2, "it is tried again")
    group.away = False
    eventually(lambda: group.removed == [DYNAMIC], "it is removed")


def test_static_members_of_a_supervisor_are_removed_only_when_they_do_not_come_back_in_time(
    tmp_path: Path, group: Group, start: Start, clock: WatchedClock
):
    dead(tmp_path, STATIC)
    knows_of_a_death(start)
    # The clock is read once for each look at a client with static members that is dead.
    clock.is_looked_at(int(STATIC_RETURN_MS) - 1)
    assert group.removed == []
    clock.advance_ms(1)
    eventually(lambda: group.removed == [STATIC], "it is removed")


def knows_of_a_death(start: Start) -> Neighbours:
    """A client that knows of the death of another one."""
    neighbours = start(member=MemberName("new"))
    eventually(lambda: neighbours._dead_since_ms, "the death is known")
    return neighbours


def test_a_static_member_whose_next_process_has_shown_up_is_awaited_until_it_has_joined(
    tmp_path: Path, group: Group, start: Start, clock: WatchedClock, caplog: pytest.LogCaptureFixture
):
    dead(tmp_path, MemberName("", STATIC.instance_id), STATIC)
    neighbours = knows_of_a_death(start)
    admin: Any = group
    back = Neighbours(MemberNotes(tmp_path), admin, GROUP, clock, SESSION_TIMEOUT_MS, supervised=True)
    back.announce([str(STATIC.instance_id)])
    clock.is_looked_at(SESSION_TIMEOUT_MS - 1)
    assert group.attempts == 0
    group.back.add(STATIC.instance_id)
    back.begin(lambda: None)
    back.note(MemberName("app-3-ghi", STATIC.instance_id))
    eventually(lambda: neighbours._notes.others() == [back._notes.client], "the death is forgotten")
    assert group.removed == []
    assert not caplog.messages, "nobody goes on without it"
    back.close()


def test_the_next_process_itself_does_not_remove_the_static_member_that_it_is_to_be(
    tmp_path: Path, group: Group, clock: WatchedClock, start: Start
):
    dead(tmp_path, STATIC)
    admin: Any = group
    back = Neighbours(MemberNotes(tmp_path), admin, GROUP, clock, SESSION_TIMEOUT_MS, supervised=True)
    back.announce([str(STATIC.instance_id)])
    back._look()
    clock.advance_ms(SESSION_TIMEOUT_MS - 1)
    back._look()
    assert group.attempts == 0
    back.close()


@pytest.mark.parametrize("dies", [False, True], ids=["hangs", "dies"])
def test_a_static_member_whose_next_process_does_not_join_is_removed(
    tmp_path: Path, group: Group, start: Start, clock: WatchedClock, dies: bool
):
    dead(tmp_path, STATIC)
    knows_of_a_death(start)
    again = MemberNotes(tmp_path)
    again.add(MemberName("", STATIC.instance_id))
    clock.is_looked_at(int(STATIC_RETURN_MS))
    assert group.removed == [], "it may still join"
    if dies:
        release(again)
    else:
        # Its session is over.
        clock.advance_ms(SESSION_TIMEOUT_MS)
    eventually(lambda: group.removed == [STATIC], "it is removed, and nothing that has not joined")
    again.close()


def test_nobody_says_that_it_goes_on_without_a_member_whose_place_another_process_has_taken(
    tmp_path: Path, group: Group, start: Start, clock: WatchedClock, caplog: pytest.LogCaptureFixture
):
    dead(tmp_path, STATIC)
    group.back.add(STATIC.instance_id)
    neighbours = knows_of_a_death(start)
    clock.advance_ms(int(STATIC_RETURN_MS))
    eventually(lambda: neighbours._notes.others() == [], "the notes are forgotten")
    assert group.attempts == 1
    assert not caplog.messages


def test_static_members_without_a_supervisor_are_not_noted(start: Start, tmp_path: Path):
    alone = start(member=STATIC)
    assert MemberNotes(tmp_path).members(alone._notes.client) == []
    supervised = start(member=STATIC, supervised=True)
    assert MemberNotes(tmp_path).members(supervised._notes.client) == [STATIC]
