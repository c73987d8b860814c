"""Moments as a user gives them: a text, a date, a datetime, or milliseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Final, TypeAlias

from pystreams.errors import ConfigError
from pystreams.times import read_time, show_time, to_ms

#: Milliseconds since 1970; a text such as ``2026-11-26`` or ``2026-11-26T12:00:00Z``; a date, which is its beginning; a
#: datetime. Without a time zone it is UTC.
Moment: TypeAlias = int | str | date | datetime

#: A number below this one, a time in 1973, is not taken for milliseconds.
MILLISECONDS_MIN: Final = 100_000_000_000


def moment_ms(given: Moment, name: str) -> int:
    """A moment in ms; ``name`` is the option or the argument. Raises ``ConfigError`` for anything else, and for a
    number that is ambiguous."""
    if isinstance(given, str) and given[:1].isdigit():
        time_ms = read_time(given)
        number = given.isdigit()
    elif isinstance(given, datetime):
        return to_ms(given if given.tzinfo else given.replace(tzinfo=UTC))
    elif isinstance(given, date):
        return to_ms(datetime(given.year, given.month, given.day, tzinfo=UTC))
    elif isinstance(given, int) and not isinstance(given, bool):
        time_ms, number = given, True
    else:
        raise ConfigError(f"{name} {given!r} is not a time", hint="write a time like 2013-11-01")
    if number and time_ms < MILLISECONDS_MIN:
        raise ambiguous(given, time_ms, name)
    return time_ms


def ambiguous(given: object, time_ms: int, name: str, instead: str = "") -> ConfigError:
    """A short number may also mean a year, a day, seconds or an offset. ``instead`` is what else could be meant."""
    return ConfigError(
        f"{name} {given} is ambiguous",
        why=f"as milliseconds it is {show_time(time_ms)}",
        hint=f"write a time as 2013-01-01 or 2013-01-01T12:00:00Z{instead}",
    )
