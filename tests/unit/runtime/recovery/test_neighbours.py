"""Processes that share a state directory remove each other's members from the group when one of them has died."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import MemberName
from pystreams.runtime.recovery.neighbours import STATIC_RETURN_MS, Neighbours
from pystreams.state.disk.member_notes import MemberNotes
from tests.live.support import eventually

GROUP = "app"
DYNAMIC, STATIC = MemberName("app-1-abc"), MemberName("app-2-def", "host-1-2")


class Group:
    """What the group is asked to do without."""

    def __init__(self) -> None:
        self.removed: list[MemberName] = []
        self.attempts = 0
        self.away = False

    def remove_members(self, group: str, members: Collection[MemberName]) -> None:
        assert group == GROUP
        self.attempts += 1
        if self.away:
            raise BrokerUnavailableError("the coordinator does not answer")
        self.removed += members


class WatchedClock(ManualClock):
    """Counts how often it is looked at: once for each look at a client with static members that is dead."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def monotonic_ms(self) -> float:
        now_ms = super().monotonic_ms()
        self.looks += 1
        return now_ms


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
        neighbours = Neighbours(MemberNotes(tmp_path), admin, GROUP, clock, supervised=supervised)
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
    assert notes._descriptor is not None
    fcntl.flock(notes._descriptor, fcntl.LOCK_UN)


def die(neighbours: Neighbours) -> None:
    """Leave everything as the death of the process does."""
    neighbours._closing.set()
    neighbours._thread.join()
    assert neighbours._notes._descriptor is not None
    fcntl.flock(neighbours._notes._descriptor, fcntl.LOCK_UN)


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
    neighbours = start(member=MemberName("new"))
    eventually(lambda: neighbours._dead_since_ms, "the death is known")
    clock.advance_ms(int(STATIC_RETURN_MS) - 1)
    before = clock.looks
    # The first of these may have read the time before it was advanced.
    eventually(lambda: clock.looks >= before + 3, "it has been looked at since then")
    assert group.removed == []
    clock.advance_ms(1)
    eventually(lambda: group.removed == [STATIC], "it is removed")


def test_static_members_without_a_supervisor_are_not_noted(start: Start, tmp_path: Path):
    alone = start(member=STATIC)
    assert MemberNotes(tmp_path).members(alone._notes.client) == []
    supervised = start(member=STATIC, supervised=True)
    assert MemberNotes(tmp_path).members(supervised._notes.client) == [STATIC]
