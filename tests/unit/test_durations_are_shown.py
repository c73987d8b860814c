"""People are told roughly how long something takes, and exactly how long a limit is."""

from __future__ import annotations

import pytest

from pystreams.times import show_duration, spell_ms


@pytest.mark.parametrize(
    "seconds,text", [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (3_725, "1 h 02 min")]
)
def test_how_long_something_takes_is_shown_in_two_units_at_most(seconds: float, text: str):
    assert show_duration(seconds) == text


@pytest.mark.parametrize(
    "milliseconds,text",
    [
        (417, "417 ms"),
        (47_001, "47.001 s"),
        (723_001, "12 min 4 s"),
        (15_120_000, "4 h 12 min"),
        (183_600_000, "2 d 3 h"),
    ],
)
def test_a_limit_is_never_shown_shorter_than_it_is(milliseconds: int, text: str):
    assert spell_ms(milliseconds) == text
