"""Points of time: parsed from the user's text, and shown to the user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from pystreams.errors import ConfigError

#: The greatest timestamp that a record can have, in ms.
LAST_MS: Final = (1 << 63) - 1

#: The year 2200: hardly any record has a later time. As many seconds are in March 1970, and hardly any record is older.
FAR_FUTURE_MS: Final = 7_258_118_400_000

#: A day: a record that is further ahead of the clock has a wrong timestamp.
AHEAD_MAX_MS: Final = 86_400_000

#: Milliseconds since the epoch, or a datetime (without a time zone: local).
Time: TypeAlias = int | datetime
#: Milliseconds, or a timedelta.
Duration: TypeAlias = int | timedelta


def to_ms(time: Time | Duration) -> int:
    """Milliseconds of a point of time (since the epoch; a datetime without a time zone is local) or of a duration."""
    if isinstance(time, datetime):
        return round(time.timestamp() * 1000)
    if isinstance(time, timedelta):
        return time // timedelta(milliseconds=1)
    if not isinstance(time, int):
        raise _no_time(time)
    return time


def _no_time(given: object) -> TypeError:
    # Such a float is what Python's time module gives; durations are smaller.
    seconds = isinstance(given, float) and given > 1_000_000_000 and likely_seconds(given)
    return TypeError(
        f"{given!r} is not a time: give a datetime, a timedelta, or milliseconds as an int"
        + ("; most likely seconds: multiply by 1000, and give an int" if seconds else "")
    )


def likely_seconds(timestamp_ms: float) -> bool:
    """Whether a timestamp is implausible in milliseconds, and most likely in seconds."""
    return timestamp_ms < FAR_FUTURE_MS / 1000


def unit_remark(timestamp_ms: int) -> str:
    """For an implausible timestamp, the unit in which it most likely is, and the remedy; else empty."""
    if likely_seconds(timestamp_ms):
        unit, remedy = "seconds", "multiply by 1000"
    elif timestamp_ms < FAR_FUTURE_MS:
        return ""
    elif timestamp_ms < FAR_FUTURE_MS * 1000:
        unit, remedy = "microseconds", "divide by 1000"
    else:
        unit, remedy = "nanoseconds", "divide by 1,000,000"
    return f"timestamp {timestamp_ms}: most likely {unit}: {remedy}; timestamps are milliseconds since 1970"


def read_time(text: str) -> int:
    """Milliseconds since the epoch of ``1700000000000``, ``2013-01-01`` or ``2013-01-01T10:00:00Z`` (default zone:
    UTC)."""
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{text!r} is not a time", hint="write milliseconds, 2013-01-01, or 2013-01-01T10:00:00Z"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def show_time(timestamp_ms: int) -> str:
    """A timestamp as ISO 8601 in UTC, with milliseconds unless they are 0."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    precision = "milliseconds" if timestamp_ms % 1000 else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def show_duration(seconds: float) -> str:
    """About how long something takes, or has taken: ``7 s``, ``2 min 05 s``, ``3 h 20 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def spell_ms(milliseconds: int) -> str:
    """A limit for people: ``417 ms``, ``47.001 s``, ``12 min 4 s``, ``4 h 12 min``, ``2 d 3 h``. Rounded up,
    so that a limit of this length is never too short."""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.3f}".rstrip("0").rstrip(".") + " s"
    if milliseconds < 3_600_000:
        return _in_two_units(milliseconds, 60_000, "min", 1_000, "s")
    if milliseconds < 86_400_000:
        return _in_two_units(milliseconds, 3_600_000, "h", 60_000, "min")
    return _in_two_units(milliseconds, 86_400_000, "d", 3_600_000, "h")


def _in_two_units(milliseconds: int, great_ms: int, great: str, small_ms: int, small: str) -> str:
    smalls = -(-milliseconds // small_ms)
    greats, rest = divmod(smalls, great_ms // small_ms)
    return f"{greats} {great} {rest} {small}" if rest else f"{greats} {great}"
