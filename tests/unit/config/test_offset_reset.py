"""``auto_offset_reset`` takes what Java's does, and a timedelta."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.config import StreamsConfig, offset_reset, reset_duration_ms
from pystreams.errors import ConfigError

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    "duration,milliseconds",
    [
        ("PT1H", HOUR),
        ("P1D", DAY),
        ("P1DT2H3M4.005S", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5),
        ("pt15m", 15 * MINUTE),
        ("PT0S", 0),
        ("PT0.5S", 500),
        ("PT1,5S", 1_500),
        ("PT90M", 90 * MINUTE),
        ("P-1DT25H", HOUR),
        ("-PT-6H", 6 * HOUR),
        ("+P2D", 2 * DAY),
        ("PT1.S", SECOND),
    ],
)
def test_a_duration_is_written_as_java_does(duration: str, milliseconds: int):
    assert reset_duration_ms(f"by_duration:{duration}") == milliseconds


@pytest.mark.parametrize("strategy", ["earliest", "latest", "none"])
def test_the_other_strategies_have_none(strategy: str):
    assert reset_duration_ms(strategy) is None
    assert offset_reset(strategy) == strategy


@pytest.mark.parametrize(
    "strategy",
    [
        "by_duration",
        "by_duration:",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:P1DT",
        "by_duration:P1H",
        "by_duration:PT1D",
        "by_duration:PT1S1M",
        "by_duration:1h",
        "by_duration: PT1H",
        "by_duration:PT.5S",
        "by_duration:PT0.1234567890S",
        "by_duration:-PT1S",
        "by_duration:PT-1H",
        "BY_DURATION:PT1H",
        "Earliest",
        "newest",
        "",
        5,
        timedelta(seconds=-1),
    ],
    ids=str,
)
def test_anything_else_is_refused(strategy: Any):
    with pytest.raises(ConfigError) as caught:
        StreamsConfig.of(application_id="app", auto_offset_reset=strategy)
    assert "earliest, latest, none, by_duration:PT1H" in caught.value.why


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=100_000)))
def test_a_timedelta_is_a_duration(duration: timedelta):
    config = StreamsConfig.of(application_id="app", auto_offset_reset=duration)
    assert reset_duration_ms(config.auto_offset_reset) == duration // timedelta(milliseconds=1)
    assert offset_reset(config.auto_offset_reset) == config.auto_offset_reset
