"""A round of a thread that takes too long is reported once, with the thread's stack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pystreams.runtime.tasks.stopwatch import Stopwatch
from tests.unit.runtime.watched_clock import WatchedClock

TIMEOUT_MS, STEP_MS = 6_000, 2_000


class Working:
    def __init__(self) -> None:
        self.hurries = 0

    def hurry(self) -> None:
        self.hurries += 1


@pytest.fixture
def clock() -> WatchedClock:
    return WatchedClock()


@pytest.fixture
def stopwatch(clock: WatchedClock) -> Iterator[Stopwatch]:
    stopwatch = Stopwatch("thread", clock, TIMEOUT_MS)
    yield stopwatch
    stopwatch.close()


def pass_time(clock: WatchedClock, duration_ms: int) -> None:
    """Let time pass in which the stopwatch goes on looking: after a jump it would take the process for a frozen one."""
    for _ in range(0, duration_ms, STEP_MS):
        clock.is_looked_at(STEP_MS)


def test_a_round_that_does_not_end_is_reported_once(stopwatch, clock, caplog) -> None:
    stopwatch.begin_round(clock.monotonic_ms())
    pass_time(clock, TIMEOUT_MS - STEP_MS)
    assert not caplog.messages
    pass_time(clock, STEP_MS)
    assert "in the same round of its work for 6 s" in caplog.text
    assert "in test_a_round_that_does_not_end_is_reported_once" in caplog.text, "the stack of the thread"
    pass_time(clock, TIMEOUT_MS)
    assert len(caplog.messages) == 1


def test_rounds_that_end_in_time_are_not_reported(stopwatch, clock, caplog) -> None:
    for _ in range(3):
        stopwatch.begin_round(clock.monotonic_ms())
        pass_time(clock, TIMEOUT_MS - STEP_MS)
    assert not caplog.messages


def test_a_round_of_a_process_that_was_frozen_is_not_reported(stopwatch, clock, caplog) -> None:
    stopwatch.begin_round(clock.monotonic_ms())
    clock.is_looked_at(10 * TIMEOUT_MS)
    assert not caplog.messages


def test_a_function_that_hangs_is_reported_instead_of_its_round(stopwatch, clock, caplog) -> None:
    stopwatch.begin_round(clock.monotonic_ms())
    pass_time(clock, TIMEOUT_MS - STEP_MS)
    working = Working()
    stopwatch.watch(working)
    pass_time(clock, TIMEOUT_MS - STEP_MS)
    assert working.hurries > 1, "it is cut short if it can be"
    assert not caplog.messages, "neither has lasted for 6 s, apart from the other"
    pass_time(clock, STEP_MS)
    assert "a function has been at work on one record for 6 s" in caplog.text
    stopwatch.rest()
    pass_time(clock, TIMEOUT_MS)
    assert len(caplog.messages) == 1


def test_a_stretch_that_has_failed_ends_with_its_round(stopwatch, clock, caplog) -> None:
    stopwatch.begin_round(clock.monotonic_ms())
    stopwatch.watch(Working())
    pass_time(clock, STEP_MS)
    for _ in range(2):
        stopwatch.begin_round(clock.monotonic_ms())
        pass_time(clock, TIMEOUT_MS - STEP_MS)
    assert not caplog.messages


def test_the_rounds_of_another_thread_are_watched_too(stopwatch, clock, caplog) -> None:
    rounds = stopwatch.watch_also("thread-restore")
    rounds.begin(clock.monotonic_ms())
    pass_time(clock, TIMEOUT_MS)
    assert "[thread-restore] the thread has been in the same round of its work for 6 s" in caplog.text
    assert len(caplog.messages) == 1, "the first one rests"


def test_nothing_is_reported_without_a_timeout(clock, caplog) -> None:
    stopwatch = Stopwatch("thread", clock, 0)
    try:
        stopwatch.begin_round(clock.monotonic_ms())
        pass_time(clock, 3 * TIMEOUT_MS)
        assert not caplog.messages
    finally:
        stopwatch.close()
