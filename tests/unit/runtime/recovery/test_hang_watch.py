"""A round of a thread that takes too long is reported once; not one of a thread that rests, tries again or was frozen
with its process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pystreams.clock import ManualClock
from pystreams.runtime.recovery.hang_watch import HangWatch, WatchedRounds
from tests.unit.runtime.watched_clock import WatchedClock

TIMEOUT_MS = 60_000
#: The looks of these tests are so far apart.
LOOK_MS = 1_000


class Watched:
    """The rounds of this thread, and a thread that looks at them in time."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.rounds = WatchedRounds("thread", TIMEOUT_MS)

    def begin(self) -> None:
        self.rounds.begin(self.now_ms)

    def work(self, duration_ms: int, stretch_from_ms: int | None = None) -> None:
        """Time passes, and with it a function's stretch of work on one record."""
        for _ in range(duration_ms // LOOK_MS):
            self.now_ms += LOOK_MS
            self.look(stretch_from_ms)

    def look(self, stretch_from_ms: int | None = None) -> None:
        self.rounds.look(self.now_ms, 0.0 if stretch_from_ms is None else self.now_ms - stretch_from_ms)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_round_that_does_not_end_is_reported_once(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.begin()
    watched.work(TIMEOUT_MS - LOOK_MS)
    assert not caplog.messages
    watched.work(LOOK_MS)
    assert "[thread] the thread has been in the same round of its work for 60 s" in caplog.text
    watched.work(2 * TIMEOUT_MS)
    assert len(caplog.messages) == 1


def test_who_was_frozen_with_its_process_does_not_hang(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.begin()
    watched.work(TIMEOUT_MS - LOOK_MS)
    watched.now_ms += 10 * TIMEOUT_MS
    watched.look()
    watched.work(TIMEOUT_MS - LOOK_MS)
    assert not caplog.messages
    watched.work(LOOK_MS)
    assert "for 60 s" in caplog.text, "it has had the whole time again"


def test_nor_does_its_function(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.begin()
    watched.work(TIMEOUT_MS // 2)
    began_ms = watched.now_ms
    watched.now_ms += 10 * TIMEOUT_MS
    watched.look(began_ms)
    watched.work(TIMEOUT_MS - LOOK_MS, began_ms)
    assert not caplog.messages
    watched.work(LOOK_MS, began_ms)
    assert "a function has been at work on one record for 60 s" in caplog.text, (
        "without the time it was frozen"
    )


@pytest.mark.parametrize("timeout_ms", [300, TIMEOUT_MS])
def test_who_was_frozen_for_longer_than_the_timeout_does_not_hang_however_short_that_is(
    timeout_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    rounds = WatchedRounds("thread", timeout_ms)
    rounds.look(0)
    rounds.begin(0)
    rounds.look(timeout_ms)
    assert not caplog.messages


def test_looks_that_are_a_little_late_do_not_hide_that_it_hangs(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.begin()
    for _ in range(TIMEOUT_MS // (4 * LOOK_MS)):
        watched.now_ms += 4 * LOOK_MS
        watched.look()
    assert "for 60 s" in caplog.text


# The watch with a thread of its own


SHORT_MS = 300


@pytest.fixture
def clock() -> WatchedClock:
    return WatchedClock()


@pytest.fixture
def watch(clock: WatchedClock) -> Iterator[HangWatch]:
    watch = HangWatch("thread", clock, SHORT_MS)
    watch.start()
    yield watch
    watch.close()


def test_the_watch_reports_a_thread_that_hangs(
    watch: HangWatch, clock: WatchedClock, caplog: pytest.LogCaptureFixture
) -> None:
    watch.begin_round()
    for _ in range(4):
        clock.is_looked_at(SHORT_MS // 2)
    assert "in the same round of its work" in caplog.text


def test_the_watch_does_not_report_a_thread_that_rests(
    watch: HangWatch, clock: WatchedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Because it is paused, has nothing to do, or has ended."""
    watch.begin_round()
    watch.rest()
    for _ in range(4):
        clock.is_looked_at(SHORT_MS // 2)
    assert not caplog.messages


def test_the_watch_does_not_report_a_thread_that_tries_again(
    watch: HangWatch, clock: WatchedClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(8):
        watch.begin_round()
        clock.is_looked_at(SHORT_MS // 2)
    assert not caplog.messages


def test_the_watch_does_nothing_without_a_timeout() -> None:
    watch = HangWatch("thread", ManualClock(), 0)
    watch.start()
    assert not watch._thread.is_alive()
    watch.close()
