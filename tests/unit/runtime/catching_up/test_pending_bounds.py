"""A bound is in force once the ends are passed that were read when it became known."""

from __future__ import annotations

from pystreams.ids import TopicPartition
from pystreams.runtime.catching_up.pending_bounds import PendingBounds

LEFT, RIGHT = TopicPartition("a", 0), TopicPartition("b", 0)


def at(left: int, right: int = 0):
    return {LEFT: left, RIGHT: right}.__getitem__


def test_a_bound_waits_until_the_ends_are_passed():
    pending = PendingBounds()
    pending.offer(500, {LEFT: 10, RIGHT: 3})
    assert pending.passed(at(9, 3)) is None
    assert pending.passed(at(12, 2)) is None
    assert pending.passed(at(10, 3)) == 500
    assert pending.passed(at(11, 3)) is None


def test_several_that_are_passed_at_once_give_the_last():
    pending = PendingBounds()
    for bound, end in ((1, 10), (2, 20), (3, 30)):
        pending.offer(bound, {LEFT: end})
    assert pending.passed(at(25)) == 2
    assert pending.passed(at(30)) == 3
    assert not len(pending)


def test_what_is_in_force_already_is_not_waited_for_again():
    pending = PendingBounds()
    pending.offer(7, {LEFT: 1})
    assert pending.passed(at(1)) == 7
    pending.offer(7, {LEFT: 5})
    assert not len(pending)


def test_the_same_bound_keeps_the_ends_that_were_enough_for_it():
    pending = PendingBounds()
    pending.offer(7, {LEFT: 10})
    pending.offer(7, {LEFT: 20})
    assert pending.passed(at(10)) == 7


def test_a_later_bound_for_the_same_ends_takes_the_place_of_the_former():
    pending = PendingBounds()
    pending.offer(7, {LEFT: 10})
    pending.offer(8, {LEFT: 10})
    assert pending.passed(at(10)) == 8


def test_what_was_forgotten_does_not_come_into_force():
    pending = PendingBounds()
    pending.offer(7, {LEFT: 1})
    pending.forget()
    assert pending.passed(at(1)) is None
