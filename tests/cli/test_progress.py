"""Progress is a bar for people and lines for files, and its numbers are right."""

from __future__ import annotations

import pytest

from pystreams.cli.progress import LINE_INTERVAL_MS, BarDisplay, LineDisplay, Meter, display_for_terminal
from pystreams.clock import ManualClock


def test_the_rate_is_that_of_the_last_seconds():
    clock = ManualClock()
    meter = Meter(clock)
    for processed in (1_000, 2_000, 3_000, 4_000):
        clock.advance_ms(1_000)
        meter.update(processed)
    assert meter.rate() == 1_000
    for _ in range(10):
        clock.advance_ms(1_000)
        meter.update(4_000)
    assert meter.rate() == 0
    assert meter.elapsed_s() == 14


def test_the_rate_is_0_before_any_time_has_passed():
    meter = Meter(ManualClock())
    meter.update(5)
    assert meter.rate() == 0


def test_lines_come_with_each_state_and_now_and_then(capsys):
    clock = ManualClock()
    with LineDisplay(Meter(clock), clock) as display:
        display.update("restoring", 0, None)
        display.update("restoring", 0, None)
        display.update("running", 10, 90)
        clock.advance_ms(int(LINE_INTERVAL_MS))
        display.update("running", 100, 0)
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert [(words[0], words[1], words[-1]) for words in lines] == [
        ("restoring", "0", "?"),
        ("running", "10", "90"),
        ("running", "100", "0"),
    ]


@pytest.mark.parametrize("lag", [None, 0, 50])
def test_a_bar_is_painted_and_taken_down(lag, capsys):
    with BarDisplay(Meter(ManualClock())) as display:
        display.update("running", 50, lag)
    capsys.readouterr()


def test_a_file_gets_lines():
    clock = ManualClock()
    assert isinstance(display_for_terminal(Meter(clock), clock), LineDisplay)
