"""The threads of a client say together what all of them know, and know together what one of them is told."""

from __future__ import annotations

from pystreams.runtime.group.client_in_group import ClientInGroup
from pystreams.runtime.group.membership_data import Whereabouts


def places(*threads: str) -> Whereabouts:
    return Whereabouts(list(threads))


def test_one_thread_speaks_for_all_and_another_one_when_it_has_ended() -> None:
    client = ClientInGroup()
    assert [client.speaks(thread) for thread in ("t2", "t1", "t2")] == [True, False, True]
    client.leave("t1")
    assert client.speaks("t2")
    client.leave("t2")
    assert client.speaks("t1")


def test_where_all_tasks_are_stays_known_when_the_thread_that_was_told_has_ended() -> None:
    client = ClientInGroup()
    assert client.speaks("t1")
    client.heard(1, places("t1", "t2"))
    client.leave("t1")
    assert client.whereabouts == places("t1", "t2")


def test_a_thread_that_says_late_what_it_was_told_does_not_replace_what_is_newer() -> None:
    client = ClientInGroup()
    client.heard(7, places("old"))
    client.heard(8, places("new"))
    client.heard(7, places("old"))
    assert client.whereabouts == places("new")
    client.heard(8, places("newer"))  # brokers that assign the tasks tell more than once in a generation
    assert client.whereabouts == places("newer")


def test_a_group_that_was_deleted_counts_from_1_again() -> None:
    client = ClientInGroup()
    client.heard(7, places("old"))
    client.forget_generation()
    assert client.whereabouts == places("old")
    client.heard(1, places("new"))
    assert client.whereabouts == places("new")


def test_the_members_of_the_client_are_those_of_its_threads_that_live() -> None:
    client = ClientInGroup()
    client.joined("t1", "m1")
    client.joined("t2", "m2")
    client.joined("t1", "m3")
    assert sorted(client.member_ids()) == ["m2", "m3"]
    client.leave("t2")
    assert client.member_ids() == ["m3"]
