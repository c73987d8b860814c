"""Trouble that does not end makes a thread give up after ``task_timeout_ms``; what looks like its end may be none."""

from __future__ import annotations

from pystreams.clock import ManualClock
from pystreams.runtime.recovery.trouble import Trouble

TIMEOUT_MS = 1_000


def trouble() -> tuple[Trouble, ManualClock]:
    clock = ManualClock(5_000)
    return Trouble(clock, TIMEOUT_MS), clock


def never() -> bool:
    return False


def test_failures_in_a_row_are_enough_after_the_timeout():
    of_thread, clock = trouble()
    assert not of_thread.failed(until_commit=False)
    clock.advance_ms(TIMEOUT_MS - 1)
    assert not of_thread.failed(until_commit=False)
    clock.advance_ms(1)
    assert of_thread.failed(until_commit=False)


def test_a_round_that_succeeds_ends_trouble_in_which_nothing_was_lost():
    of_thread, clock = trouble()
    of_thread.failed(until_commit=False)
    clock.advance_ms(TIMEOUT_MS)
    of_thread.succeeded(restoring=False, caught_up=never)
    assert not of_thread.lasts
    assert not of_thread.failed(until_commit=False)


def test_rounds_that_succeed_between_failures_of_the_same_work_prove_nothing():
    of_thread, clock = trouble()
    for _ in range(TIMEOUT_MS // 100):
        assert not of_thread.failed(until_commit=True)
        clock.advance_ms(50)
        of_thread.succeeded(restoring=False, caught_up=never)
        clock.advance_ms(50)
    assert of_thread.failed(until_commit=True)


def test_a_commit_ends_it_and_so_does_having_nothing_left_to_do():
    of_thread, clock = trouble()
    of_thread.failed(until_commit=True)
    of_thread.over()
    assert not of_thread.lasts
    of_thread.failed(until_commit=True)
    of_thread.succeeded(restoring=False, caught_up=lambda: True)
    assert not of_thread.lasts
    clock.advance_ms(10 * TIMEOUT_MS)
    assert not of_thread.failed(until_commit=True)


def test_the_time_that_restoring_takes_does_not_count():
    of_thread, clock = trouble()
    of_thread.failed(until_commit=True)
    for _ in range(100):
        clock.advance_ms(TIMEOUT_MS)
        of_thread.succeeded(restoring=True, caught_up=never)
    assert not of_thread.failed(until_commit=True)
    clock.advance_ms(TIMEOUT_MS)
    assert of_thread.failed(until_commit=True)
