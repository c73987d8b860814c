"""A moment may be a text, a date, a datetime or milliseconds; what is ambiguous is refused."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from pystreams.backfill.plan.moments import moment_ms
from pystreams.errors import ConfigError

AT = 1_795_651_200_000


@pytest.mark.parametrize(
    "given",
    [
        "2026-11-26",
        "2026-11-26T00:00:00Z",
        pytest.param(str(AT), id="text of milliseconds"),
        AT,
        date(2026, 11, 26),
        datetime(2026, 11, 26),  # noqa: DTZ001 - it is UTC
        datetime(2026, 11, 26, 1, tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_it_is_the_same_however_it_is_given(given: Any) -> None:
    assert moment_ms(given, "boundary") == AT


@pytest.mark.parametrize("given", [AT // 1000, "2026", 20261126])
def test_seconds_and_years_are_ambiguous(given: Any) -> None:
    with pytest.raises(ConfigError, match=f"boundary {given} is ambiguous"):
        moment_ms(given, "boundary")


@pytest.mark.parametrize("given", ["tomorrow", "", 1.5, True, [AT]])
def test_others_are_no_times(given: Any) -> None:
    with pytest.raises(ConfigError, match="is not a time"):
        moment_ms(given, "boundary")
