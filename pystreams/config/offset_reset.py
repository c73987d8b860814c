"""Where to start reading an input that has no committed offset.

Source: org.apache.kafka.clients.consumer.internals.AutoOffsetResetStrategy (KIP-1106).
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

_BY_DURATION: Final = "by_duration:"
_EXPECTED: Final = "earliest, latest, none, by_duration:PT1H (ISO 8601), or a timedelta"
#: Durations as java.time.Duration.parse takes them: every part may have a sign, and so may the whole.
_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+)(?:[.,](?P<fraction>\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def offset_reset(given: Any) -> str:
    """The strategy as text; a timedelta becomes ``by_duration:PT90.5S``. Raises ``ValueError`` with what is valid."""
    if isinstance(given, timedelta):
        seconds = f"{given // timedelta(milliseconds=1) / 1000:.3f}".removesuffix(".000")
        given = f"{_BY_DURATION}PT{seconds}S"
    if not isinstance(given, str):
        raise ValueError(_EXPECTED)  # noqa: TRY004 - a ValueError is what says "not this value" here
    if given not in ("earliest", "latest", "none"):
        reset_duration_ms(given)
    return given


def reset_duration_ms(strategy: str) -> int | None:
    """How far before now ``by_duration:PT1H`` starts, in ms; None for the other strategies.

    Raises ``ValueError`` for a text that is not a strategy, and for a negative duration.
    """
    if strategy in ("earliest", "latest", "none"):
        return None
    match = _DURATION.fullmatch(strategy.removeprefix(_BY_DURATION))
    if not strategy.startswith(_BY_DURATION) or match is None or not any(match.group(*_PARTS)):
        raise ValueError(_EXPECTED)
    days, hours, minutes, seconds = (int(match[part] or 0) for part in _PARTS)
    nanoseconds = int((match["fraction"] or "").ljust(9, "0"))
    if (match["seconds"] or "").startswith("-"):
        nanoseconds = -nanoseconds
    total_ms = 1000 * (((24 * days + hours) * 60 + minutes) * 60 + seconds) + nanoseconds // 1_000_000
    total_ms = -total_ms if match["sign"] == "-" else total_ms
    if total_ms < 0:
        raise ValueError(f"{_EXPECTED}; the duration must not be negative")
    return total_ms


_PARTS: Final = ("days", "hours", "minutes", "seconds")
