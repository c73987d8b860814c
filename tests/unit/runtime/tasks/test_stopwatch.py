"""A round of a thread that takes too long is reported once, with the thread's stack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pystreams.clock import ManualClock
from pystreams.runtime.tasks.stopwatch import Stopwatch
from tests.live.support import eventually


class Working:
    def __init__(self) -> None:
        self.hurries = 0

    def hurry(self) -> None:
        self.hurries += 1


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def stopwatch(clock: ManualClock) -> Iterator[Stopwatch]:
    stopwatch = Stopwatch("thread", clock, 60_000)
    yield stopwatch
    stopwatch.close()


def looks(stopwatch: Stopwatch) -> None:
    """Wait until the stopwatch has looked once more, from the beginning to the end of a look."""
    working = Working()
    stopwatch.watch(working)
    stopwatch._clock.advance_ms(1_000)  # type: ignore[attr-defined]
    eventually(lambda: working.hurries > 1, "two looks")
    stopwatch.rest()


def test_a_round_that_does_not_end_is_reported_once(stopwatch, clock, caplog) -> None:
    stopwatch.begin_round(clock.monotonic_ms())
    clock.advance_ms(60_000)
    eventually(lambda: "in the same round of its work for 60 s" in caplog.text, "it is reported")
    assert "in test_a_round_that_does_not_end_is_reported_once" in caplog.text, "the stack of the thread"
    clock.advance_ms(60_000)
    looks(stopwatch)
    assert len(caplog.messages) == 1


def test_rounds_that_end_in_time_are_not_reported(stopwatch, clock, caplog) -> None:
    for _ in range(3):
        stopwatch.begin_round(clock.monotonic_ms())
        clock.advance_ms(40_000)
        looks(stopwatch)
    assert not caplog.messages


def test_a_function_that_hangs_is_reported_instead_of_its_round(stopwatch, clock, caplog) -> None:
    stopwatch.begin_round(clock.monotonic_ms())
    clock.advance_ms(59_000)
    working = Working()
    stopwatch.watch(working)
    clock.advance_ms(50_000)
    eventually(lambda: working.hurries > 1, "it is cut short if it can be")
    assert not caplog.messages, "neither has lasted for 60 s, apart from the other"
    clock.advance_ms(10_000)
    eventually(lambda: caplog.messages, "it is reported")
    assert "a function has been at work on one record for 60 s" in caplog.text
    stopwatch.rest()
    looks(stopwatch)
    assert len(caplog.messages) == 1


def test_a_stretch_that_has_failed_ends_with_its_round(stopwatch, clock, caplog) -> None:
    stopwatch.begin_round(clock.monotonic_ms())
    stopwatch.watch(Working())
    clock.advance_ms(30_000)
    for _ in range(3):
        stopwatch.begin_round(clock.monotonic_ms())
        clock.advance_ms(40_000)
        looks(stopwatch)
    assert not caplog.messages


def test_nothing_is_reported_without_a_timeout(clock, caplog) -> None:
    stopwatch = Stopwatch("thread", clock, 0)
    try:
        stopwatch.begin_round(clock.monotonic_ms())
        clock.advance_ms(600_000)
        looks(stopwatch)
        assert not caplog.messages
    finally:
        stopwatch.close()
